"""Claims: what this installation created, adopted or set, as the ledger remembers it."""

from __future__ import annotations

from enum import StrEnum

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Fields, Key, fingerprint


class Provenance(StrEnum):
    CREATED = "created"
    ADOPTED = "adopted"
    SET = "set"  # a setting that always exists: a sysctl, the hostname, the MTU of a NIC


class ClaimState(StrEnum):
    PENDING = "pending"  # written before the create; the object may or may not be there
    OWNED = "owned"
    DELETING = "deleting"  # written before the delete


class Lasting(StrEnum):
    """How long a claim that is written now is kept at least."""

    FOR_GOOD = "for good"
    THIS_BOOT = "until the machine is booted anew"
    THIS_PROCESS = "until this process ends"


@dataclass(frozen=True, slots=True)
class Claim:
    key: Key
    owners: tuple[str, ...]
    provenance: Provenance
    state: ClaimState
    fields: Fields  # as created, adopted or last written, in the system's read-back form
    origin: str  # where the resource stood in the configuration
    generation: int
    epoch: str = ""  # boot and network namespace: `BOOT/NAMESPACE`; "" for what outlives both
    nonce: str = ""  # pending creates: what marks the object as ours although it has no tag yet
    original: Fields | None = None  # settings: the values before we changed them
    revert: bool = False  # set back to these once nothing declares it

    @property
    def since(self) -> str:
        """When it was made, for people to read."""
        if not self.generation:
            return "before the first apply"
        return f"in generation {self.generation}"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.fields)
