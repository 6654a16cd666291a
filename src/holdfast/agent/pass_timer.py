"""When everything is looked at, whatever happens, and when something is tried again."""

from __future__ import annotations

import asyncio
import time

from holdfast.agent.pass_schedule import PassSchedule, Reason
from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.reconciler import Done
from holdfast.agent.retry_policy import RetryPolicy
from holdfast.dataclass import dataclass

# A full pass takes no more of a core than this in the long run: it comes less often then.
_SHARE = 0.005
# A pass that could not be carried out is tried again after so long.
_AGAIN_S = 5.0


@dataclass(slots=True)
class PassTimer:
    """On the event loop, and by its clock."""

    schedule: PassSchedule
    retries: RetryPolicy
    interval: float
    _full_at: float = 0.0  # when the next full pass is due, whatever happens
    _full_due: float = 0.0  # the same, by the last one
    _not_before: float = 0.0  # for what is tried again

    async def next(self, change: float | None) -> Reason:
        """Waits until there is to be a pass. change: when the configuration changes by itself, in
        seconds since 1970."""
        return await self.schedule.next(self._due_at(change), self._retry_at())

    def begin_full(self) -> None:
        self._full_at = _now() + self.interval

    def full_done(self, reason: Reason, done: Done) -> None:
        self.schedule.spent(reason, done.cpu)
        if not done.partial:
            self._full_due = _now() + max(self.interval, done.cpu / _SHARE)
        self._full_at = self._full_due
        if done.untried:
            self.schedule.tell_of_many("what is left to do")

    def failed(self, *, again: bool) -> None:
        """again: it is tried again by itself."""
        if again:
            self.schedule.tell("a pass that failed", _AGAIN_S)
        self._not_before = _now() + _AGAIN_S

    def add_overdue(self, hints: PendingHints) -> bool:
        """Adds what is to be tried again by now, and answers whether there is any."""
        now = _now()
        if now < self._not_before:
            return False
        due = any(when <= now for _, when in self.retries.due())
        hints.touch(self.retries.overdue(now), self.retries.overdue_routes(now), now)
        hints.overdue = now
        return due

    def _due_at(self, change: float | None) -> float:
        """When everything is to be looked at, or the first part in force is over."""
        if change is None:
            return self._full_at
        return min(self._full_at, max(_now() + change - time.time(), self._not_before))

    def _retry_at(self) -> float:
        """When something that failed, or is fought over, is to be tried again."""
        due = self.retries.next_due()
        return max(due, self._not_before) if due is not None else self._full_at


def _now() -> float:
    return asyncio.get_running_loop().time()
