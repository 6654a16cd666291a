"""Owners: who may declare over the API of routing control."""

from __future__ import annotations

from holdfast.dataclass import dataclass
from holdfast.resources.dynamic.source_name import OWNER

# It may take an object over from others, and gives it back when it is done.
ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Owner:
    name: str
    may_configure_instance: bool = False
    may_overlap: bool = False
    # How long what it declares outlasts its connection and its last heartbeat; None: for good.
    grace: float | None = None

    @property
    def source(self) -> str:
        return f"{OWNER}/{self.name}"


def owner_of(source: str) -> str:
    """The name of the owner that a source is; empty where it is something else."""
    kind, _, name = source.partition("/")
    return name if kind == OWNER else ""
