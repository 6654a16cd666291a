"""Health checks at work: each HealthCheck probes on its own, and changed verdicts are told."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable, Mapping

from holdfast.agent.health.judgement import Judge
from holdfast.dataclass import dataclass, field
from holdfast.host.facts import clock
from holdfast.host.facts.verdicts import FILE
from holdfast.paths import Paths
from holdfast.resources.facts import Verdict
from holdfast.resources.resource import Resource
from holdfast.resources.uplinks.health_check import HealthCheck
from holdfast.resources.uplinks.health_target import Target
from holdfast.runtime.log import Level, Line
from holdfast.runtime.probes import probe

# Checks that start together would probe together ever after.
_SPREAD = 0.1


@dataclass(slots=True)
class HealthChecks:
    """Probes until it is told to stop. A check keeps its verdict until it comes to another one,
    also when its declaration changes or the daemon is started anew: what a router decided by it
    must not be undone because nobody knows any more."""

    # The target of a check as things are now, or why it has none.
    target: Callable[[Resource], Target | str]
    changed: Callable[[HealthChecks, str, Verdict], None]
    say: Callable[[str], None]  # what went wrong with probing itself
    known: Mapping[str, Verdict] = field(default_factory=dict)  # of those that probed before
    _judges: dict[str, tuple[HealthCheck, Judge]] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        return {
            name: judge.verdict
            for name, (_, judge) in self._judges.items()
            if judge.verdict is not None
        }

    def watch(self, checks: Iterable[Resource]) -> None:
        """These checks, from now on, and no others."""
        wanted = {resource.name: resource for resource in checks}
        before, self.known = {**self.known, **self.verdicts}, {}
        for name in list(self._tasks):
            if name not in wanted or self._judges[name][0] != wanted[name].spec:
                self._tasks.pop(name).cancel()
                del self._judges[name]
        for name, resource in wanted.items():
            if name not in self._tasks:
                spec: HealthCheck = resource.spec
                judge = Judge(spec.healthy_threshold, spec.unhealthy_threshold, before.get(name))
                self._judges[name] = spec, judge
                self._tasks[name] = asyncio.create_task(self._run(resource, judge))

    async def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _run(self, resource: Resource, judge: Judge) -> None:
        spec: HealthCheck = resource.spec
        loop = asyncio.get_running_loop()
        due = loop.time()
        trouble = ""
        while True:
            try:
                problem = await self._ask(resource, spec.timeout)
                if judge.hear(problem) and judge.verdict is not None:
                    self.changed(self, resource.name, judge.verdict)
                trouble = ""
            except Exception as error:
                # It says nothing of the target, so the judge does not hear of it.
                if trouble != repr(error):
                    trouble = repr(error)
                    told = f"{resource.id} could not probe, a fault of Holdfast's: {trouble}"
                    self.say(Line(told, Level.ERROR))
            # Counted from the start of a probe, and never two at once.
            spread = random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 (no secret)
            due = max(due + spec.interval * spread, loop.time())
            await asyncio.sleep(due - loop.time())

    async def _ask(self, resource: Resource, timeout: float) -> str:
        target = self.target(resource)
        return await probe(target, timeout) if isinstance(target, Target) else target


def write_verdicts(paths: Paths, verdicts: Mapping[str, Verdict]) -> None:
    """For commands that run beside the daemon, and for the next daemon; they read it as a fact."""
    place = paths.under(FILE)
    place.parent.mkdir(parents=True, exist_ok=True)
    said = {
        "boot_id": clock.boot_id(),
        "verdicts": {
            name: {"healthy": verdict.healthy, "reason": verdict.reason}
            for name, verdict in verdicts.items()
        },
    }
    fresh = place.with_name(f"{place.name}.new")
    fresh.write_text(json.dumps(said))
    fresh.replace(place)
