"""The daemon's part in confirm or revert: it keeps the deadline, and notices what commands did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.agent.background import keep_running
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError
from holdfast.paths import Paths
from holdfast.runtime.confirm import deadline
from holdfast.runtime.confirm import lifeline_probes as probes
from holdfast.runtime.confirm import trial as confirm
from holdfast.runtime.confirm.deadline_process import LOCK_S, PAUSE_S
from holdfast.runtime.confirm.revert import Reverted
from holdfast.runtime.log import Level, Line, fault
from holdfast.state.confirmations import CONFIRMED, OPEN, REVERTED, Confirmation
from holdfast.state.ledger import Ledger
from holdfast.state.working_copy import Stamp, stamp

COMMAND = "holdfast serve, at a deadline"
# How soon it is noticed that a command opened a trial, or ended one. The file of the ledger is
# looked at this often, and read only if it changed.
_LOOK_S = 0.5


@dataclass(slots=True)
class DeadlineTask:
    paths: Paths
    say: Callable[[str], None]
    changed: Callable[[str], None]  # another configuration is in force, and why; on the event loop
    _stamp: Stamp | None = None
    _waiting: Confirmation | None = None
    _decided: tuple[int, str] | None = None  # the last trial that is over, and how it ended
    _news: str = ""  # of one that somebody else ended
    _tried: int = 0  # reverts that came to their end, with something left to do
    _failed: int = 0  # looks, in a row
    _trouble: str = ""  # what the log says already

    async def start(self) -> None:
        """Before the first pass: what is overdue is reverted."""
        await self._step()

    async def run(self) -> None:
        await asyncio.gather(
            keep_running(self._keep, self.say), keep_running(self._probe, self.say)
        )

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self.pause())
            await self._step()

    async def _probe(self) -> None:
        """Beside the deadline, which no silence of a gateway may hold up."""
        asking: probes.LifelineProbes | None = None
        while True:
            await asyncio.sleep(probes.EVERY_S)
            waiting = self._waiting
            if waiting is None or waiting.state != OPEN:
                continue
            try:
                if asking is None or asking.waiting != waiting:
                    asking = await asyncio.to_thread(probes.probing, self.paths, waiting)
                problems = await asking.failing()
                if not problems:
                    continue
                done = await asyncio.to_thread(asking.give_up, COMMAND, LOCK_S)
            except (HoldfastError, OSError) as error:
                told = f"what worked before the trial cannot be asked, or not reverted: {error}"
                self.say(Line(told, Level.ERROR))
                continue
            if done is not None:
                if done.finished:
                    self._decided = done.generation, REVERTED
                self.say(_line(done))

    def pause(self) -> float:
        waiting, tried = self._waiting, self._tried + self._failed
        if tried:
            return PAUSE_S[min(tried, len(PAUSE_S)) - 1]
        if waiting is None or waiting.state != OPEN:
            return _LOOK_S
        return max(0.0, min(deadline.remaining(waiting), _LOOK_S))

    async def _step(self) -> None:
        """Whatever goes wrong in it, there will be another one."""
        before = _decided(self._waiting)
        try:
            done = await asyncio.to_thread(self._look)
            if done is not None:
                self.say(_line(done))
            elif self._news:
                self.say(self._news)
            self._news = ""
            self._tried = 0 if done is None or done.finished else self._tried + 1
            self._failed, self._trouble = 0, ""
        except Exception as error:
            what = "what waits to be confirmed is not known, or not reverted"
            known = isinstance(error, HoldfastError | OSError)
            told = Line(f"{what}: {error}", Level.ERROR) if known else fault(what, error)
            if told != self._trouble:
                self._trouble = told
                self.say(told)
            self._failed += 1
            return
        if _decided(self._waiting) != before:
            self.changed("what waits to be confirmed")

    def _look(self) -> Reverted | None:
        """Reverts what is overdue."""
        now = stamp(self.paths)
        if now != self._stamp:
            with Ledger.read(self.paths) as ledger:
                self._waiting = ledger.waiting()
                self._hear_of_the_last(ledger, first=self._stamp is None)
            self._stamp = now
        if self._waiting is None or not confirm.overdue(self._waiting):
            return None
        last = self._tried >= len(PAUSE_S)
        with Ledger.open(self.paths, command=COMMAND, wait=LOCK_S) as ledger:
            done = confirm.settle(self.paths, ledger, last=last)
            self._waiting = ledger.waiting()
            if done is not None:
                self._hear_of_the_last(ledger, first=True)
        return done

    def _hear_of_the_last(self, ledger: Ledger, *, first: bool) -> None:
        """A command ends a trial as well, and the log is where one looks for what happened."""
        last = next(
            (confirmation for confirmation in ledger.confirmations() if not confirmation.waits),
            None,
        )
        now = None if last is None else (last.generation, last.state)
        if last is not None and now != self._decided and not first:
            self._news = f"generation {last.generation} {_ENDED[last.state]}"
            self._news += f": {last.reason}" if last.reason else ""
        self._decided = now


_ENDED = {CONFIRMED: "was confirmed, and stays in force", REVERTED: "was reverted"}


def _line(done: Reverted) -> Line:
    whole = done.finished and not done.left
    return Line(done.told(), Level.WARNING if whole else Level.ERROR)


def _decided(waiting: Confirmation | None) -> tuple[int, str] | None:
    return None if waiting is None else (waiting.generation, waiting.state)
