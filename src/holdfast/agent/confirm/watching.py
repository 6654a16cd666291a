"""The daemon's part in confirm or revert: it keeps the deadline, and notices what commands did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.agent.beside import kept
from holdfast.agent.confirm import deadline
from holdfast.agent.confirm import probing as probes
from holdfast.agent.confirm import window as confirm
from holdfast.agent.confirm.keeper import LOCK_S, PAUSE_S
from holdfast.agent.confirm.revert import Reverted
from holdfast.agent.log import fault
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError
from holdfast.paths import Paths
from holdfast.state.confirmations import OPEN, Confirmation
from holdfast.state.ledger import Ledger
from holdfast.state.stamp import Stamp, stamp

COMMAND = "holdfast serve, at a deadline"
# How soon it is noticed that a command opened a trial, or ended one. The file of the ledger is
# looked at this often, and read only if it changed.
_LOOK_S = 0.5


@dataclass(slots=True)
class Confirmations:
    paths: Paths
    say: Callable[[str], None]
    changed: Callable[[str], None]  # another configuration is in force, and why; on the event loop
    _stamp: Stamp | None = None
    _waiting: Confirmation | None = None
    _tried: int = 0  # reverts that came to their end, with something left to do
    _failed: int = 0  # looks, in a row
    _trouble: str = ""  # what the log says already

    async def start(self) -> None:
        """Before the first pass: what is overdue is reverted."""
        await self._step()

    async def run(self) -> None:
        await asyncio.gather(kept(self._keep, self.say), kept(self._probe, self.say))

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self.pause())
            await self._step()

    async def _probe(self) -> None:
        """Beside the deadline, which no silence of a gateway may hold up."""
        asking: probes.Probing | None = None
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
                self.say(f"what worked before the trial cannot be asked, or not reverted: {error}")
                continue
            if done is not None:
                self.say(done.told())

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
                self.say(done.told())
            self._tried = 0 if done is None or done.finished else self._tried + 1
            self._failed, self._trouble = 0, ""
        except Exception as error:
            what = "what waits to be confirmed is not known, or not reverted"
            known = isinstance(error, HoldfastError | OSError)
            told = f"{what}: {error}" if known else fault(what, error)
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
            self._stamp = now
        if self._waiting is None or not confirm.overdue(self._waiting):
            return None
        last = self._tried >= len(PAUSE_S)
        with Ledger.open(self.paths, command=COMMAND, wait=LOCK_S) as ledger:
            done = confirm.settle(self.paths, ledger, last=last)
            self._waiting = ledger.waiting()
        return done


def _decided(waiting: Confirmation | None) -> tuple[int, str] | None:
    return None if waiting is None else (waiting.generation, waiting.state)
