"""The export as a document: its models, and the checks no model can express."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
)

from holdfast.config.part import Directive, Part, Target
from holdfast.engine.artifact import BulkKind, Fields, Key, fingerprint
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.kinds import KINDS
from holdfast.errors import LedgerError
from holdfast.state import rows, values
from holdfast.state.actions import Action
from holdfast.state.latches import Latch

FORMAT_VERSION = 1

FieldMap = Annotated[dict[StrictStr, Any], AfterValidator(values.fields_from)]
Name = Annotated[StrictStr, Field(min_length=1)]
# Whatever comes next is numbered on from there, and SQLite has 64 bits for it.
_MOST = 2**53
Count = Annotated[StrictInt, Field(ge=0, le=_MOST)]
Number = Annotated[StrictInt, Field(ge=1, le=_MOST)]


def _known_kind(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"Holdfast has no artifact of kind {name!r}")
    return name


def _of_our_time(moment: datetime) -> datetime:
    if not 0 <= moment.timestamp() <= rows.LAST_MOMENT:
        raise ValueError(f"{moment} is no time that anything happened at")
    return moment


Kind = Annotated[StrictStr, AfterValidator(_known_kind)]
Moment = Annotated[AwareDatetime, AfterValidator(_of_our_time)]
# Of problems: whoever handed in another file altogether is told enough by these.
_SHOWN = 20


_Model = TypeVar("_Model", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ClaimPart(_Part):
    kind: Kind
    name: Name
    owners: list[Name]
    provenance: Provenance
    state: ClaimState
    fields_: FieldMap = Field(alias="fields")
    fingerprint: StrictStr
    origin: StrictStr
    generation: Count
    epoch: StrictStr = ""
    nonce: StrictStr = ""
    original: FieldMap | None = None
    revert: StrictBool = False

    def claim(self) -> Claim:
        return Claim(
            Key(self.kind, self.name),
            tuple(self.owners),
            self.provenance,
            self.state,
            self.fields_,
            self.origin,
            self.generation,
            self.epoch,
            self.nonce,
            self.original,
            self.revert,
        )


class FilePart(_Part):
    path: Name
    sha256: StrictStr


class GenerationPart(_Part):
    number: Number
    state: Literal["applying", "converged", "partial", "failed", "reverted"]
    created: Moment
    finished: Moment | None
    files: list[FilePart]


class EventPart(_Part):
    sequence: Number
    time: Moment
    kind: StrictStr
    subject: StrictStr
    message: StrictStr
    generation: Count
    data: dict[StrictStr, Any]


class TargetPart(_Part):
    api_version: Name
    kind: Name
    name: Name


class DirectivePart(_Part):
    op: Name
    target: TargetPart
    reason: StrictStr = ""


class ContributedPart(_Part):
    source: Name
    generation: Number
    observed: Moment
    expires: Moment | None
    digest: StrictStr
    resources: list[dict[StrictStr, Any]] = []
    directives: list[DirectivePart] = []
    action_plans: list[dict[StrictStr, Any]] = []

    def part(self) -> Part:
        directives = (
            Directive(one.op, Target(**one.target.model_dump()), one.reason)
            for one in self.directives
        )
        return Part(
            self.source,
            self.generation,
            self.observed.timestamp(),
            None if self.expires is None else self.expires.timestamp(),
            tuple(self.resources),
            tuple(directives),
            tuple(self.action_plans),
        )


class ActionPart(_Part):
    key: Name
    source: Name
    generation: Count
    state: Literal["pending", "approved", "running", "succeeded", "failed", "skipped", "rolledBack"]
    epoch: Count
    created: Moment
    changed: Moment
    deadline: Moment
    approved_by: StrictStr = ""
    reason: StrictStr = ""
    undoes: StrictStr = ""
    plan: dict[StrictStr, Any]
    result: dict[StrictStr, Any] = {}

    def action(self) -> Action:
        return Action(
            self.key,
            self.source,
            self.generation,
            self.state,
            self.created.timestamp(),
            self.changed.timestamp(),
            self.plan,
            self.epoch,
            self.deadline.timestamp(),
            self.approved_by,
            self.reason,
            self.undoes,
            self.result,
        )


class LatchPart(_Part):
    digest: Annotated[StrictStr, Field(pattern="^[0-9a-f]{64}$")]
    generation: Number
    time: Moment
    reason: StrictStr

    def latch(self) -> Latch:
        return Latch(self.digest, self.generation, self.time.timestamp(), self.reason)


class ContentPart(_Part):
    text: StrictStr | None = None
    base64: StrictStr | None = None

    def content(self) -> bytes:
        if (self.text is None) == (self.base64 is None):
            raise ValueError("give either text or base64")
        if self.text is not None:
            return self.text.encode()
        try:
            return base64.b64decode(self.base64 or "", validate=True)
        except binascii.Error as error:
            raise ValueError(f"not base64: {error}") from error


class Document(_Part):
    format_version: StrictInt
    claims: list[ClaimPart]
    generations: list[GenerationPart] = []
    contents: dict[StrictStr, ContentPart] = {}
    events: list[EventPart] = []
    notes: dict[StrictStr, Any] = {}
    parts: list[ContributedPart] = []
    latches: list[LatchPart] = []
    actions: list[ActionPart] = []


class ReferenceArtifact(_Part):
    kind: Name
    name: Name
    owner: Name
    attributes: dict[StrictStr, StrictStr] | None = None


class ReferenceDocument(_Part):
    version: Literal[1]
    updated_at: StrictStr = Field(default="", alias="updatedAt")
    artifacts: list[ReferenceArtifact]


def parse(data: Mapping[str, Any]) -> Document | ReferenceDocument:
    """Either format, wholly checked; LedgerError lists every fault with its path."""
    unstorable = [f"{path}: {why}" for path, why in islice(values.unstorable(data), _SHOWN)]
    if unstorable:
        raise _refusal(unstorable)
    if "format_version" in data:
        version = data["format_version"]
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise _refusal(
                [f"format_version: {version} is newer than this Holdfast knows ({FORMAT_VERSION})"]
            )
        document = _validated(Document, data)
        if problems := list(_inconsistencies(document)):
            raise _refusal(problems)
        return document
    if "artifacts" in data:
        return _validated(ReferenceDocument, data)
    raise _refusal(["neither an export (`format_version`) nor a reference ledger (`artifacts`)"])


def encode_content(content: bytes) -> dict[str, str]:
    """As text where it is text, so that people can read and compare it."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _validated(model: type[_Model], data: Mapping[str, Any]) -> _Model:
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        raise _refusal(
            f"{_path(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_url=False)
        ) from error


def _path(place: tuple[int | str, ...]) -> str:
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.lstrip(".")


def _refusal(problems: Iterable[str]) -> LedgerError:
    return LedgerError(
        "\n".join(["the import cannot be used, and the ledger is as it was:", *problems])
    )


def _identifies(bulk: BulkKind, fields: Fields) -> bool:
    try:
        bulk.identify(fields)
    except Exception:  # of whatever kind: the fields may hold anything
        return False
    return True


def _inconsistencies(document: Document) -> Iterable[str]:
    if document.format_version != FORMAT_VERSION:
        yield f"format_version: {document.format_version} was never written"
    keys: set[Key] = set()
    for at, part in enumerate(document.claims):
        key = Key(part.kind, part.name)
        if key in keys:
            yield f"claims[{at}]: {key} is claimed twice"
        keys.add(key)
        if part.fingerprint != fingerprint(part.fields_):
            yield f"claims[{at}].fingerprint: not that of the fields"
        bulk = KINDS[part.kind].bulk
        if bulk is not None and not _identifies(bulk, part.fields_):
            yield f"claims[{at}].fields: not those of a {part.kind}"
    for sha256, content in document.contents.items():
        try:
            if hashlib.sha256(content.content()).hexdigest() != sha256:
                yield f"contents.{sha256}: not the digest of this content"
        except ValueError as error:
            yield f"contents.{sha256}: {error}"
    last = 0
    for at, generation in enumerate(document.generations):
        if generation.number <= last:
            yield f"generations[{at}].number: not above the one before ({last})"
        last = generation.number
        paths: set[str] = set()
        for index, file in enumerate(generation.files):
            if file.sha256 not in document.contents:
                yield f"generations[{at}].files[{index}].sha256: not among the contents"
            if file.path in paths:
                yield f"generations[{at}].files[{index}].path: named twice"
            paths.add(file.path)
    last = 0
    for at, event in enumerate(document.events):
        if event.sequence <= last:
            yield f"events[{at}].sequence: not above the one before ({last})"
        last = event.sequence
    handed_in: set[tuple[str, int]] = set()
    for at, given in enumerate(document.parts):
        if (given.source, given.generation) in handed_in:
            yield f"parts[{at}]: {given.source}#{given.generation} is there twice"
        handed_in.add((given.source, given.generation))
        if given.part().digest != given.digest:
            yield f"parts[{at}].digest: not that of its resources and directives"
    keys_of_actions: set[str] = set()
    for at, one in enumerate(document.actions):
        if one.key in keys_of_actions:
            yield f"actions[{at}]: {one.key} is there twice"
        keys_of_actions.add(one.key)
