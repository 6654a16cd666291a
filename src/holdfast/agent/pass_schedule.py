"""When there is to be another pass, over how much, and why."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.watch.hint import FACT, Hint
from holdfast.dataclass import dataclass, field
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.partial_pass import ALONE, Touched

# One change outside brings several hints; a pass waits this long for the rest of them.
DEBOUNCE_S = 0.01
# The kernel tells of one change at once, and somebody may miss what is gone.
_PARTIAL_S = 0.0015
# What passes that others give cause for may take of a core in the long run, and at once.
_SHARE, _AT_ONCE_S = 0.2, 0.5
# However much one of them took, the next has to wait for five seconds at most.
_DEBT_S = 1.0
TIMER, AGAIN = "the timer", "what is tried again"


@dataclass(frozen=True, slots=True)
class Reason:
    """For a pass: a full one, or one over what was gathered."""

    causes: tuple[str, ...]
    full: bool
    gathered: PendingHints
    of_others: bool = False  # nothing but what others do gave cause for it


@dataclass(slots=True)
class PassSchedule:
    """What is told while a pass runs leads to the next one: nothing told is lost."""

    _causes: dict[str, None] = field(default_factory=dict)
    _of_others: set[str] = field(default_factory=set)  # causes that may come without end
    _due: float = math.inf  # a full pass
    _gathered: PendingHints = field(default_factory=PendingHints)
    _partial_due: float = math.inf
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _budget: float = _AT_ONCE_S
    _counted: float = -math.inf  # when the budget was last looked at

    def tell(self, cause: str, patience: float = DEBOUNCE_S) -> None:
        """There is to be a full pass within so many seconds."""
        self._causes[cause] = None
        self._due = min(self._due, _now() + patience)
        self._told.set()

    def tell_of_many(self, cause: str) -> None:
        """There is to be a full pass, but not one for each time this is told."""
        self._of_others.add(cause)
        self.tell(cause, max(DEBOUNCE_S, self._wait()))

    def tell_of_increments(self) -> None:
        """They come at once, with whatever was heard by then."""
        self._partial_due = min(self._partial_due, _now())
        self._told.set()

    def hear(self, hint: Hint) -> None:
        """Of a fact or an artifact."""
        if hint.kind == FACT:
            self.tell_of_many(f"a {hint.key.name}" if hint.key is not None else "a fact")
        elif not hint.kind:
            self.note(hint)
            self.tell_of_many("hints that were lost")
        elif hint.kind not in ALONE:
            self.note(hint)
            self.tell_of_many(f"{hint.kind}s")
        else:
            self.hint(hint)
            if hint.kind == ADDRESS.name:
                # Facts are made of addresses, and routes may have gone with one, silently.
                self.tell_of_many("addresses")

    def hint(self, hint: Hint) -> None:
        """There is to be a partial pass over this, or a full one that is due before."""
        now = _now()
        self._gathered.add(hint, now)
        self._soon(now)

    def note(self, hint: Hint) -> None:
        """For whichever pass comes next."""
        self._gathered.add(hint, _now())

    def touch(self, touched: Touched) -> None:
        now = _now()
        self._gathered.touch(touched, (), now)
        self._soon(now)

    def spent(self, reason: Reason, seconds: float) -> None:
        """A pass took so much of a core."""
        if reason.of_others:
            self._wait()
            self._budget = max(self._budget - seconds, -_DEBT_S)

    async def next(self, latest: float, partial_latest: float = math.inf) -> Reason:
        """Waits until there is to be a pass, which by the clock of the loop is a full one at
        `latest`, and one over nothing at `partial_latest`."""
        while (left := min(self._due, self._partial_due, latest, partial_latest) - _now()) > 0:
            self._told.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._told.wait()
        gathered, self._gathered, self._partial_due = self._gathered, PendingHints(), math.inf
        gathered.meanwhile = self._gathered
        if _now() < min(self._due, latest):
            return Reason(tuple(sorted(gathered.all_kinds)) or (AGAIN,), False, gathered, True)
        causes = (*self._causes, *(() if self._causes else (TIMER,)))
        of_others = self._of_others.issuperset(causes)
        self._causes.clear()
        self._of_others.clear()
        self._due = math.inf
        return Reason(causes, True, gathered, of_others)

    def _soon(self, now: float) -> None:
        self._partial_due = min(self._partial_due, now + max(_PARTIAL_S, self._wait()))
        self._told.set()

    def _wait(self) -> float:
        """How long until there is something left of the budget."""
        now = _now()
        if now > self._counted:
            earned = (now - self._counted) * _SHARE if self._counted > -math.inf else 0.0
            self._budget = min(self._budget + earned, _AT_ONCE_S)
            self._counted = now
        return max(0.0, -self._budget / _SHARE)


def _now() -> float:
    return asyncio.get_running_loop().time()
