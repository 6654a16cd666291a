"""What there is to see, as documents: pages and JSON show the same."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from holdfast.agent.events.log import Filter
from holdfast.agent.events.stream import EventStream
from holdfast.agent.phases import phases
from holdfast.agent.status import DaemonStatus
from holdfast.agent.stories import event as event_story
from holdfast.agent.stories import generations
from holdfast.agent.stories import status as status_story
from holdfast.agent.stories.status import Status
from holdfast.dataclass import dataclass
from holdfast.engine import document
from holdfast.engine.plan import Plan
from holdfast.paths import Paths
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
            past = status_story.past(self.loop.paths)
            told = self._told = (daemon, status_story.status(name, found, plan, past))
        return told[1]

    def overview(self) -> dict[str, Any]:
        daemon, status = self.loop.status, self.status()
        return {
            key: list(value) if key == "resources" else value for key, value in status.members()
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
                {"name": name, "healthy": one.healthy, "reason": one.reason}
                for name, one in sorted(daemon.facts.verdicts.items())
            ],
        }

    def plan(self) -> dict[str, Any]:
        """What the last pass left, and what it keeps; no more of each than a page holds."""
        plan = self.loop.status.plan or _EMPTY
        changes = document.operations(plan.changes)
        return {
            "format_version": document.FORMAT_VERSION,
            "summary": document.summary(plan),
            "refusal": plan.refusal,
            "operations": list(islice(changes, _SHOWN)),
            "more": max(0, sum(op.count for op in plan.changes) - _SHOWN),
            "orphans": [
                document.orphan(one, artifact)
                for one in plan.orphans[:_SHOWN]
                for artifact in document.artifacts(one.subject, 3)
            ],
            "conflicts": list(map(document.conflict, plan.conflicts[:_SHOWN])),
            "adoption_candidates": list(map(document.candidate, plan.candidates[:_SHOWN])),
            "pending": list(map(document.held, plan.pending[:_SHOWN])),
            "blocked": list(map(document.held, plan.blocked[:_SHOWN])),
            "unknown": [{"kind": kind, "reason": reason} for kind, reason in plan.unknown],
        }

    async def last_events(self, count: int, wanted: Filter) -> list[dict[str, Any]]:
        return [event_story.entry(one) async for one in self.events.read(wanted, last=count)]

    def newest_event(self) -> int:
        with Ledger.read(self.loop.paths) as ledger:
            return ledger.last_event()

    def generations(self) -> list[dict[str, Any]]:
        with Ledger.read(self.loop.paths) as ledger:
            return [
                generations.entry(one) | {"judged": one.judged} for one in generations.read(ledger)
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
