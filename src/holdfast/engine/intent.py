"""Intents: what a resource wants of an artifact."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.engine.artifact import Artifact, Batch, Key


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


@dataclass(frozen=True, slots=True)
class BulkIntent:
    """`ensure` for every artifact of a batch."""

    owner: str
    batch: Batch
    origin: str
    requires: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A resource that emits no intents yet because it lacks a fact."""

    owner: str
    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class Desired:
    """All that the effective config asks for."""

    intents: tuple[Intent | BulkIntent, ...]
    waiting: tuple[Waiting, ...] = ()
