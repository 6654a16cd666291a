"""The export as a document: its records, and the checks across them."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Hashable, Iterable, Mapping
from itertools import islice
from typing import Any

from holdfast.config.part import Directive, Part, Target, id_of
from holdfast.dataclass import dataclass
from holdfast.engine.artifact import BulkKind, Fields, Key, fingerprint
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.kinds import KINDS
from holdfast.errors import LedgerError
from holdfast.state import values
from holdfast.state.actions import Action
from holdfast.state.declared import Declaring
from holdfast.state.events import StoredEvent
from holdfast.state.forms import (
    BOOLEAN,
    COUNT,
    MOMENT,
    NAME,
    NUMBER,
    OBJECT,
    TEXT,
    Form,
    Member,
    Record,
    Wrong,
    by_name,
    checked,
    choice,
    or_none,
    several,
    whole_number,
)
from holdfast.state.generations import Generation, GenerationFile
from holdfast.state.latches import Latch

FORMAT_VERSION = 1
# The most problems that are told: whoever handed in another file altogether needs no more.
_SHOWN = 20


def _known_kind(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"Holdfast has no artifact of kind {name!r}")
    return name


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in sorted(fields.items())
    }


def _sha256(text: str) -> str:
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise ValueError("Input should be a digest of 64 hexadecimal characters")
    return text


_FIELDS = Form(lambda value: values.fields_from(dict(OBJECT.read(value))), _plain)
_OBJECTS = several(OBJECT)


def _claim(**given: Any) -> Claim:
    stored, kind = given.pop("fingerprint"), given.pop("kind")
    fields = given["fields"]
    wrong = []
    if stored != fingerprint(fields):
        wrong.append((".fingerprint", "not that of the fields"))
    bulk = KINDS[kind].bulk
    if bulk is not None and not _identifies(bulk, fields):
        wrong.append((".fields", f"not those of a {kind}"))
    if wrong:
        raise Wrong(wrong)
    return Claim(Key(kind, given.pop("name")), **given)


def _identifies(bulk: BulkKind, fields: Fields) -> bool:
    try:
        bulk.identify(fields)
    except Exception:  # of whatever kind: the fields may hold anything
        return False
    return True


_PROVENANCE = choice(*map(str, Provenance))
_STATE = choice(*map(str, ClaimState))
_CLAIM = Record(
    _claim,
    {
        "kind": Member(checked(TEXT, _known_kind), get=lambda claim: claim.key.kind),
        "name": Member(NAME, get=lambda claim: claim.key.name),
        "owners": several(NAME),
        "provenance": Form(lambda value: Provenance(_PROVENANCE.read(value)), str),
        "state": Form(lambda value: ClaimState(_STATE.read(value)), str),
        "fields": _FIELDS,
        "fingerprint": TEXT,
        "origin": TEXT,
        "generation": COUNT,
        "epoch": Member(TEXT, ""),
        "nonce": Member(TEXT, ""),
        "original": Member(or_none(_FIELDS), None),
        "revert": Member(BOOLEAN, default=False),
    },
)
# The size of a file is that of its content, which the document holds elsewhere.
_FILE = Record(lambda **given: GenerationFile(**given, size=0), {"path": NAME, "sha256": TEXT})
_GENERATION = Record(
    Generation,
    {
        "number": NUMBER,
        "state": choice("applying", "converged", "partial", "failed", "reverted"),
        "created": MOMENT,
        "finished": or_none(MOMENT),
        "files": several(_FILE.form),
    },
)
_EVENT = Record(
    StoredEvent,
    {
        "sequence": NUMBER,
        "time": MOMENT,
        "kind": TEXT,
        "subject": TEXT,
        "message": TEXT,
        "generation": COUNT,
        "data": OBJECT,
    },
)
_TARGET = Record(Target, {"api_version": NAME, "kind": NAME, "name": NAME})
_DIRECTIVE = Record(Directive, {"op": NAME, "target": _TARGET.form, "reason": Member(TEXT, "")})


class _AlteredPart(Part):
    """Its digest is not that of what it holds."""


def _part(**given: Any) -> Part:
    digest = given.pop("digest")
    part = Part(**given)
    return part if part.digest == digest else _AlteredPart(**given)


_PART = Record(
    _part,
    {
        "source": NAME,
        "generation": NUMBER,
        "observed": MOMENT,
        "expires": or_none(MOMENT),
        "digest": TEXT,
        "resources": Member(_OBJECTS, ()),
        "directives": Member(several(_DIRECTIVE.form), ()),
        "action_plans": Member(_OBJECTS, ()),
    },
)
_DECLARING = Record(
    Declaring,
    {
        "source": NAME,
        "generation": COUNT,
        "observed": MOMENT,
        "syncing": Member(BOOLEAN, default=False),
    },
)
# With the generation of its source, which stands there.
_DECLARED = Record(
    lambda **given: Part(generation=0, observed=0.0, expires=None, **given),
    {"source": NAME, "numbers": several(NUMBER), "resources": _OBJECTS},
)
_LATCH = Record(
    Latch, {"digest": checked(TEXT, _sha256), "generation": NUMBER, "time": MOMENT, "reason": TEXT}
)
_ACTION = Record(
    Action,
    {
        "key": NAME,
        "source": NAME,
        "generation": COUNT,
        "state": choice(
            "pending", "approved", "running", "succeeded", "failed", "skipped", "rolledBack"
        ),
        "epoch": COUNT,
        "created": MOMENT,
        "changed": MOMENT,
        "deadline": MOMENT,
        "approved_by": Member(TEXT, ""),
        "reason": Member(TEXT, ""),
        "undoes": Member(TEXT, ""),
        "plan": OBJECT,
        "result": Member(OBJECT, {}),
    },
)


def _content(text: str | None, base64_: str | None) -> bytes:
    if (text is None) == (base64_ is None):
        raise ValueError("give either text or base64")
    if text is not None:
        return text.encode()
    try:
        return base64.b64decode(base64_ or "", validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


def _encode_content(content: bytes) -> dict[str, str]:
    """As text where it is text, so that people can read and compare it."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


_CONTENT = Record(
    lambda **given: _content(given["text"], given["base64"]),
    {"text": Member(or_none(TEXT), None), "base64": Member(or_none(TEXT), None)},
)


@dataclass(frozen=True, slots=True)
class Document:
    claims: tuple[Claim, ...]
    generations: tuple[Generation, ...]
    contents: Mapping[str, bytes]  # by their sha256
    events: tuple[StoredEvent, ...]
    notes: Mapping[str, Any]
    parts: tuple[Part, ...]
    declaring: tuple[Declaring, ...]
    declared: tuple[Part, ...]
    latches: tuple[Latch, ...]
    actions: tuple[Action, ...]
    format_version: int = FORMAT_VERSION


_DOCUMENT = Record(
    Document,
    {
        "format_version": whole_number(-(2**53)),
        "claims": several(_CLAIM.form),
        "generations": Member(several(_GENERATION.form), ()),
        "contents": Member(by_name(Form(_CONTENT.read, _encode_content)), {}),
        "events": Member(several(_EVENT.form), ()),
        "notes": Member(OBJECT, {}),
        "parts": Member(several(_PART.form), ()),
        "declaring": Member(several(_DECLARING.form), ()),
        "declared": Member(several(_DECLARED.form), ()),
        "latches": Member(several(_LATCH.form), ()),
        "actions": Member(several(_ACTION.form), ()),
    },
)
write = _DOCUMENT.write


@dataclass(frozen=True, slots=True)
class ReferenceArtifact:
    kind: str
    name: str
    owner: str
    attributes: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ReferenceDocument:
    artifacts: tuple[ReferenceArtifact, ...]


def _first_version(value: Any) -> None:
    if type(value) is not int or value != 1:
        raise ValueError("Input should be 1")


_REFERENCE_ARTIFACT = Record(
    ReferenceArtifact,
    {"kind": NAME, "name": NAME, "owner": NAME, "attributes": Member(or_none(by_name(TEXT)), None)},
)
_REFERENCE = Record(
    lambda **given: ReferenceDocument(given["artifacts"]),
    {
        "version": Form(_first_version),
        "updatedAt": Member(TEXT, ""),
        "artifacts": several(_REFERENCE_ARTIFACT.form),
    },
)


def parse(data: Mapping[str, Any]) -> Document | ReferenceDocument:
    """Either format, wholly checked; LedgerError lists every fault with its path."""
    unstorable = [f"{path}: {why}" for path, why in islice(values.unstorable(data), _SHOWN)]
    if unstorable:
        raise _refusal(unstorable)
    try:
        if "format_version" in data:
            version = data["format_version"]
            if isinstance(version, int) and version > FORMAT_VERSION:
                said = f"{version} is newer than this Holdfast knows ({FORMAT_VERSION})"
                raise Wrong([("format_version", said)])
            document = _DOCUMENT.read(dict(data))
            if problems := list(_inconsistencies(document)):
                raise _refusal(problems)
            return document
        if "artifacts" in data:
            return _REFERENCE.read(dict(data))
    except Wrong as error:
        faults = (f"{path.lstrip('.')}: {said}" for path, said in error.faults)
        raise _refusal(faults) from error
    raise _refusal(["neither an export (`format_version`) nor a reference ledger (`artifacts`)"])


def _refusal(problems: Iterable[str]) -> LedgerError:
    return LedgerError(
        "\n".join(["the import cannot be used, and the ledger is as it was:", *problems])
    )


def _inconsistencies(document: Document) -> Iterable[str]:
    if document.format_version != FORMAT_VERSION:
        yield f"format_version: {document.format_version} was never written"
    for at in _repeated(claim.key for claim in document.claims):
        yield f"claims[{at}]: {document.claims[at].key} is claimed twice"
    for sha256, content in document.contents.items():
        if hashlib.sha256(content).hexdigest() != sha256:
            yield f"contents.{sha256}: not the digest of this content"
    yield from _not_rising(
        "generations", "number", [generation.number for generation in document.generations]
    )
    for at, generation in enumerate(document.generations):
        for index, file in enumerate(generation.files):
            if file.sha256 not in document.contents:
                yield f"generations[{at}].files[{index}].sha256: not among the contents"
        for index in _repeated(file.path for file in generation.files):
            yield f"generations[{at}].files[{index}].path: named twice"
    yield from _not_rising("events", "sequence", [event.sequence for event in document.events])
    for at, part in enumerate(document.parts):
        if isinstance(part, _AlteredPart):
            yield f"parts[{at}].digest: not that of its resources and directives"
    for at in _repeated((part.source, part.generation) for part in document.parts):
        part = document.parts[at]
        yield f"parts[{at}]: {part.source}#{part.generation} is there twice"
    yield from _wrongly_declared(document)
    for at in _repeated(action.key for action in document.actions):
        yield f"actions[{at}]: {document.actions[at].key} is there twice"


def _wrongly_declared(document: Document) -> Iterable[str]:
    for at in _repeated(declaring.source for declaring in document.declaring):
        yield f"declaring[{at}]: {document.declaring[at].source} is there twice"
    known = {declaring.source for declaring in document.declaring}
    numbers: list[int] = []
    for at, part in enumerate(document.declared):
        if part.source not in known:
            yield f"declared[{at}].source: not among those that declare"
        if len(part.numbers or ()) != len(part.resources):
            yield f"declared[{at}].numbers: not one of each resource"
        yield from _not_rising(f"declared[{at}].numbers", "number", list(part.numbers or ()))
        numbers += part.numbers or ()
        for index, one in enumerate(part.resources):
            try:
                id_of(one)
            except (KeyError, TypeError):
                yield f"declared[{at}].resources[{index}]: has no kind or no name"
                return
        for index in _repeated(id_of(resource) for resource in part.resources):
            yield f"declared[{at}].resources[{index}]: is there twice"
    if len(set(numbers)) != len(numbers):
        yield "declared: two resources have one number"


def _repeated(names: Iterable[Hashable]) -> Iterable[int]:
    seen: set[Hashable] = set()
    for at, name in enumerate(names):
        if name in seen:
            yield at
        seen.add(name)


def _not_rising(records: str, member: str, numbers: Iterable[int]) -> Iterable[str]:
    last = 0
    for at, number in enumerate(numbers):
        if number <= last:
            yield f"{records}[{at}].{member}: not above the one before ({last})"
        last = number
