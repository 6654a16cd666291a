"""What there is to see, as documents: pages and JSON show the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.event_stream import EventStream
from holdfast.dataclass import dataclass
from holdfast.engine import document
from holdfast.engine.difference import NOT_READ, Differences
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Plan
from holdfast.host import differences
from holdfast.paths import Paths
from holdfast.render import event as event_story
from holdfast.render import generations
from holdfast.render import status as render_status
from holdfast.runtime import drivers, event_rate
from holdfast.runtime import status as runtime_status
from holdfast.runtime.conditions import conditions
from holdfast.runtime.event_log import Filter
from holdfast.runtime.phases import NO_VERDICT, phases
from holdfast.runtime.routes.metrics import RouteNumbers
from holdfast.runtime.status import Status
from holdfast.state.ledger import Ledger

_EMPTY = Plan(())
# A page is for people: 100 000 routes are a few lines and a number.
_SHOWN = 200


class Loop(Protocol):
    """What is needed of the loop."""

    @property
    def paths(self) -> Paths: ...
    @property
    def status(self) -> DaemonStatus: ...
    @property
    def hints(self) -> Mapping[str, int]:
        """Hints of change since the start, by artifact kind."""

    @property
    def hints_lost(self) -> int: ...
    @property
    def refused_calls(self) -> Mapping[tuple[str, str], int]:
        """Calls of the API that were refused for who made them, by socket and reason."""

    @property
    def route_numbers(self) -> Callable[[], RouteNumbers] | None: ...

    def alive(self) -> bool:
        """Whether the loop gets round: no pass hangs."""


@dataclass(slots=True)
class Seen:
    loop: Loop
    events: EventStream
    _told: tuple[DaemonStatus, Status] | None = None  # at once: pages are made in many threads

    @property
    def ready(self) -> bool:
        return self.loop.status.plan is not None

    def status(self) -> Status:
        """By the last pass; nothing is looked at anew."""
        daemon, told = self.loop.status, self._told
        if told is None or told[0] is not daemon:
            plan = daemon.plan or _EMPTY
            resources = daemon.router.resources if daemon.router is not None else ()
            name = daemon.router.name if daemon.router is not None else ""
            masked = daemon.effective.suppressed if daemon.effective is not None else ()
            found = phases(plan, resources, masked)
            past = runtime_status.past(self.loop.paths)
            status = runtime_status.status(name, found, plan, past)
            known = conditions(self.loop.paths, resources, daemon.facts, plan)
            told = self._told = (daemon, known.told(status))
        return told[1]

    def overview(self) -> dict[str, Any]:
        daemon, status = self.loop.status, self.status()
        return {
            key: list(value) if key == "resources" else value
            for key, value in render_status.members(status)
        } | {
            "ready": self.ready,
            "alive": self.loop.alive(),
            "troubles": list(daemon.troubles),
            "pass": {
                "count": daemon.passes,
                "ended": daemon.last_pass,
                "seconds": daemon.seconds,
                "causes": list(daemon.causes),
                "ago": max(0.0, time.time() - daemon.last_pass) if daemon.last_pass else None,
            },
            "checks": [
                {
                    "name": name,
                    "healthy": None if verdict is None else verdict.healthy,
                    "reason": NO_VERDICT if verdict is None else verdict.reason,
                }
                for name, verdict in sorted(daemon.verdicts.items())
            ],
        }

    def plan(self) -> dict[str, Any]:
        """What the last pass left, and what it keeps; no more of each than a page holds."""
        plan = self.loop.status.plan or _EMPTY
        changes = document.operations(plan.changes, self._differences(plan))
        return {
            "format_version": document.FORMAT_VERSION,
            "summary": document.summary(plan),
            "refusal": plan.refusal,
            "operations": list(islice(changes, _SHOWN)),
            "interruptions": document.interruptions(plan)[:_SHOWN],
            "more": max(0, sum(op.count for op in plan.changes) - _SHOWN),
            "orphans": [
                document.orphan(orphan, artifact)
                for orphan in plan.orphans[:_SHOWN]
                for artifact in document.artifacts(orphan.subject, 3)
            ],
            "conflicts": list(map(document.conflict, plan.conflicts[:_SHOWN])),
            "adoption_candidates": list(map(document.candidate, plan.candidates[:_SHOWN])),
            "pending": list(map(document.held, plan.pending[:_SHOWN])),
            "blocked": list(map(document.held, plan.blocked[:_SHOWN])),
            "unknown": [{"kind": kind, "reason": reason} for kind, reason in plan.unknown],
        }

    def _differences(self, plan: Plan) -> Differences:
        """Read for each page: what a pass leaves is little, and mostly nothing."""
        router = self.loop.status.router
        telling = [op for op in plan.changes[:_SHOWN] if KINDS[op.kind].digests]
        if router is None or not telling:
            return NOT_READ
        with drivers.of_machine(self.loop.paths, router.ownership.tag) as host:
            return differences.read(host, telling)

    async def last_events(self, count: int, wanted: Filter) -> list[dict[str, Any]]:
        return [event_story.entry(one) async for one in self.events.read(wanted, last=count)]

    def newest_event(self) -> int:
        with Ledger.read(self.loop.paths) as ledger:
            return ledger.last_event()

    def events_left_out(self) -> Mapping[str, int]:
        with Ledger.read(self.loop.paths) as ledger:
            return event_rate.left_out(ledger)

    def generations(self) -> list[dict[str, Any]]:
        with Ledger.read(self.loop.paths) as ledger:
            return [
                generations.entry(story) | {"judged": story.judged}
                for story in generations.read(ledger)
            ]

    def generation(self, number: int) -> Sequence[tuple[str, str]]:
        """Its files, without secrets."""
        with Ledger.read(self.loop.paths) as ledger:
            files = ledger.generation_files(number)
        return [(path, generations.shown(path, content)) for path, content in files.items()]

    def diff(self, before: int, after: int) -> str:
        with Ledger.read(self.loop.paths) as ledger:
            old, new = ledger.generation_files(before), ledger.generation_files(after)
        return generations.diff(old, new, (f"generation {before}", f"generation {after}"))
