"""Prometheus metrics, all of them told from what stands when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric

from holdfast import __version__
from holdfast.agent.web.view import Seen
from holdfast.api.conditions import CallRefused
from holdfast.dataclass import dataclass
from holdfast.engine.plan import Verb
from holdfast.runtime.phases import Phase
from holdfast.runtime.routes import sessions
from holdfast.runtime.routes.metrics import RouteNumbers
from holdfast.runtime.routes.status_of import Picture
from holdfast.runtime.routes.tally import Tally


@dataclass(frozen=True, slots=True)
class Described:
    """One metric: for the reference documentation too."""

    name: str
    about: str
    label: str = ""
    counts: bool = False
    second: str = ""  # another label

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.label, self.second)))


INFO = Described("holdfast_info", "Always 1; the version is a label.", "version")
READY = Described("holdfast_ready", "1 once there was a pass of a valid configuration.")
PASSES = Described("holdfast_passes", "Passes since the daemon started.", counts=True)
LAST = Described("holdfast_last_pass_timestamp_seconds", "When the last pass ended.")
SECONDS = Described("holdfast_last_pass_seconds", "How long the last pass took.")
GENERATION = Described("holdfast_generation", "The generation in force.")
RESOURCES = Described("holdfast_resources", "Resources of the effective config by phase.", "phase")
LEFT = Described("holdfast_operations_left", "Artifacts that the last pass left to do.", "verb")
CONFLICTS = Described("holdfast_conflicts", "Declared artifacts that something foreign holds.")
TROUBLES = Described("holdfast_troubles", "What is in the way now, by the log; not what waits.")
WRITTEN = Described(
    "holdfast_ledger_written", "1 while the ledger is kept for good, 0 while it cannot be written."
)
HEALTHY = Described(
    "holdfast_health_check_healthy",
    "The verdict of a health check; absent while it has not come to one.",
    "check",
)
ACTIVE = Described(
    "holdfast_candidate_active",
    "1 of the candidate that a default route policy takes, 0 of the others.",
    "policy",
    second="candidate",
)
ACTIVE_SINCE = Described(
    "holdfast_candidate_active_since_timestamp_seconds",
    "Since when a default route policy takes the candidate that it takes.",
    "policy",
)
EVENTS = Described("holdfast_events", "Events there ever were.", counts=True)
MISSED = Described("holdfast_events_missed", "Events that readers were too slow for.", counts=True)
LEFT_OUT = Described(
    "holdfast_events_left_out",
    "Events of a source (a plugin) that were not kept: it told too many in a minute.",
    "source",
    counts=True,
)
HINTS = Described("holdfast_hints", "Hints of change from outside, by artifact kind.", "kind", True)
LOST = Described("holdfast_hints_lost", "Times the kernel had more to say than fits.", counts=True)
REFUSED = Described(
    "holdfast_api_refused",
    "Calls refused for who made them: `unauthenticated` (a token that nobody has), `denied`,"
    " `too-many` (of either, at a time).",
    "socket",
    counts=True,
    second="reason",
)

ALL = (
    INFO, READY, PASSES, LAST, SECONDS, GENERATION, RESOURCES, LEFT, CONFLICTS, TROUBLES, WRITTEN,
    HEALTHY, ACTIVE, ACTIVE_SINCE, EVENTS, MISSED, LEFT_OUT, HINTS, LOST,
    REFUSED,
)  # fmt: skip


class _Collector:
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        seen = self._seen
        daemon = seen.loop.status
        yield _labelled(INFO, {__version__: 1})
        yield _plain(READY, float(seen.ready))
        yield _plain(PASSES, daemon.passes)
        yield _plain(LAST, daemon.last_pass)
        yield _plain(SECONDS, daemon.seconds)
        yield _plain(GENERATION, daemon.generation)
        status = seen.status()
        phases = dict.fromkeys((phase.value for phase in Phase), 0) | status.counts()
        yield _labelled(RESOURCES, phases)
        yield _labelled(LEFT, {v.value: status.summary[v.value] for v in Verb if v.changes_host})
        yield _plain(CONFLICTS, status.summary["conflicts"])
        yield _plain(TROUBLES, len(daemon.troubles))
        yield _plain(WRITTEN, float(not daemon.unwritten))
        verdicts = daemon.facts.verdicts
        yield _labelled(
            HEALTHY, {name: float(verdict.healthy) for name, verdict in verdicts.items()}
        )
        taken = {
            resource.resource: resource.active
            for resource in status.resources
            if resource.active is not None
        }
        candidates = {
            (policy, name): float(name == candidate.name)
            for policy, candidate in taken.items()
            for name in (candidate.name, *candidate.others)
        }
        yield _labelled(ACTIVE, candidates)
        since = {
            policy: candidate.since
            for policy, candidate in taken.items()
            if candidate.since is not None
        }
        yield _labelled(ACTIVE_SINCE, since)
        yield _plain(EVENTS, seen.newest_event())
        yield _plain(MISSED, seen.events.missed)
        yield _labelled(LEFT_OUT, seen.events_left_out())
        yield _labelled(HINTS, {kind or "any": n for kind, n in seen.loop.hints.items()})
        yield _plain(LOST, seen.loop.hints_lost)
        # Another thread adds to it.
        yield _labelled(REFUSED, dict(seen.loop.refused_calls))
        yield from _routes(seen.loop.route_numbers)


def _routes(numbers: Callable[[], RouteNumbers] | None) -> Iterator[Metric]:
    """None before the first pass."""
    if numbers is None:
        return
    try:
        now = numbers()
    except CallRefused:
        return
    for counted in now.counted():
        family = CounterMetricFamily if counted.counts else GaugeMetricFamily
        found = family(counted.name, counted.about, labels=counted.labels)
        for labels, value in dict(counted.values).items():
            found.add_metric(labels, value)
        yield found
    for timed in now.timed():
        histogram = HistogramMetricFamily(timed.name, timed.about, labels=timed.labels)
        for labels, durations in dict(timed.values).items():
            histogram.add_metric(labels, durations.buckets(), durations.total)
        yield histogram


def _plain(what: Described, value: float) -> Metric:
    family = CounterMetricFamily if what.counts else GaugeMetricFamily
    return family(what.name, what.about, value=value)


def _labelled(what: Described, values: Mapping[Any, float]) -> Metric:
    """values: by the value of its label, or by those of both."""
    family = CounterMetricFamily if what.counts else GaugeMetricFamily
    found = family(what.name, what.about, labels=what.labels)
    for label, value in values.items():
        found.add_metric([label] if what.second == "" else list(label), value)
    return found


class Metrics:
    def __init__(self, seen: Seen) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(_Collector(seen))

    def text(self) -> bytes:
        return generate_latest(self._registry)


def reference(metrics: Iterable[Described] = ALL) -> Iterator[str]:
    """Rows for the documentation."""
    for metric in metrics:
        yield _row(
            metric.name, "counter" if metric.counts else "gauge", metric.labels, metric.about
        )


def route_reference() -> Iterator[str]:
    """The same of routing control."""
    numbers = RouteNumbers(Tally(), Picture({}, {}, sessions.Seen(), {}, str), frozenset(), 0)
    for counted in numbers.counted():
        yield _row(
            counted.name, "counter" if counted.counts else "gauge", counted.labels, counted.about
        )
    for timed in numbers.timed():
        yield _row(timed.name, "histogram", timed.labels, timed.about)


def _row(name: str, kind: str, labels: Iterable[str], about: str) -> str:
    full = f"{name}_total" if kind == "counter" else name
    return f"| `{full}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {about} |"
