"""What drivers saw. Unknown is never empty: what could not be read is named as such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact, Batch, Key, Value


@dataclass(frozen=True, slots=True)
class Sighting:
    """One object as it is outside."""

    artifact: Artifact
    tag: str = ""  # our kernel tag on it ("protocol 72"), empty where it carries none of ours
    holder: str = ""  # who else it seems to belong to ("protocol static"), for people to read
    nonce: str = ""  # what a pending claim may recognise its object by
    transient: bool = False  # the kernel's own cache entry, nobody's declared state
    unproven: bool = False  # it carries our tag where that is no proof (`unrecovered`)
    # The tag it is to carry, where the one it carries was given up since. None: it has that.
    retag: Value = None


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of others that the kernel would take along with a change of ours."""

    what: str  # with its holder: "route 10.0.0.0/8 (protocol static)"
    field: str = ""  # the field whose change takes it; "": the object's end, or its making


@dataclass(frozen=True, slots=True)
class Along:
    """Something of ours that the kernel would take along with a change of ours."""

    key: Key
    what: str  # it, or what of it goes: "the leg over lan0 of route 10.0.0.0/8"
    field: str = ""  # as that of a Loss
    put_back: bool = True  # in the same pass, as far as what is changed lets it be there


class BulkSighting(Protocol):
    """A bulk kind as observed: own objects as packed bytes, foreign ones only where they matter."""

    @property
    def tag(self) -> int:
        """What stands in the kind's writer field of objects that are made now."""

    @property
    def tag_text(self) -> str:
        """The same for people to read: "protocol 72"."""

    @property
    def exact(self) -> bool:
        """Own objects are known to be those of the batches asked for, each as wanted, and no
        more. False: they have to be compared."""

    @property
    def own(self) -> frozenset[bytes] | set[bytes]:
        """The bodies of every object that carries our tag."""

    @property
    def foreign(self) -> Mapping[bytes, Sequence[Sighting]]:
        """Objects without our tag at wanted or claimed identities (scope + key)."""

    @property
    def impaired(self) -> Mapping[bytes, str]:
        """Ours that are there as declared, and why they are not of the use that was meant: what
        others have put before them, or into them. By identity; not all are found."""

    def pack(self, batch: Batch) -> list[bytes] | None:
        """The body each key of a batch would be observed as; None while something it names
        (a link) does not exist, so that none of it can be there."""

    def unpack(self, body: bytes) -> tuple[Any, bytes]:
        """The template and the key of an own body."""

    def single(self, template: Any, key: bytes) -> Sighting:
        """One own object by itself, with the tag it carries."""


@dataclass(frozen=True, slots=True)
class Observed:
    sightings: Mapping[Key, Sequence[Sighting]] = field(default_factory=dict)
    bulk: Mapping[str, BulkSighting] = field(default_factory=dict)
    # Kind -> why none of it could be read; key -> why that one could not.
    unknown: Mapping[str | Key, str] = field(default_factory=dict)
    # Seen by an earlier look, and nothing said since that it changed: what others require.
    standing: Set[Key] = frozenset()
    # What others would lose if what is declared came about, by the artifact that is changed for it.
    losses: Mapping[Key, Sequence[Loss]] = field(default_factory=dict)
    along: Mapping[Key, Sequence[Along]] = field(default_factory=dict)  # what of ours would go, too
    links: Set[str] = frozenset()  # the names of all there are, whoever has made them

    def why_unknown(self, key: Key) -> str:
        """Empty where it was looked for and could be read, or is not there."""
        return self.unknown.get(key.kind) or self.unknown.get(key, "")
