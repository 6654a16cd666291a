"""What routing control needs of the place where sources declare single resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from holdfast.config.part import Raw, Target
from holdfast.dataclass import dataclass

if TYPE_CHECKING:
    from holdfast.runtime.routes.conflicts import Claimed

Held = Mapping[str, Mapping[Target, Raw]]  # by source


@dataclass(frozen=True, slots=True)
class Outcome:
    target: Target
    refusal: str = ""  # why it could not be taken; empty where it was
    unchanged: bool = False  # it was so already
    applied: bool = False  # a pass saw it in place


@dataclass(frozen=True, slots=True)
class Batch:
    source: str
    put: Sequence[Raw] = ()
    withdraw: Sequence[Target] = ()
    each: bool = False  # what can be taken is; else one that cannot be is enough to take none
    wait: float = 0.0  # seconds to wait for a pass to see it in place
    dry_run: bool = False


class Declarations(Protocol):
    def held(self) -> Held:
        """What each source besides the startup file declares. Another value where somebody else
        changed it; the same, or another, once `declare` did."""

    def others(self) -> Sequence[Claimed]:
        """What the startup file declares, and parts whose resources have names of their own.
        Another value once that changed."""

    async def declare(self, batch: Batch) -> Sequence[Outcome]:
        """In the order of `put`, then of `withdraw`."""

    async def begin_sync(self, source: str) -> None:
        """What is put from now on counts as asserted; nothing else does."""

    async def complete_sync(self, source: str, *, dry_run: bool) -> Sequence[Target]:
        """Withdraws what was not asserted since it began; answers what that was."""
