"""What passes are made with, what a partial one is, and what is published after each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from holdfast.agent import log_lines
from holdfast.agent.amender import Amender
from holdfast.agent.approval import Approval
from holdfast.agent.background_tasks import BackgroundTasks
from holdfast.agent.configuration import Stale
from holdfast.agent.configuration_in_force import ConfigurationInForce
from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.pass_schedule import Reason
from holdfast.agent.pass_thread import PassThread
from holdfast.agent.pass_timer import PassTimer
from holdfast.agent.reconciler import Done, Reconciler
from holdfast.agent.services.pass_requests import PassRequests
from holdfast.agent.status_publisher import StatusPublisher
from holdfast.agent.watch_manager import WatchManager
from holdfast.dataclass import dataclass, field
from holdfast.errors import HoldfastError, Refused
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.facts import Facts
from holdfast.resources.router import Router
from holdfast.runtime.increments import Answer, Batch
from holdfast.runtime.log import Level, Line
from holdfast.runtime.operators import Lockouts
from holdfast.state.events import Event
from holdfast.state.faults import UnusableError


@dataclass(slots=True)
class Passes:
    """On the event loop; the reconciler works in a thread."""

    thread: PassThread
    reconciler: Reconciler
    in_force: ConfigurationInForce
    watches: WatchManager
    background: BackgroundTasks
    timer: PassTimer
    publisher: StatusPublisher
    lockouts: Lockouts = field(default_factory=Lockouts)
    _amender: Amender | None = None

    async def declare(self, given: Sequence[Batch]) -> tuple[list[Answer | HoldfastError], bool]:
        """Stores batches of increments; answers what became of each, and whether a full pass is to
        follow."""
        in_force, started = self.in_force, time.monotonic()
        before, amender = in_force.read.effective, await self.thread.work(self._amending)
        answers, events = await self.thread.work(self._declare, given, amender)
        if events:
            self.background.tell(in_force.router, events)
        in_force.take(in_force.configuration.effective)
        effective = in_force.read.effective
        if effective is before or effective is None:
            return answers, False
        if amender is None or amender.effective is not effective:
            self._amender = None
            return answers, True
        done = await self.thread.work(self._amend, amender)
        if done is None:
            return answers, True
        in_force.accepted.take(effective.router)
        causes = [f"what {source} declares" for source in sorted({batch.source for batch in given})]
        self.publish(effective.router, self.publisher.status.facts, done, causes, started)
        return answers, done.untried

    def _amending(self) -> Amender | None:
        """In the thread of passes. None: nothing is in force yet that could be amended."""
        effective, accepted = self.in_force.configuration.effective, self.in_force.accepted
        if effective is None or accepted.router is not effective.router:
            return None
        known = self.background.facts.compiled(effective.router)
        if known is None:
            return None
        facts, desired = known
        amender = self._amender
        if (
            amender is None
            or amender.effective is not effective
            or amender.desired is not desired
            or amender.facts != facts
        ):
            root = str(self.reconciler.paths.root).rstrip("/")
            clock = self.in_force.configuration.clock
            amender = self._amender = Amender(effective, desired, facts, root, clock)
        return amender

    def _amend(self, amender: Amender) -> Done | None:
        """In the thread of passes."""
        router, read = amender.effective.router, self.in_force.read
        desired, declaration = amender.declared()
        self.background.facts.amend(router, desired)
        paths, requests = self.reconciler.paths, PassRequests()
        approval = Approval(paths, router, amender.facts, read, requests, self.lockouts)
        try:
            return self.reconciler.amend(
                router,
                desired,
                declaration,
                guard=approval.objection,
                allow_mass_delete=self.in_force.configuration.is_settled,
            )
        except Refused:
            return None  # a full pass says so, and goes on with what was before

    def _declare(
        self, given: Sequence[Batch], amender: Amender | None
    ) -> tuple[list[Answer | HoldfastError], tuple[Event, ...]]:
        """In the thread of passes."""
        configuration = self.in_force.configuration
        with self.reconciler.locked() as ledger:
            try:
                return configuration.declare(ledger, given, amender)
            except Stale:
                pass
        configuration.read(again=False)
        with self.reconciler.locked() as ledger:
            return configuration.declare(ledger, given)

    async def partial(self, reason: Reason) -> bool:
        """Over what was touched; False where that will not do."""
        hints = reason.gathered
        due = self.timer.add_overdue(hints)
        # What was to be tried again is looked at together: only then is it known to be over.
        parts = [hints] if due else hints.parts()
        for part in parts if hints else ():
            started = time.monotonic()
            done = await self.thread.work(self.reconciler.partial, part)
            router = self.in_force.accepted.router
            if done is None or router is None:
                return False
            self.timer.schedule.spent(reason, done.cpu)
            if done.report.after.unknown:
                self.timer.schedule.tell_of_many("what could not be seen")
            causes = reason.causes if part is hints else sorted(part.all_kinds)
            self.publish(router, self.publisher.status.facts, done, causes, started)
        return True

    def publish(
        self, router: Router, facts: Facts, done: Done, causes: Sequence[str], started: float
    ) -> None:
        """What a pass came to, for all who are to know."""
        seconds = time.monotonic() - started
        lines = log_lines.of_pass(done, causes, seconds)
        for line in lines.happened:
            self.publisher.say(line)
        self.background.tell(router, done.events)
        self.watches.after(done.claims, done.report)
        read = self.in_force.read
        status = DaemonStatus(
            router,
            facts,
            done.report.after,
            done.generation,
            self.publisher.status.passes + 1,
            time.time(),
            seconds,
            tuple(causes),
            # A configuration that was refused leaves the one before it in force.
            effective=read.effective if read.router is router else self.held,
            unloaded=read.unloaded,
            unwritten=done.unwritten,
        )
        ledger = (Line(done.unwritten, Level.ERROR),) if done.unwritten else ()
        waits = self.reconciler.patience.troubles()
        troubles = (*ledger, *self.publisher.other_troubles, *waits, *lines.standing)
        self.publisher.publish(status, troubles, *lines.waiting)

    @property
    def held(self) -> Effective | None:
        """What stays in force where what was read last is refused."""
        return self.in_force.accepted.stored or self.publisher.status.effective

    async def go_on_without_ledger(self, why: UnusableError) -> bool:
        return await self.thread.work(self.reconciler.go_on_without_ledger, why)

    async def write_back(self) -> bool:
        return await self.thread.work(self.reconciler.write_back)

    async def close(self) -> None:
        async with AsyncExitStack() as stack:
            stack.callback(self.thread.shutdown)
            stack.push_async_callback(self.thread.work, self.reconciler.close)
            stack.callback(self.watches.close)
