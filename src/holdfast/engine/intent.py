"""Intents: what a resource wants of an artifact."""

from __future__ import annotations

from enum import StrEnum

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact, Batch, BulkGroup, Key


class Action(StrEnum):
    ENSURE = "ensure"  # it shall exist with these fields, and we may manage it
    OBSERVE = "observe"  # others' business; resources that need it wait until it is there
    DELETE = "delete"  # it shall not exist: deleted if provably ours


@dataclass(frozen=True, slots=True)
class Intent:
    owner: str  # "IPv4StaticAddress/lan"
    artifact: Artifact
    origin: str  # "router.yaml:12:5", where the resource stands
    action: Action = Action.ENSURE
    requires: tuple[Key, ...] = ()  # artifacts that must be in place first
    creates: bool = True  # False: only settle the fields of what already exists (a physical NIC)
    revert: bool = False  # settings: once nothing declares it, set it back to what it was before


@dataclass(frozen=True, slots=True)
class BulkIntent:
    """`ensure` for every artifact of a batch."""

    owner: str
    batch: Batch
    origin: str
    requires: tuple[Key, ...] = ()
    # A fact about them that is not known yet, "waits for …": where they are is known, what they
    # are is not. None is made or changed until it is, what is in their place stays, and no pass
    # has converged.
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A resource that emits no intents yet because it lacks a fact."""

    owner: str
    origin: str
    reason: str  # "waits for a delegated prefix on wan"
    # The fact is unknown, so what the owner has outside stays. False: the fact is known to be
    # gone, and what it led to is an orphan like any other.
    keeps: bool = True
    groups: frozenset[BulkGroup] = frozenset()  # what carries our tag there is the owner's
    required: bool = False  # until the fact is there, no pass has converged
    # Only what is in `groups` waits; everything else of the owner is declared as it shall be.
    groups_only: bool = False
    # Not a fact is lacking: what it asks for cannot be told for a fault of Holdfast's. Nothing at
    # all is deleted meanwhile, since anything might be what it asks for.
    fault: bool = False

    def __str__(self) -> str:
        says = self.reason if self.reason.startswith("waits for ") else f"waits: {self.reason}"
        return f"{self.owner} {says}"


@dataclass(frozen=True, slots=True)
class Desired:
    """All that the effective config asks for."""

    intents: tuple[Intent | BulkIntent, ...]
    waiting: tuple[Waiting, ...] = ()
