"""What there is to see, as documents: pages and JSON show the same."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from holdfast.agent.events.log import Filter
from holdfast.agent.events.stream import EventStream
from holdfast.agent.phases import phases
from holdfast.agent.standing import Standing
from holdfast.agent.stories import event as event_story
from holdfast.agent.stories import generations
from holdfast.agent.stories import status as status_story
from holdfast.agent.stories.status import Status
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
    def standing(self) -> Standing: ...
    @property
    def signs(self) -> Mapping[str, int]:
        """Signs of change since the start, by artifact kind."""

    @property
    def signs_lost(self) -> int: ...

    def alive(self) -> bool:
        """Whether the loop gets round: no pass hangs."""


@dataclass(slots=True)
class Seen:
    loop: Loop
    events: EventStream
    _for: Standing | None = None
    _status: Status | None = None
    left: Mapping[str, int] = field(default_factory=lambda: document.summary(_EMPTY))

    @property
    def ready(self) -> bool:
        return self.loop.standing.plan is not None

    def status(self) -> Status:
        """By the last pass; nothing is looked at anew."""
        standing = self.loop.standing
        if self._status is None or self._for is not standing:
            plan = standing.plan or _EMPTY
            resources = standing.router.resources if standing.router is not None else ()
            name = standing.router.name if standing.router is not None else ""
            masked = standing.effective.suppressed if standing.effective is not None else ()
            found = phases(plan, resources, masked)
            past = status_story.past(self.loop.paths)
            self._status = status_story.status(name, found, plan, past)
            self.left = self._status.summary
            self._for = standing
        return self._status

    def overview(self) -> dict[str, Any]:
        standing, status = self.loop.standing, self.status()
        return {
            key: list(value) if key == "resources" else value for key, value in status.members()
        } | {
            "ready": self.ready,
            "alive": self.loop.alive(),
            "troubles": list(standing.troubles),
            "pass": {
                "count": standing.passes,
                "ended": standing.last_pass,
                "seconds": standing.seconds,
                "causes": list(standing.causes),
                "ago": max(0.0, time.time() - standing.last_pass) if standing.last_pass else None,
            },
            "checks": [
                {"name": name, "healthy": one.healthy, "reason": one.reason}
                for name, one in sorted(standing.facts.verdicts.items())
            ],
        }

    def plan(self) -> dict[str, Any]:
        """What the last pass left, and what it keeps; no more of each than a page holds."""
        plan = self.loop.standing.plan or _EMPTY
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
