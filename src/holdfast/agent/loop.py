"""The loop: hints and a timer lead to passes, one at a time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from holdfast.agent.background import hear_faults
from holdfast.agent.background_tasks import BackgroundTasks
from holdfast.agent.configuration import Configuration
from holdfast.agent.configuration_in_force import ConfigurationInForce
from holdfast.agent.contributors import Contributors
from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.deadline_task import DeadlineTask
from holdfast.agent.declare_requests import DeclareRequest
from holdfast.agent.fact_tracker import FactTracker
from holdfast.agent.file_reload import FileReload
from holdfast.agent.instance_lock import InstanceLock
from holdfast.agent.ledger_outage import make_places, making_places, write_back
from holdfast.agent.log_sink_queue import LogSinkQueue
from holdfast.agent.pass_schedule import PassSchedule, Reason
from holdfast.agent.pass_thread import PassThread
from holdfast.agent.pass_timer import PassTimer
from holdfast.agent.passes import Passes
from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.reconciler import Reconciler
from holdfast.agent.rounds import Rounds
from holdfast.agent.sd_notify import notify
from holdfast.agent.services.pass_requests import PassRequest
from holdfast.agent.session_events import SessionEvents
from holdfast.agent.status_publisher import StatusPublisher
from holdfast.agent.watch_manager import WatchManager
from holdfast.agent.web.console import Console
from holdfast.api.inherited import Inherited
from holdfast.paths import Paths
from holdfast.runtime.routes.metrics import RouteNumbers

# Everything is looked at this often, hints or not; less often where that takes much of a core.
INTERVAL_S = 30.0


class Agent:
    """The daemon: its parts put together, and what the API and the console need of them."""

    def __init__(
        self,
        paths: Paths,
        file: Path,
        say: Callable[[str], None],  # one line for the log
        *,
        interval: float = INTERVAL_S,
        console: Console | None = None,
        inherited: Inherited | None = None,
        lock: InstanceLock | None = None,
    ) -> None:
        self.paths, self.file, self._lock = paths, file, lock
        self._stopped = False
        self.route_numbers: Callable[[], RouteNumbers] | None = None  # once the API is served
        self._schedule = PassSchedule()
        self._publisher = StatusPublisher(say)
        thread, reconciler = PassThread(), Reconciler(paths)
        configuration = Configuration(paths, file)
        reload = FileReload(file, configuration.startup.unfinished, self._schedule)
        self.in_force = ConfigurationInForce(configuration, reload, thread, self._publisher.tell)
        self._background = BackgroundTasks(
            say,
            FactTracker(paths, say, self._schedule.tell, thread, reconciler.beside.append),
            LogSinkQueue(paths, say),
            self._make_contributors(configuration),
            DeadlineTask(paths, say, reload.now),
            console,
            inherited or Inherited(),
        )
        sessions = SessionEvents(
            say,
            thread,
            reconciler,
            lambda events: self._background.tell(self.in_force.router, events),
        )
        passes = Passes(
            thread,
            reconciler,
            self.in_force,
            WatchManager(
                paths,
                file,
                reload.hear,
                lambda: reconciler.ports,
                reload.now,
                thread,
                sessions.hear,
            ),
            self._background,
            PassTimer(self._schedule, reconciler.patience, interval),
            self._publisher,
        )
        self._rounds = Rounds(passes)

    def _make_contributors(self, configuration: Configuration) -> Contributors:
        return Contributors(
            self.paths,
            self._publisher.say,
            lambda: self.status.generation,
            configuration.sources.ran,
            self.wake,
            lambda events: self._background.tell(self.in_force.router, events),
        )

    async def run(self) -> None:
        """Until SIGTERM or SIGINT. The data plane stays as it is then."""
        self._listen()
        async with AsyncExitStack() as stack:
            stack.callback(signal.signal, signal.SIGHUP, signal.SIG_IGN)
            stack.push_async_callback(self._rounds.passes.close)
            await self._background.deadline.start()
            await stack.enter_async_context(self._background.running(self, self._tasks()))
            reason = Reason(("the start",), True, PendingHints())
            ready = False
            while not self._stopped:
                self._background.watchdog.begin()
                await self._rounds.run(reason)
                self._background.watchdog.end()
                if not ready:
                    notify("READY=1")
                    ready = True
                reason = await self._rounds.next()

    def _listen(self) -> None:
        """To signals, to a large file that was read, and to faults that nobody waits for."""
        loop, reload = asyncio.get_running_loop(), self.in_force.reload
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        # Not by asyncio, which at the end gives the signal back to the kernel: a daemon that is
        # told to read its file again while it stops would be ended by that.
        signal.signal(
            signal.SIGHUP, lambda *_signal: loop.call_soon_threadsafe(reload.now, "SIGHUP")
        )
        self.in_force.configuration.startup.apart.finished = lambda: loop.call_soon_threadsafe(
            reload.now, str(self.file)
        )
        hear_faults(self._publisher.say, lambda: self._schedule.tell_of_many("a fault"))

    def _tasks(self) -> list[Callable[[], Awaitable[None]]]:
        """Those that are about the ledger and what the daemon keeps below /run."""
        sources, write = self.in_force.configuration.sources, self._rounds.passes.write_back
        tasks: list[Callable[[], Awaitable[None]]] = [
            lambda: sources.watch(lambda: self.wake("a part")),
            lambda: write_back(self, write),
        ]
        if not make_places(self, self._lock):
            tasks.append(lambda: making_places(self, self._lock))
        return tasks

    def _stop(self) -> None:
        self._stopped = True
        self.in_force.configuration.startup.apart.stop()
        self._schedule.tell("a signal to stop", 0)

    @property
    def status(self) -> DaemonStatus:
        return self._publisher.status

    @property
    def console(self) -> Console | None:
        return self._background.console

    @property
    def proposers(self) -> Contributors:
        return self._background.contributors

    @property
    def hints(self) -> Mapping[str, int]:
        return self._rounds.passes.watches.hints

    @property
    def hints_lost(self) -> int:
        return self._rounds.passes.watches.lost

    @property
    def refused_calls(self) -> Mapping[tuple[str, str], int]:
        return self._background.refusals.counts

    def alive(self) -> bool:
        return self._background.watchdog.alive()

    def wake(self, cause: str) -> None:
        self._schedule.tell(cause)

    def ask(self, question: PassRequest) -> None:
        self._rounds.ask(question)

    def declare(self, request: DeclareRequest) -> None:
        self._rounds.declare(request)

    def tell_beside(self, what: str, trouble: str) -> None:
        """A pass publishes it."""
        if self._publisher.unserved.get(what, "") != trouble:
            self._publisher.unserved[what] = trouble
            self.wake(what)
