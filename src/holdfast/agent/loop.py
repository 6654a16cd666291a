"""The loop: hints and a timer lead to passes, one at a time."""

from __future__ import annotations

import asyncio
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.agent import health, passes, wording
from holdfast.agent.delivery import Delivery
from holdfast.agent.health import HealthChecks
from holdfast.agent.hints import FileHints, KernelHints
from holdfast.agent.notify import notify
from holdfast.agent.wakeups import Wakeups
from holdfast.errors import ConfigError, DriverError, HoldfastError
from holdfast.host.facts.leases import FOLDER as LEASES
from holdfast.host.facts.read import read_facts
from holdfast.host.facts.verdicts import read_verdicts
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import Address, Facts, Lookup, Verdict
from holdfast.resources.health_target import Target, target
from holdfast.resources.questions import lookups
from holdfast.resources.resource import Resource
from holdfast.resources.router import Router, load_router
from holdfast.resources.site import Site, site_of

# Everything is looked at this often, hints or not.
INTERVAL_S = 30.0
# Names are asked for again this often; an answer that does not come leaves the last one standing.
_LOOKUP_S = 60.0
_LINKS = "links or addresses"


@dataclass(slots=True)
class Agent:
    paths: Paths
    file: Path
    say: Callable[[str], None]  # one line for the log
    interval: float = INTERVAL_S
    _router: Router | None = None
    _site: Site = field(default_factory=Site)
    _answers: dict[Lookup, tuple[Address, ...]] = field(default_factory=dict)
    _wakeups: Wakeups = field(default_factory=Wakeups)
    _asked: asyncio.Event = field(default_factory=asyncio.Event)  # other names to look up
    _unanswered: tuple[str, ...] = ()
    _checked: Router | None = None  # the one whose health checks are under way
    _stale: bool = True  # the file is to be read again
    _stopped: bool = False
    _standing: frozenset[str] = frozenset()  # what the log says already

    async def run(self) -> None:
        """Until SIGTERM or SIGINT. The data plane stays as it is then."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._read_again, "SIGHUP")
        checks = HealthChecks(
            self._target, self._verdict_changed, self.say, read_verdicts(self.paths, [])
        )
        self.paths.under(LEASES).mkdir(parents=True, exist_ok=True)
        kernel = KernelHints(lambda: self._wakeups.tell_of_many(_LINKS))
        files = FileHints(self._file_changed)
        delivery = Delivery(self.paths, self.say)
        beside = [asyncio.create_task(self._keep_looking_up()), asyncio.create_task(delivery.run())]
        causes: Sequence[str] = ("the start",)
        ready = False
        try:
            while not self._stopped:
                await self._round(causes, checks, files, delivery)
                if not ready:
                    notify("READY=1")
                    ready = True
                causes = await self._wakeups.next(self.interval)
        finally:
            notify("STOPPING=1")
            await checks.stop()
            await delivery.last()
            for task in beside:
                task.cancel()
            kernel.close()
            files.close()

    async def _round(
        self, causes: Sequence[str], checks: HealthChecks, files: FileHints, delivery: Delivery
    ) -> None:
        """Whatever goes wrong in it, there will be another one."""
        standing: list[str] = []
        try:
            # A folder that was removed and made anew is another one, with other files perhaps.
            anew, _ = self._watch(files)
            if self._stale or anew:
                await self._load()
            anew, problems = self._watch(files)
            if anew:
                # A file in there may have changed between being read and being watched.
                self._read_again("a file in another folder")
            standing += problems
            router = self._router
            if router is None:
                standing.append(f"{self.file} was never valid: nothing is done")
            else:
                facts = await self._learn(router, checks)
                standing += (*facts.troubles, *self._unanswered)
                if router is not self._checked:
                    self._checked = router
                    checks.watch(one for one in router.resources if one.kind == "HealthCheck")
                    # Those of checks that are declared no longer are gone with them.
                    self._write_verdicts(checks)
                facts = replace(facts, verdicts=checks.verdicts)
                standing += await self._pass(router, facts, causes, delivery)
        except HoldfastError as error:
            standing.append(f"the pass was not carried out: {error}")
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            standing.append(
                f"the pass failed, which is a fault of Holdfast's: {error!r} in {where.name}"
                f" ({Path(where.filename).name}:{where.lineno})"
            )
        self._say_new(standing)

    async def _load(self) -> None:
        """An invalid file leaves the last good one in force."""
        self._stale = False
        try:
            router = await asyncio.to_thread(load_router, self.file, self.paths.root)
        except ConfigError as error:
            for problem in error.problems:
                self.say(str(problem))
            kept = "the last good one stays in force" if self._router else "nothing is done"
            self.say(f"{self.file} is invalid: {kept}")
            return
        for warning in router.warnings:
            self.say(f"warning: {warning}")
        again = "read again" if self._router else "read"
        self.say(f"{self.file} {again}: {len(router.resources)} resources")
        self._router = router
        wanted = lookups(router)
        self._answers = {one: self._answers[one] for one in wanted if one in self._answers}
        self._asked.set()

    def _watch(self, files: FileHints) -> tuple[bool, list[str]]:
        """Whether a folder of files to be read was not watched until now; and what went wrong."""
        read = [Path(file.path) for file in self._router.files] if self._router else []
        leases = self.paths.under(LEASES)
        anew, problems = False, []
        for folder in sorted({leases, self.file.parent, *(one.parent for one in read)}):
            try:
                anew |= files.watch(folder) and folder != leases
            except DriverError as error:
                problems.append(f"{error}: what happens there is not noticed without SIGHUP")
        return anew, problems

    async def _learn(self, router: Router, checks: HealthChecks) -> Facts:
        read = await asyncio.to_thread(read_facts, self.paths, ())
        facts = replace(read, answers=dict(self._answers), verdicts=checks.verdicts)
        self._site = await asyncio.to_thread(site_of, router.resources, facts)
        return facts

    async def _pass(
        self, router: Router, facts: Facts, causes: Sequence[str], delivery: Delivery
    ) -> Sequence[str]:
        """Not on the event loop: probes go on meanwhile. Answers what stays wrong after it."""
        root = str(self.paths.root).rstrip("/")
        started = time.monotonic()

        def work() -> passes.Done:
            return passes.run(self.paths, router, compile_router(router, facts, root))

        done = await asyncio.to_thread(work)
        said = wording.of_pass(done, causes, time.monotonic() - started)
        for line in said.happened:
            self.say(line)
        delivery.put(router, done.events)
        return said.standing

    def _say_new(self, lines: Iterable[str]) -> None:
        now = dict.fromkeys(lines)
        for line in now:
            if line not in self._standing:
                self.say(line)
        self._standing = frozenset(now)

    def _target(self, check: Resource) -> Target | str:
        return target(check, self._site)

    def _verdict_changed(self, checks: HealthChecks, name: str, verdict: Verdict) -> None:
        # Flows go astray meanwhile: no patience with this one.
        self._wakeups.tell(f"HealthCheck/{name}", 0)
        state = "healthy" if verdict.healthy else "unhealthy"
        self.say(f"HealthCheck/{name} is {state}: {verdict.reason}")
        self._write_verdicts(checks)

    def _write_verdicts(self, checks: HealthChecks) -> None:
        try:
            health.write_verdicts(self.paths, checks.verdicts)
        except OSError as error:
            self.say(f"verdicts were not written for other commands: {error}")

    def _file_changed(self, folder: str, name: str) -> None:
        """name: empty where anything may have changed."""
        leases = str(self.paths.under(LEASES))
        if folder == leases or not name:
            self._wakeups.tell("a lease")
        if folder != leases:
            place = str(Path(folder, name))
            read = {file.path for file in self._router.files} if self._router else set()
            if not name or place == str(self.file) or place in read:
                self._read_again(place)

    def _read_again(self, cause: str) -> None:
        self._stale = True
        self._wakeups.tell(cause)

    def _stop(self) -> None:
        self._stopped = True
        self._wakeups.tell("a signal to stop", 0)

    async def _keep_looking_up(self) -> None:
        """Names are asked for beside the passes: a server that does not answer slows none down."""
        while True:
            self._asked.clear()
            wanted = lookups(self._router) if self._router is not None else ()
            if wanted:
                try:
                    await self._look_up(wanted)
                except Exception as error:
                    self._unanswered = (f"names were not looked up: {error!r}",)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOKUP_S):
                    await self._asked.wait()

    async def _look_up(self, wanted: tuple[Lookup, ...]) -> None:
        found = await asyncio.to_thread(read_facts, self.paths, wanted)
        self._unanswered = found.troubles
        fresh = {one: found.answers[one] for one in wanted if one in found.answers}
        if any(self._answers.get(one) != answer for one, answer in fresh.items()):
            self._answers.update(fresh)
            self._wakeups.tell("an answer of the DNS")
