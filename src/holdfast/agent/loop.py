"""The loop: hints and a timer lead to passes, one at a time."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from holdfast.agent import operators, wording
from holdfast.agent.accepted import Accepted, Refusal
from holdfast.agent.answers import serving
from holdfast.agent.answers.asked import Asked, Question, Questions
from holdfast.agent.approval import Approval
from holdfast.agent.beside import hear_faults, kept
from holdfast.agent.configuration import Configuration, Read
from holdfast.agent.confirm.watching import Confirmations
from holdfast.agent.confirm.window import OtherInForce
from holdfast.agent.delivery import Delivery
from holdfast.agent.following import Following
from holdfast.agent.gathered import Gathered
from holdfast.agent.heart import Heart
from holdfast.agent.learning import Learning, collect
from holdfast.agent.log import fault
from holdfast.agent.notify import notify
from holdfast.agent.passes import Done, Reconciler
from holdfast.agent.proposers import Proposers
from holdfast.agent.rereading import Rereading
from holdfast.agent.status import DaemonStatus
from holdfast.agent.unwritten import despite_ledger, write_back
from holdfast.agent.wakeups import Reason, Wakeups
from holdfast.agent.web.address import Listen
from holdfast.api.inherited import Inherited
from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import HoldfastError, Refused
from holdfast.host.facts.leases import FOLDER as LEASES
from holdfast.paths import Paths
from holdfast.resources.facts import Facts
from holdfast.resources.router import Router
from holdfast.state.events import Event

# Everything is looked at this often, hints or not; less often where that would take more of a core
# than this.
INTERVAL_S = 30.0
_SHARE = 0.005
# A pass that could not be carried out is tried again after so long.
_AGAIN_S = 5.0
# What a command opened or ended a moment ago is looked at anew.
_NEWS, _NEWS_S = "another configuration in force", 0.1

T = TypeVar("T")


@dataclass(slots=True)
class Agent:
    paths: Paths
    file: Path
    say: Callable[[str], None]  # one line for the log
    interval: float = INTERVAL_S
    listen: Listen | None = None  # for the console and the metrics
    inherited: Inherited = field(default_factory=Inherited)
    status: DaemonStatus = field(default_factory=DaemonStatus)
    # Told on the event loop of each new status.
    status_changed: list[Callable[[DaemonStatus], None]] = field(default_factory=list)
    configuration: Configuration = field(init=False)
    _reconciler: Reconciler = field(init=False)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "pass"))
    _wakeups: Wakeups = field(default_factory=Wakeups)
    _questions: Asked = field(default_factory=Asked)
    proposers: Proposers = field(init=False)
    _learning: Learning = field(init=False)
    _following: Following = field(init=False)
    _delivery: Delivery = field(init=False)
    _heart: Heart = field(default_factory=Heart)
    _router: Router | None = None  # the last valid one
    _accepted: Accepted = field(init=False)
    _rereading: Rereading = field(init=False)
    _read: Read = field(default_factory=lambda: Read(None))
    _confirmations: Confirmations = field(init=False)
    _invalid: HoldfastError | None = None  # why it is not in force, as it was read last
    _stopped: bool = False
    _full_at: float = 0.0  # when the next full pass is due, whatever happens
    _full_due: float = 0.0  # the same, by the last one
    _not_before: float = 0.0  # for what is tried again
    _around: tuple[str, ...] = ()  # what is wrong beside the passes
    _lockouts: operators.Lockouts = field(default_factory=operators.Lockouts)
    _troubles: wording.Troubles = field(default_factory=wording.Troubles)

    def __post_init__(self) -> None:
        self._reconciler = Reconciler(self.paths)
        self.configuration = Configuration(self.paths, self.file)
        unfinished = self.configuration.startup.unfinished
        self._rereading = Rereading(self.file, unfinished, self._wakeups)
        self._accepted = Accepted(lambda: self._in_thread(self.configuration.last_good))
        self._confirmations = Confirmations(self.paths, self.say, self._rereading.now)
        self._learning = Learning(
            self.paths, self.say, self._wakeups.tell, self._thread, self._reconciler.beside.append
        )
        self._following = Following(
            self.paths,
            self.file,
            self._rereading.hear,
            lambda: self._reconciler.ports,
            self._rereading.now,
            self._thread,
        )
        self._delivery = Delivery(self.paths, self.say)
        self.proposers = Proposers(
            self.paths,
            self.say,
            lambda: self.status.generation,
            self.configuration.sources.ran,
            self.wake,
            self._tell,
        )

    async def run(self) -> None:
        """Until SIGTERM or SIGINT. The data plane stays as it is then."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        # Not by asyncio, which at the end gives the signal back to the kernel: a daemon that is
        # told to read its file again while it stops would be ended by that.
        signal.signal(
            signal.SIGHUP,
            lambda *_signal: loop.call_soon_threadsafe(self._rereading.now, "SIGHUP"),
        )
        hear_faults(self.say, lambda: self._wakeups.tell_of_many("a fault"))
        self.paths.under(LEASES).mkdir(parents=True, exist_ok=True)
        reason = Reason(("the start",), True, Gathered())
        ready = False
        async with AsyncExitStack() as stack:
            stack.callback(signal.signal, signal.SIGHUP, signal.SIG_IGN)
            stack.callback(self._thread.shutdown)
            stack.push_async_callback(self._in_thread, self._reconciler.close)
            stack.callback(self._following.close)
            await self._confirmations.start()
            besides = (self._learning.names, self._delivery, self._confirmations, self._heart)
            runs = [*(one.run for one in besides), self.proposers.actions.run]
            runs.append(lambda: self.configuration.sources.watch(lambda: self.wake("a part")))
            write = lambda: self._in_thread(self._reconciler.write_back)  # noqa: E731 (short)
            runs.append(lambda: write_back(self, write))
            beside = [asyncio.create_task(kept(run, self.say)) for run in runs]
            stack.push_async_callback(self._end, beside)
            await stack.enter_async_context(serving.api(self, self.say, self.inherited))
            await stack.enter_async_context(serving.web(self, self.listen, self.say))
            while not self._stopped:
                self._heart.begin()
                await self._round(reason)
                self._heart.end()
                if not ready:
                    notify("READY=1")
                    ready = True
                reason = await self._wakeups.next(self._due_at(), self._retry_at())

    def wake(self, cause: str) -> None:
        self._wakeups.tell(cause)

    def _tell(self, events: Sequence[Event]) -> None:
        """Of what happened beside the passes."""
        self.proposers.hear(events)
        if self._router is not None:
            self._delivery.put(self._router, events)

    def alive(self) -> bool:
        return self._heart.alive()

    @property
    def hints(self) -> Mapping[str, int]:
        return self._following.hints

    @property
    def hints_lost(self) -> int:
        return self._following.lost

    def ask(self, question: Question) -> None:
        """A pass as soon as may be, by what the file says then."""
        self._questions.add(question)
        self._rereading.now("the command line")

    async def _end(self, beside: Sequence[asyncio.Task[None]]) -> None:
        notify("STOPPING=1")
        await self._learning.stop()
        await self._delivery.last()
        await self.proposers.plugins.stop()
        for task in beside:
            task.cancel()

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """Not on the event loop: probes go on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def _round(self, reason: Reason) -> None:
        """Whatever goes wrong in it, there will be another one."""
        questions = Questions()
        go_on = lambda why: self._in_thread(self._reconciler.go_on_without_ledger, why)  # noqa: E731 (short)
        try:
            narrow = not reason.full and not self._rereading.due
            if narrow and await despite_ledger(lambda: self._narrow(reason), go_on):
                return
            questions = self._questions.take()
            self._full_at = _now() + self.interval
            await despite_ledger(lambda: self._full(reason, questions), go_on)
            return
        except OtherInForce as news:
            questions.fail(Refused(str(news)))
            self._rereading.mark()
            self._wakeups.tell(_NEWS, _NEWS_S)
            if _NEWS in reason.causes:  # it is no matter of a moment
                self._publish(self.status, (*self._around, f"nothing is done meanwhile: {news}"))
            return
        except HoldfastError as error:
            questions.fail(error)
            trouble = f"the pass was not carried out: {error}"
            if not isinstance(error, Refused):
                self._wakeups.tell("a pass that failed", _AGAIN_S)
        except Exception as error:
            questions.fail(error)
            trouble = fault("the pass failed", error)
            self._wakeups.tell("a pass that failed", _AGAIN_S)
        self._not_before = _now() + _AGAIN_S
        self._publish(self.status, (*self._around, trouble))

    async def _narrow(self, reason: Reason) -> bool:
        """Over what was touched, where that will do."""
        gathered, now, due = reason.gathered, _now(), False
        if now >= self._not_before:
            patience = self._reconciler.patience
            due = any(when <= now for _, when in patience.due())
            gathered.touch(patience.overdue(now), patience.overdue_routes(now), now)
            gathered.overdue = now
        # What was to be tried again is looked at together: only then is it known to be over.
        parts = [gathered] if due else gathered.parts()
        for part in parts if gathered else ():
            started = time.monotonic()
            done = await self._in_thread(self._reconciler.narrow, part)
            if done is None or self._accepted.router is None:
                return False
            self._wakeups.spent(reason, done.cpu)
            if done.report.after.unknown:
                self._wakeups.tell_of_many("what could not be seen")
            causes = reason.causes if part is gathered else sorted(part.all_kinds)
            self._finish(self._accepted.router, self.status.facts, done, causes, started)
        return True

    async def _full(self, reason: Reason, questions: Questions) -> None:
        if self._following.watch is None:
            await self._following.begin()
        await self._load(questions)
        router = self._router
        if router is None:
            trouble = f"{self.file} was never valid: nothing is done"
            questions.fail(self._invalid or Refused(trouble))
            self._publish(self.status, (*await self._following.begin(), trouble))
            return
        done = await self._accepted.carry_out(
            router,
            lambda: self._tried(router, reason, questions),
            lambda held, refusal: self._instead(held, refusal, reason, questions),
            parts=lambda: self._read.same_startup(self._accepted.stored or self.status.effective),
            insists=bool(questions.questions),
        )
        if self._invalid is not None:
            questions.fail(self._invalid)  # what they asked for is what the file says now
        elif done is not None:
            questions.settle(done)

    async def _tried(self, router: Router, reason: Reason, questions: Questions) -> Done:
        self._heed(self._read)
        return await self._pass(router, reason, questions)

    async def _instead(
        self, held: Router, refusal: Refusal, reason: Reason, questions: Questions
    ) -> None:
        """A pass of what stays in force."""
        questions.fail(refusal.error)
        self._rereading.later(self._read.delay())
        self._learning.want(self._router, held)
        await self._pass(held, reason, Questions(), refusal.why(self.file))

    async def _load(self, questions: Questions) -> None:
        """An invalid file leaves the last good one in force. Parts of other sources come and go
        beside it."""
        stale = self._rereading.take()
        asked, read_file = bool(questions.questions), self.configuration.read
        try:
            read = await self._in_thread(lambda: read_file(again=stale, asked=asked))
        except BaseException:
            if stale:
                self._rereading.mark()
            raise
        self._read, self._invalid = read, read.error
        self._rereading.later(read.again_in)
        self._reconciler.unloaded = read.unloaded
        for line in (*read.said, *map(wording.line, read.events)):
            self.say(line)
        if read.router is not None:
            self._router = read.router

    def _heed(self, read: Read) -> None:
        """All that goes by a configuration beside the passes."""
        if read.effective is None:
            return
        self._delivery.put(read.effective.router, read.events)
        self._learning.want(read.effective.router, self._accepted.router)
        self.proposers.follow(read.effective)
        self.proposers.hear(read.events)

    async def _pass(
        self, router: Router, reason: Reason, questions: Questions, refusal: str = ""
    ) -> Done:
        started = time.monotonic()
        in_force = bool(refusal) or router is self._accepted.router
        facts, desired = await self._learning.learn(
            router, again=not self._is_edit(reason), in_force=in_force
        )
        problems = await self._following.follow(router, desired)
        problems += [*self._read.troubles, *facts.troubles, *self._learning.names.unanswered]
        self._around = (*problems, refusal) if refusal else tuple(problems)
        changed = router is not self._accepted.router
        current = router is self._read.router
        parts_alone = current and self._read.parts_alone

        read = self._read if current else Read(None)
        approval = Approval(self.paths, router, facts, read, questions, self._lockouts)
        edited = changed and self._is_edit(reason)

        def work() -> Done:
            # Where an edit of the file changed routes alone, they need no look at everything.
            routes = self._reconciler.routes
            guard = approval.objection if changed else lambda _plan: ""
            done = routes(router, desired, reason.gathered, guard=guard) if edited else None
            if done is None:
                done = self._reconciler.full(
                    router,
                    desired,
                    reason.gathered,
                    guard=guard,
                    allow_mass_delete=questions.allow_mass_delete or parts_alone,
                    asked=bool(questions.questions),
                    allow_side_effects=questions.allow_side_effects,
                    progress=questions.progress,
                )
                if changed:
                    collect()
            if current and done.report.converged and not self._read.unloaded:
                self.configuration.settled()
            return done

        done = await self._in_thread(work)
        self._accepted.take(router)
        self._wakeups.spent(reason, done.cpu)
        if not done.narrow:
            self._full_due = _now() + max(self.interval, done.cpu / _SHARE)
        self._full_at = self._full_due
        if done.untried:
            self._wakeups.tell_of_many("what is left to do")
        self._finish(router, facts, done, reason.causes, started)
        await self._following.follow(router, desired)
        return done

    def _is_edit(self, reason: Reason) -> bool:
        """Did nothing happen but that files of the configuration changed?"""
        causes = {Path(cause) for cause in reason.causes}
        return bool(causes) and causes <= self._following.config and not reason.gathered.lost

    def _finish(
        self, router: Router, facts: Facts, done: Done, causes: Sequence[str], started: float
    ) -> None:
        seconds = time.monotonic() - started
        said = wording.of_pass(done, causes, seconds)
        for line in said.happened:
            self.say(line)
        self._delivery.put(router, done.events)
        self.proposers.hear(done.events)
        self._following.after(done.claims, done.report)
        # A configuration that was refused leaves the one before it in force.
        current = self._read.router is router
        before = self._accepted.stored or self.status.effective
        status = DaemonStatus(
            router,
            facts,
            done.report.after,
            done.generation,
            self.status.passes + 1,
            time.time(),
            seconds,
            tuple(causes),
            effective=self._read.effective if current else before,
            unloaded=self._read.unloaded,
            unwritten=done.unwritten,
        )
        around = (*filter(None, (done.unwritten,)), *self._around)
        troubles = self._reconciler.patience.troubles()
        self._publish(status, (*around, *troubles, *said.standing), *said.waiting)

    def _publish(self, status: DaemonStatus, lines: Iterable[str], *waiting: str) -> None:
        troubles = tuple(dict.fromkeys(lines))
        for line in self._troubles.news((*troubles, *waiting)):
            self.say(line)
        self.status = replace(status, troubles=troubles)
        for tell in self.status_changed:
            tell(self.status)

    def _due_at(self) -> float:
        """When everything is to be looked at, or the first part in force is over."""
        change = self._read.next_change
        if change is None:
            return self._full_at
        return min(self._full_at, max(_now() + change - time.time(), self._not_before))

    def _retry_at(self) -> float:
        """When something that failed, or is fought over, is to be tried again."""
        due = self._reconciler.patience.next_due()
        return max(due, self._not_before) if due is not None else self._full_at

    def _stop(self) -> None:
        self._stopped = True
        self.configuration.startup.apart.stop()
        self._wakeups.tell("a signal to stop", 0)


def _now() -> float:
    return asyncio.get_running_loop().time()
