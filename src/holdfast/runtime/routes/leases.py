"""Leases: what an owner declares is withdrawn when nothing was heard of it for its grace.

Time counts only while Holdfast can be reached: an owner that was connected when Holdfast ended has
its whole grace when it starts again, and one whose grace ran already has what was left of it. So
what is left is noted, and no moment of a clock that may jump.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from holdfast.dataclass import dataclass, field
from holdfast.runtime.routes.overrides import Notes
from holdfast.runtime.routes.owners import Owner
from holdfast.state.values import JSON

NOTE = "route-leases"
# What is left is noted again when it is less by so much: a restart gives back no more than that.
NOTED_S = 5.0


@dataclass(slots=True)
class Leases:
    notes: Notes
    clock: Callable[[], float]  # one that only rises
    _ends: dict[str, float] = field(default_factory=dict)  # by owner, while nobody holds its lease
    _held: Counter[str] = field(default_factory=Counter)  # streams that hold it
    _noted: dict[str, float] = field(default_factory=dict)  # seconds left, as the ledger has it

    def start(self, owners: Mapping[str, Owner], declaring: set[str]) -> None:
        """declaring: the owners that declare something."""
        found = self.notes.read(NOTE)
        left = found if isinstance(found, dict) else {}
        for name in declaring:
            owner = owners.get(name)
            if owner is None or owner.grace is None:
                continue
            noted = left.get(name)
            rest = float(noted) if isinstance(noted, int | float) else owner.grace
            self._ends[name] = self.clock() + max(0.0, min(rest, owner.grace))
        self._noted = {
            name: float(rest) for name, rest in left.items() if isinstance(rest, int | float)
        }

    def heard(self, owner: Owner) -> None:
        """Each call of an owner is a sign of life."""
        if owner.grace is None:
            self._ends.pop(owner.name, None)
        elif not self._held[owner.name]:
            self._ends[owner.name] = self.clock() + owner.grace

    def hold(self, owner: Owner) -> None:
        self._held[owner.name] += 1
        self._ends.pop(owner.name, None)

    def release(self, owner: Owner) -> None:
        self._held[owner.name] -= 1
        if not self._held[owner.name]:
            del self._held[owner.name]
            self.heard(owner)

    def connected(self, name: str) -> bool:
        return self._held[name] > 0

    @property
    def streams(self) -> int:
        return self._held.total()

    def left(self, name: str) -> float | None:
        """None: it does not run."""
        end = self._ends.get(name)
        return None if end is None else max(0.0, end - self.clock())

    def due(self, owners: Mapping[str, Owner]) -> list[Owner]:
        """Those whose grace is over, until `end` says that it was seen to."""
        now = self.clock()
        over = [name for name, end in self._ends.items() if end <= now]
        for name in over:
            if name not in owners:  # it is none any more, and contributes nothing
                del self._ends[name]
        return [owners[name] for name in over if name in owners]

    def end(self, owner: Owner) -> None:
        self._ends.pop(owner.name, None)

    async def note(self) -> None:
        """Only of those whose grace runs down: others have all of it when Holdfast starts again."""
        left = {name: round(self.left(name) or 0.0, 1) for name in self._ends}
        same = left.keys() == self._noted.keys() and all(
            abs(self._noted[name] - rest) < NOTED_S for name, rest in left.items()
        )
        if not same:
            self._noted = left
            noted: dict[str, JSON] = dict(left)
            await self.notes.write(NOTE, noted)
