"""Parts: what a source other than the startup file contributes, for as long as it is in force."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.dataclass import dataclass, field

# A document of a resource as its source sent it: apiVersion, kind, metadata, spec.
Raw = Mapping[str, Any]

# What the files of a generation call a part that was in force: `dynamic:Plugin/inventory`.
RECORD = "dynamic:"


class Target(NamedTuple):
    """The identity of a resource. Targets are exact: there are no wildcards."""

    api_version: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Directive:
    op: str  # "mask" is the only one there is
    target: Target
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    source: str  # "Plugin/oci-inventory", "Owner/ci", "Manager/main"
    generation: int  # within the source, always rising
    observed: float  # seconds since 1970
    expires: float | None  # None: in force until it is withdrawn
    resources: tuple[Raw, ...] = ()
    directives: tuple[Directive, ...] = ()
    # Proposals for providers. They never enter the effective config.
    action_plans: tuple[Raw, ...] = ()
    # What whoever handed it in calls it. It is a note of the ledger's, not a part of the part.
    called: str = field(default="", compare=False)
    # Of a source that declares by increments, the number of each resource: they rise in the order
    # in which any source first declared one. None: the source hands in whole parts.
    numbers: tuple[int, ...] | None = None

    @property
    def by_increments(self) -> bool:
        return self.numbers is not None

    @property
    def name(self) -> str:
        return f"{self.source.replace('/', '-')}-{self.generation}"

    @property
    def ref(self) -> str:
        """How masks and events name it: `Plugin/oci-inventory#12`. A record of what was in force
        (generation 0) does not say which it was, and what was declared by increments came with
        many."""
        return self.source if self.by_increments or not self.generation else self.numbered

    @property
    def numbered(self) -> str:
        return f"{self.source}#{self.generation}"

    @property
    def digest(self) -> str:
        """Of what it contributes to the configuration; when it was observed is no part of it. By
        increments, each that changes something has a generation of its own."""
        if self.by_increments:
            return f"increments:{self.generation}"
        directives = [[d.op, *d.target, d.reason] for d in self.directives]
        payload = {"resources": list(self.resources), "directives": directives}
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def expired(self, now: float) -> bool:
        return self.expires is not None and now >= self.expires


Id = tuple[str, str]  # kind and name of a resource


def id_of(document: Raw) -> Id:
    """Of a document whose frame was checked."""
    return str(document["kind"]), str(document["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource that a source declared by itself, with its number (`Part.numbers`)."""

    number: int
    document: Raw


@dataclass(frozen=True, slots=True)
class Amendment:
    """What a batch of increments changes of what its source declares."""

    source: str
    generation: int
    observed: float
    put: tuple[Declared, ...] = ()  # in order of their numbers; some take the place of others
    withdrawn: tuple[int, ...] = ()  # numbers
