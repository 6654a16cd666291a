"""Artifacts: the objects outside that Holdfast makes, changes, and deletes.

An artifact has a kind, a name (its identity within the kind, written the way `ip` would say it)
and fields. Two artifacts with the same kind and name are the same object; what differs between
their fields is drift.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.dataclass import dataclass, field

if TYPE_CHECKING:
    from holdfast.engine.plan import Changes, Cost, Operation, Verb

# What a field may hold: anything JSON can say, with tuples for lists so that it can be hashed.
Value = str | int | bool | None | tuple[str, ...]
Fields = Mapping[str, Value]


# A bulk kind, and a group of its artifacts that `BulkKind.group` tells apart.
BulkGroup = tuple[str, str]


class Key(NamedTuple):
    """The identity of an artifact: `address 192.0.2.1/24 dev lan0`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Artifact:
    key: Key
    fields: Fields
    payload: bytes = field(default=b"", repr=False, compare=False)  # written, never shown


def fingerprint(fields: Fields) -> str:
    """A short digest of fields, the same whatever their order."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def in_words(value: Value | list[str]) -> str:
    """A field's value for people."""
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(value) if value else "(none)"
    return str(value) if value != "" else "(none)"


class PartialLook(Enum):
    """What a pass that does not look at everything can look at."""

    NOTHING = auto()  # only a full pass looks at the kind
    ONE = auto()  # the driver looks at one artifact as easily as at all of them
    KIND = auto()  # the driver looks at the whole kind, and single artifacts are picked out of it


class MadeOf(Enum):
    """What an artifact is made anew from once it was changed or deleted."""

    FIELDS = auto()  # they hold all of it
    CONTENT = auto()  # what stands behind the fields is read where it stands
    DECLARATION = auto()  # the declaration in force, while the object is as that says
    DECLARATION_NOW = auto()  # the declaration in force, whatever the object was made of


class NamedBy(Enum):
    """What a name begins with, for people who say only that much of it."""

    ITSELF = auto()
    ADDRESS = auto()
    DESTINATION = auto()  # a prefix, "default" for the one that holds all addresses


@dataclass(frozen=True, slots=True)
class Naming:
    """How people name an artifact on the command line."""

    aliases: tuple[str, ...] = ()  # other words for the kind, which `ip` and `nft` take too
    by: NamedBy = NamedBy.ITSELF
    sole: str = ""  # the name of the only artifact there is of the kind
    short: Callable[[str], str] = lambda _name: ""  # one word that stands for the whole name
    # Whether a word without a kind can only be about this one, or may be if it is about no other.
    recognised: Callable[[str], bool] = lambda _word: False
    guessed: Callable[[str], bool] = lambda _word: False


@dataclass(frozen=True, slots=True)
class ArtifactKind:
    """The one declaration of an artifact kind: how it is told apart, owned and cleaned up."""

    name: str
    identity: str  # what makes up the name, for the reference documentation
    fields: tuple[str, ...]  # what is compared
    # Those of them that nobody declares: whatever is seen there, somebody else has put.
    surplus: tuple[str, ...] = field(default=(), kw_only=True)
    proof: str  # how ownership is proven
    cleanup: str  # how an orphan is removed, or why it never is
    deletes_orphans: bool
    # Kinds that do not: which objects, as they were seen, go all the same if Holdfast created them.
    deletes_created: Callable[[Fields], bool] = lambda _seen: False
    after: tuple[str, ...] = ()  # kinds that come before this one when creating
    # Kinds that need what it holds (a port): it goes before one of them is made or changed, and
    # comes back once they are gone.
    makes_way_for: tuple[str, ...] = ()
    # No resource declares it: the claims on it come with the ledger of another system.
    imported: bool = False
    # Whether an object seen with these fields needs replace, not update, for a field to be so.
    immutable: Callable[[Fields, str, Value], bool] = lambda _seen, _field, _desired: False
    setting: bool = False  # always there: ensure sets values, nothing is created or deleted
    # Settings: whether values that were there before ours can be set again.
    restores: Callable[[Fields], bool] = lambda _before: True
    adoption: str = "if it is as declared"  # which of others' can be adopted
    coexists: bool = False  # a foreign object of the same name does not stand in the way of ours
    matches: Callable[[str, Value, Value], bool] = lambda _field, desired, seen: desired == seen
    # Fields that stand for a content: people are shown what differs in that instead.
    digests: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()  # fields that, once claimed, prove that it is the same object
    writer_field: str = ""  # who made it: a claim does not hold on what another writer made since
    nonce_field: str = ""  # a field that tells our object from others' without a random mark
    survives_reboot: bool = False
    # Whether an object tells by itself that Holdfast made it, whatever became of the claim on it.
    tells_its_maker: bool = False
    # Fields of an object that are what others make them, unless somebody declares them.
    follows: Callable[[Fields], frozenset[str]] = lambda _seen: frozenset()
    # Why another program's artifact of this kind speaks against a wanted one; "" if it does not.
    objection: Callable[[Artifact, Artifact], str] | None = None
    # What the router is without once no artifact is left of which this says the same: "the
    # firewall", "IPv4 on lan0". Empty for what others can do without.
    vital: Callable[[Artifact], str] = lambda _artifact: ""
    # What suffers while an operation on it waits, in words that "depends on it" follows: it is put
    # back at once however often others undo it. Empty for what is put back less and less often.
    # A link or a setting may be urgent, and is not `vital`: a plan never takes it away.
    urgent: Callable[[Artifact, Operation], str] = lambda _artifact, _operation: ""
    # What an operation stops, if only for a moment, in words that follow its name: "restarts",
    # "goes down for a moment". Empty where nothing notices.
    interrupts: Callable[[Operation], str] = lambda _operation: ""
    # What an operation may cost whoever uses the network meanwhile, and what they would notice;
    # None: a low risk that nobody notices.
    risk: Callable[[Verb, Artifact | Batch, Changes], Cost] | None = None
    partial_look: PartialLook = PartialLook.NOTHING
    # The driver sees an artifact only if it is told the name: nobody can list every file there is.
    seen_by_name: bool = False
    # The kernel keeps our tag on the object, so that it is known as ours without a claim.
    tagged: bool = False
    made_of: MadeOf = MadeOf.FIELDS
    # What is declared in addition when one that was there before is made again.
    made_again_with: Fields = field(default_factory=dict)
    # It is a program that runs, or that reads it. Once it was tried, what runs is in place; whether
    # it does is up to the program and to whoever restarts it, and it may not have run before.
    runs: bool = False
    # It needs a program that the machine may lack.
    needs_program: bool = False
    # The file that an artifact stands in, before `--root`; empty if in none.
    place: Callable[[Key], str] = lambda _key: ""
    # The link that others stand on with it; empty if none.
    carrying_link: Callable[[Key], str] = lambda _key: ""
    # One in words, the way `ip` says it, from its name and fields; None: its kind and name.
    shown: Callable[[str, Mapping[str, Any]], list[str]] | None = None
    naming: Naming = Naming()
    # What an object is for, in words that others of its kind share. One that nothing declares stays
    # while another that is declared for the same waits or could not be made: a NIC that was renamed
    # keeps its addresses, and a link whose new address is refused keeps the old one.
    purposes: Callable[[Artifact], frozenset[str]] = lambda _artifact: frozenset()
    bulk: BulkKind | None = None

    @property
    def packing(self) -> BulkKind:
        if self.bulk is None:
            raise TypeError(f"{self.name} is not a bulk kind")
        return self.bulk


@dataclass(frozen=True, slots=True)
class BulkKind:
    """How a bulk kind turns templates and packed keys into identities and artifacts."""

    scope: Callable[[Any], bytes]  # template -> the shared part of the identity
    expand: Callable[[Any, bytes], Artifact]  # template, key -> one artifact
    identify: Callable[[Fields], tuple[bytes, bytes]]  # fields of an artifact -> scope, key
    # The group that all artifacts of a scope are in: the routing table of a route.
    group: Callable[[bytes], str]
    template_of: Callable[[Artifact], tuple[Any, bytes]]  # the inverse of expand
    # Whether anybody can declare what has this template, so that it can be asked for again.
    declarable: Callable[[Any], bool] = lambda _template: True
    # Why nothing can be made on something that it requires, as that is; empty if it can.
    unfit: Callable[[Key, Fields], str] = lambda _key, _fields: ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Many artifacts of a bulk kind that share everything but a packed key.

    100 000 routes through one gateway are one template and 100 000 short byte strings; no object
    per route exists until one has to be talked about.
    """

    kind: ArtifactKind
    template: Any  # hashable; the kind knows what it is
    keys: Sequence[bytes]

    @property
    def scope(self) -> bytes:
        """The shared part of the identity: scope + key is unique within the kind."""
        return self.kind.packing.scope(self.template)

    def __len__(self) -> int:
        return len(self.keys)

    def artifact(self, key: bytes) -> Artifact:
        return self.kind.packing.expand(self.template, key)
