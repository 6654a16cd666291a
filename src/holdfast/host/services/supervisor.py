"""The supervisor: keeps programs running, and is itself of no importance to them.

It may be killed at any time. Programs go on, and stay on record; the next one finds them by
number and start time, and watches them through pidfds, which need not be of children. So it
starts nothing by itself when it begins: what has fallen meanwhile the next pass sees, and asks for.

Only little is imported here: it stays in memory as long as there are services.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.dataclass import replace
from holdfast.host.services import log, processes, program, reads
from holdfast.host.services.folder import Definition, Folder, Running
from holdfast.host.services.processes import Process
from holdfast.host.services.reads import OTHER_FILES
from holdfast.host.services.restart_delay import RestartDelay

# How often logs are measured, and definitions that somebody removed are noticed.
TICK_S = 5.0
# How often a program is asked to end: dhcpcd 9.4.1 loses a signal that comes while its hook runs.
# SIGHUP is sent once all the same: whether it was lost cannot be seen, and a second one would have
# a program that heard the first read everything twice.
ASK_AGAIN_S = 1.0
JOURNAL = "_supervisor"

Answer = Callable[[dict[str, object]], None]


class Service:
    """One program. `process` runs; `stopping` it shall end; `again` when to start it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.running: Running | None = None
        self.pidfd = -1
        self.child = False
        self.began = 0.0
        self.stopping = False
        self.ask_at = 0.0
        self.kill_at = 0.0
        self.again = 0.0
        self.wanted = False
        self.stop_timeout = 10
        self.delay = RestartDelay()
        self.answers: list[Answer] = []


class Supervisor:
    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self.folder = Folder(root)
        self.services: dict[str, Service] = {}
        self._clock = clock
        self._poll = select.poll()
        self._by_pidfd: dict[int, Service] = {}
        self._handlers: dict[int, Callable[[], None]] = {}
        self._tick_at = clock() + TICK_S
        # Somebody deleted its socket, or the folder: what is there now, if anything, is another's.
        self.deposed: Callable[[], bool] = lambda: False
        self._abdicated = False

    # What others are told and ask.

    def watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        self._handlers[descriptor] = handler
        self._poll.register(descriptor, select.POLLIN)

    def unwatch(self, descriptor: int) -> None:
        self._handlers.pop(descriptor, None)
        self._poll.unregister(descriptor)

    def adopt(self) -> None:
        """Takes over what an earlier supervisor started and is still alive."""
        for name in self.folder.names():
            try:
                running = self.folder.running(name)
                definition = self.folder.definition(name)
            except (OSError, ValueError) as error:
                self.say(f"{name}: {error}")
                continue
            if running is None:
                continue
            pidfd = processes.descriptor(running.process)
            if pidfd is None:
                self._bury(name, running)
                continue
            service = self.services.setdefault(name, Service(name))
            service.wanted = True
            if definition is not None:
                service.stop_timeout = definition.stop_timeout
            self._hold(service, running, pidfd, child=False)
            self.say(f"{name}: process {running.process.pid} is still running, and is kept")

    def ensure(self, name: str, answer: Answer) -> None:
        """The program runs by its definition, and has read what that says."""
        definition = self._definition(name, answer)
        if definition is None:
            return
        service = self.services.setdefault(name, Service(name))
        service.wanted = True
        running = service.running
        if running is None or self._outdated(running, definition):
            with suppress(OSError):
                self.folder.forget_end(name)  # it may be another one that ended so
        if running is None:
            service.answers.append(answer)
            self._start(service, definition)
        elif service.stopping:
            service.answers.append(answer)  # it starts when the old one has ended
        elif self._outdated(running, definition):
            service.answers.append(answer)
            self._stop(service)
        else:
            try:
                self._reload(service, running, definition)
            except OSError as error:
                answer({"error": f"what it was told cannot be recorded: {error.strerror}"})
            else:
                answer({"pid": running.process.pid})

    def remove(self, name: str, answer: Answer) -> None:
        """The program ends, and is forgotten."""
        service = self.services.setdefault(name, Service(name))
        service.wanted = False
        service.again = 0.0
        service.answers.append(answer)
        if service.running is None:
            self._gone(service)
        elif not service.stopping:
            self._stop(service)

    # The loop.

    @property
    def idle(self) -> bool:
        return not self.services

    def turn(self, longest: float) -> None:
        """Waits for the next thing to happen, no longer than told, and deals with it."""
        due = [self._tick_at, self._clock() + longest]
        for service in self.services.values():
            due += [at for at in (service.again, service.ask_at, service.kill_at) if at]
        wait = max(0.0, min(due) - self._clock())
        for descriptor, _events in self._poll.poll(wait * 1000):
            service_ended = self._by_pidfd.get(descriptor)
            if service_ended is not None:
                self._ended(service_ended)
            elif descriptor in self._handlers:
                self._handlers[descriptor]()
        now = self._clock()
        for service in list(self.services.values()):
            if service.kill_at and now >= service.kill_at:
                self._kill(service)
            elif service.ask_at and now >= service.ask_at:
                self._ask_to_end(service)
            if service.again and now >= service.again:
                self._start_again(service)
        if now >= self._tick_at:
            self._tick_at = now + TICK_S
            self._tick()

    def say(self, text: str) -> None:
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n"
        if self.deposed():
            return
        with suppress(OSError, ValueError):
            journal = log.open_log(self.root, JOURNAL)
            try:
                os.write(journal, line.encode(errors="backslashreplace"))
            finally:
                os.close(journal)

    def _tick(self) -> None:
        if self.deposed():
            if not self._abdicated:
                self._abdicate()
            return
        for name in (JOURNAL, *self.services):
            with suppress(OSError, ValueError):
                log.shorten(self.root, name)
        for service in list(self.services.values()):
            if service.running is not None:
                with suppress(OSError):
                    log.shorten_removed(self.root, service.name, service.running.process.pid)
            # Nobody would find it again: a program without a definition may not go on.
            if service.wanted and not self._defined(service.name):
                self.say(f"{service.name}: its definition was removed")
                self.remove(service.name, lambda _answer: None)

    def _abdicate(self) -> None:
        """What is on record the next one takes over; the rest nobody would find again."""
        self._abdicated = True
        for service in list(self.services.values()):
            running = service.running
            if running is None:
                self._gone(service)
            elif service.stopping:
                service.wanted = False
            elif self._on_record(service.name, running):
                self._let_go(service)
                self._gone(service)
            else:
                service.wanted = False
                self._stop(service)

    def _defined(self, name: str) -> bool:
        try:
            return self.folder.definition(name) is not None
        except (OSError, ValueError):
            return True  # there is something, if nothing of use

    def _on_record(self, name: str, running: Running) -> bool:
        try:
            found = self.folder.running(name)
        except (OSError, ValueError):
            return False
        return found is not None and found.process == running.process

    # One program.

    def _definition(self, name: str, answer: Answer) -> Definition | None:
        try:
            definition = self.folder.definition(name)
        except (OSError, ValueError) as error:
            answer({"error": str(error)})
            return None
        if definition is None:
            answer({"error": f"{name} is not defined"})
        return definition

    def _start(self, service: Service, definition: Definition) -> None:
        service.again = 0.0
        service.stop_timeout = definition.stop_timeout

        started_as = definition.started_as
        if definition.files and reads.digest(self.root, definition.files) != definition.read:
            started_as += f" {OTHER_FILES}"

        def running(process: Process) -> Running:
            return Running(process, definition.mark, started_as, definition.reload)

        def record(process: Process) -> None:
            self.folder.record(service.name, running(process))

        label = self._label(service.name, definition.mark)
        service.began = self._clock()
        try:
            output = log.open_or_nothing(self.root, service.name)
            try:
                process = program.start(definition, label, output, record)
            finally:
                os.close(output)
            self._hold(service, running(process), os.pidfd_open(process.pid), child=True)
        except (OSError, ValueError) as error:
            self._forget_process(service.name)
            words = (error.strerror if isinstance(error, OSError) else "") or str(error)
            wait = service.delay.after(0.0)
            service.again = self._clock() + wait
            self.say(f"{service.name}: not started: {words}; tried again in {wait:.1f} s")
            self._record_end(service.name, f"could not be started: {words}")
            self._reply(service, {"error": words})
            return
        self.say(f"{service.name}: started as process {process.pid}")
        self._reply(service, {"pid": process.pid})

    def _start_again(self, service: Service) -> None:
        service.again = 0.0
        try:
            definition = self.folder.definition(service.name)
        except (OSError, ValueError) as error:
            self.say(f"{service.name}: {error}")
            definition = None
        if definition is not None:
            self._start(service, definition)
        else:
            self.remove(service.name, lambda _answer: None)

    def _hold(self, service: Service, running: Running, pidfd: int, *, child: bool) -> None:
        service.running, service.pidfd, service.child = running, pidfd, child
        self._by_pidfd[pidfd] = service
        self._poll.register(pidfd, select.POLLIN)

    def _outdated(self, running: Running, definition: Definition) -> bool:
        """Does it take another process to do as the definition says?"""
        if (running.unit, running.mark) != (definition.started_as, definition.mark):
            return True
        with suppress(OSError):
            # It may be in a network namespace of an earlier life.
            return processes.network(running.process.pid) != processes.network()
        return False

    def _reload(self, service: Service, running: Running, definition: Definition) -> None:
        if running.reload == definition.reload:
            return
        self._signal(service, signal.SIGHUP)
        told = replace(running, reload=definition.reload)
        self.folder.record(service.name, told)
        service.running = told
        self.say(f"{service.name}: told to read its files again")

    def _stop(self, service: Service) -> None:
        service.stopping = True
        service.kill_at = self._clock() + service.stop_timeout
        self._ask_to_end(service)

    def _ask_to_end(self, service: Service) -> None:
        service.ask_at = self._clock() + ASK_AGAIN_S
        self._signal(service, signal.SIGTERM)

    def _kill(self, service: Service) -> None:
        service.ask_at = service.kill_at = 0.0
        self.say(f"{service.name}: did not end within {service.stop_timeout} s, and is killed")
        self._signal(service, signal.SIGKILL)

    def _signal(self, service: Service, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(service.pidfd, number)

    def _ended(self, service: Service) -> None:
        """Its first process is over; what it started goes too."""
        running = service.running
        if running is None:
            return
        how = "ended"
        if service.child:
            status = os.waitpid(running.process.pid, 0)[1]
            how = f"ended with {processes.how(os.waitstatus_to_exitcode(status))}"
        self._let_go(service)
        asked, service.stopping = service.stopping, False
        service.ask_at = service.kill_at = 0.0
        self._bury(service.name, running)
        if not service.wanted:
            self.say(f"{service.name}: {how}, as asked")
            self._gone(service)
        elif asked:
            self.say(f"{service.name}: {how}, to be started anew")
            self._start_again(service)
        else:
            wait = service.delay.after(self._clock() - service.began)
            service.again = self._clock() + wait
            self.say(f"{service.name}: {how}; starts again in {wait:.1f} s")
            self._record_end(service.name, how)

    def _record_end(self, name: str, how: str) -> None:
        """For whoever asks why it does not run; that it cannot be kept stops no program."""
        if not self.deposed():
            with suppress(OSError):
                self.folder.record_end(name, how)

    def _let_go(self, service: Service) -> None:
        self._by_pidfd.pop(service.pidfd, None)
        self._poll.unregister(service.pidfd)
        os.close(service.pidfd)
        service.running, service.pidfd = None, -1

    def _bury(self, name: str, running: Running) -> None:
        strays = processes.end_strays(self._label(name, running.mark), running.process)
        if strays:
            self.say(f"{name}: ended what it left behind: {', '.join(map(str, strays))}")
        self._forget_process(name)

    def _forget_process(self, name: str) -> None:
        # A record that stays is of a process that is seen to be over.
        if not self.deposed():
            with suppress(OSError):
                self.folder.forget_process(name)

    def _label(self, name: str, mark: str) -> str:
        """Of no other service of this root, and of none of another root."""
        return f"{self.root}:{name}:{mark}"

    def _gone(self, service: Service) -> None:
        said: dict[str, object] = {}
        if self.deposed():
            said = {"error": "the socket of the supervisor was deleted, so it ends"}
        else:
            try:
                self.folder.forget(service.name)
            except OSError as error:
                said = {"error": f"its definition cannot be removed: {error.strerror}"}
        self.services.pop(service.name, None)
        self._reply(service, said)

    def _reply(self, service: Service, said: dict[str, object]) -> None:
        answers, service.answers = service.answers, []
        for answer in answers:
            answer(said)
