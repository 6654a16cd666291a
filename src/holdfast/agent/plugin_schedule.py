"""Plugins at work: each runs when one of its triggers says so, and never twice at once."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from holdfast.dataclass import dataclass, field
from holdfast.errors import Refused
from holdfast.resources.dynamic.dynamic_config_source import DynamicConfigSource
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.plugin import Plugin
from holdfast.resources.dynamic.source_name import plugin_source
from holdfast.resources.resource import Resource
from holdfast.runtime.log import Level, Line
from holdfast.runtime.plugins.protocol import Trigger
from holdfast.runtime.plugins.run import FinishedRun, PluginRunner
from holdfast.state.events import Event

# Plugins that start together would run together ever after.
_SPREAD = 0.1
# What happened since it ran last, for one that is triggered by events.
_MOST_EVENTS = 100
# An event that one causes may trigger another; a plugin is not run more often than this for it.
_BETWEEN_EVENTS_S = 1.0


@dataclass(slots=True)
class _Charge:
    """One plugin that is looked after."""

    resource: Resource
    triggers: tuple[tuple[str, float, str], ...]  # type, seconds, topic
    running: asyncio.Lock
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    events: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=_MOST_EVENTS))
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(topic for kind, _, topic in self.triggers if kind == "event")


@dataclass(slots=True)
class PluginSchedule:
    """Only what stands in the startup file is ever run: no part can bring in a program."""

    runner: PluginRunner
    effective: Callable[[], Effective | None]  # as things are now
    generation: Callable[[], int]
    ran: Callable[[str], None]  # a source had its say, well or not (agent/sources.py)
    changed: Callable[[str], None]  # a part came, or a source that was waited for has loaded
    say: Callable[[str], None]
    told: Callable[[Sequence[Event]], None]  # events that are recorded already
    _charges: dict[str, _Charge] = field(default_factory=dict)
    # By name: what is declared otherwise while it runs is still the same program.
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    _loaded: set[str] = field(default_factory=set)  # since the daemon started
    _problems: dict[str, str] = field(default_factory=dict)  # of the last run of each

    def watch(self, startup: Iterable[Resource]) -> None:
        """These plugins, from now on, and no others."""
        resources = list(startup)
        wanted = {
            resource.name: resource for resource in resources if isinstance(resource.spec, Plugin)
        }
        triggers = {name: _triggers(resource, resources) for name, resource in wanted.items()}
        for name in list(self._charges):
            charge = self._charges[name]
            same = name in wanted and charge.resource.spec == wanted[name].spec
            if not same or charge.triggers != triggers[name]:
                del self._charges[name]
                for task in charge.tasks:
                    task.cancel()
        for name, resource in wanted.items():
            if name not in self._charges:
                lock = self._locks.setdefault(name, asyncio.Lock())
                charge = self._charges[name] = _Charge(resource, triggers[name], lock)
                charge.tasks = [
                    asyncio.create_task(self._every(charge, seconds))
                    for kind, seconds, _ in charge.triggers
                    if kind == "interval"
                ]
                if charge.topics:
                    charge.tasks.append(asyncio.create_task(self._on_events(charge)))

    def hear(self, events: Iterable[Event]) -> None:
        """What happened, for those that are triggered by it; never by their own doing."""
        for event in events:
            for charge in self._charges.values():
                if event.kind in charge.topics and event.subject != charge.resource.id:
                    said = {
                        "type": event.kind,
                        "message": event.message,
                        "attributes": {"subject": event.subject, **event.data},
                    }
                    charge.events.append(said)
                    charge.heard.set()

    async def run(self, name: str, *, dry_run: bool = False) -> FinishedRun:
        """Now, because somebody asks for it."""
        charge = self._charges.get(name)
        if charge is None:
            known = ", ".join(sorted(self._charges)) or "none"
            raise Refused(f"there is no {plugin_source(name)}; known are: {known}")
        return await self._run(charge, Trigger("manual"), dry_run=dry_run)

    async def stop(self) -> None:
        tasks = [task for charge in self._charges.values() for task in charge.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._charges.clear()

    async def _every(self, charge: _Charge, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self._guarded(charge, Trigger("interval"))
            spread = random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 (no secret)
            due = max(due + seconds * spread, loop.time())
            await asyncio.sleep(due - loop.time())

    async def _on_events(self, charge: _Charge) -> None:
        while True:
            await charge.heard.wait()
            topic = str(charge.events[-1]["type"]) if charge.events else ""
            await self._guarded(charge, Trigger("event", topic))
            await asyncio.sleep(_BETWEEN_EVENTS_S)

    async def _guarded(self, charge: _Charge, trigger: Trigger) -> None:
        try:
            await self._run(charge, trigger)
        except Exception as error:
            self.say(Line(f"{charge.resource.id} was not run: {error}", Level.ERROR))
            self.ran(plugin_source(charge.resource.name))  # nothing waits for it any longer

    async def _run(
        self, charge: _Charge, trigger: Trigger, *, dry_run: bool = False
    ) -> FinishedRun:
        async with charge.running:
            effective = self.effective()
            if effective is None:
                raise Refused("there is no valid startup file yet")
            events = tuple(charge.events)
            if not dry_run:
                charge.heard.clear()
                charge.events.clear()
            ran = await self.runner.run(
                charge.resource,
                effective,
                trigger,
                generation=self.generation(),
                events=events,
                dry_run=dry_run,
            )
        if not dry_run:
            self._tell(charge.resource, ran)
        return ran

    def _tell(self, plugin: Resource, ran: FinishedRun) -> None:
        first = plugin.name not in self._loaded
        self._loaded.add(plugin.name)
        # What is in the way is told by passes.
        news = self._problems.get(plugin.name, "") != ran.problem
        self._problems[plugin.name] = ran.problem
        self.ran(plugin_source(plugin.name))
        if ran.problem:
            self.say(Line(f"{plugin.id} failed: {ran.problem}", Level.ERROR))
        self.told(ran.events)
        if ran.stored or first or news:
            # A part like the last one lives longer, which the merge has to know too.
            self.changed(plugin.id)


def _triggers(
    plugin: Resource, resources: Iterable[Resource]
) -> tuple[tuple[str, float, str], ...]:
    """Its own, and those of the source that binds it."""
    found = list(plugin.spec.triggers or ())
    for resource in resources:
        if (
            isinstance(resource.spec, DynamicConfigSource)
            and resource.spec.plugin_ref == plugin.name
        ):
            found += resource.spec.triggers or ()
    return tuple(
        dict.fromkeys(
            (trigger.type, trigger.every or 0.0, trigger.topic or "") for trigger in found
        )
    )
