"""What `holdfast top` shows, as rows: the most telling first, as far as they fit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

from holdfast.agent.events.log import Missed, about
from holdfast.agent.phases import LOOKS, Phase, ResourceStatus
from holdfast.agent.stories import event as event_story
from holdfast.agent.stories.status import Status, ago
from holdfast.agent.stories.style import counted
from holdfast.cli.screen import Row
from holdfast.dataclass import dataclass
from holdfast.state.events import StoredEvent

# A terminal of fewer lines has none for what is past.
_SMALL = 20
# The events that are worth lines even where there are many resources.
_EVENTS = 8
# As many as a page of output bears.
_PRINTED = 10
_HOUR = 3600.0
# What a repair, or the want of one, is recorded as.
_TOLD = ("created", "updated", "replaced", "deleted", "repaired", "drift", "fight")


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    healthy: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PluginSeen:
    name: str
    outcome: str  # of its last run; empty: it never ran
    said: str  # when, or why it failed


@dataclass(frozen=True, slots=True)
class PassSeen:
    when: float
    seconds: float
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    now: float
    who: str  # "daemon 0.1.0, process 812, up 3 h"
    status: Status | None  # None: there is none to be had
    troubles: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    plugins: tuple[PluginSeen, ...] = ()
    passes: tuple[PassSeen, ...] = ()  # the newest first
    events: tuple[StoredEvent | Missed, ...] = ()  # the newest last


def rows(given: Snapshot, height: int) -> list[Row]:
    """height: 0 for all there is."""
    passes = list(_passes(given))
    top = [*_head(given), *_counts(given), *(passes[:1] if 0 < height < _SMALL else passes)]
    middle = [*_troubles(given), *_checks(given), *_plugins(given)]
    resources = list(_resources(given.status.resources)) if given.status else []
    events = list(_events(given))[-_PRINTED:]
    if height:
        # A line below each title, and one at the end for the key that leaves.
        events = events[-min(len(events), max(3, min(_EVENTS, height // 4))) :]
        room = height - len(top) - len(middle) - len(events) - 4
        resources = _fitting(resources, max(room, 1))
    shown: list[Row] = [*top, *middle]
    if resources:
        shown += [(), *resources]
    shown += [(), _title("Events"), *(events or [(("  none yet", "dim"),)])]
    return shown[: height - 1] if height else shown


def footer(now: float) -> Row:
    return ((f"q leaves · {time.strftime('%H:%M:%S', time.localtime(now))}", "dim"),)


def _head(given: Snapshot) -> Iterator[Row]:
    name = given.status.router if given.status else "holdfast"
    yield ((name, "bold"), (f"  {given.who}", "dim"))


def _counts(given: Snapshot) -> Iterator[Row]:
    status = given.status
    if status is None:
        return
    counts = status.counts()
    cells = [(f"{counted(len(status.resources), 'resource')}: ", "")]
    for phase in reversed(Phase):
        if phase.value in counts:
            cells.append((f"{counts[phase.value]} {phase.value}  ", LOOKS[phase]))
    since = given.now - _HOUR
    seen = [event for event in given.events if isinstance(event, StoredEvent)]
    told = Counter(e.kind for e in seen if e.time >= since and e.kind in _TOLD)
    if told:
        # There may be more of them than are kept at hand here.
        whole = seen[0].sequence == 1 or seen[0].time < since
        span = "last hour" if whole else f"last {len(seen)} events"
        said = ", ".join(f"{count} {kind}" for kind, count in told.most_common())
        cells.append((f"· {span}: {said}", "dim"))
    yield tuple(cells)


def _passes(given: Snapshot) -> Iterator[Row]:
    for number, one in enumerate(given.passes):
        label = "last pass " if number == 0 else "before it "
        age = ago(max(0, int(given.now - one.when)))
        why = event_story.printable(", ".join(one.causes))
        took = f"{one.seconds * 1000:.0f} ms"
        yield ((f"{label}", "dim"), (f"{age.ljust(10)} {took.rjust(8)}  {why}", ""))
    past = given.status.past if given.status else None
    if not given.passes and past is not None and past.last_pass is not None:
        age = ago(max(0, int(given.now) - int(past.last_pass["time"])))
        yield (("last pass ", "dim"), (f"{age}: {past.last_pass['outcome']}", ""))


def _troubles(given: Snapshot) -> Iterator[Row]:
    if given.troubles:
        yield ()
        yield _title("In the way")
    for trouble in given.troubles[:5]:
        yield ((f"  {event_story.printable(trouble)}", "yellow"),)
    if len(given.troubles) > 5:
        yield ((f"  … and {len(given.troubles) - 5} more", "dim"),)


def _checks(given: Snapshot) -> Iterator[Row]:
    if given.checks:
        yield ()
        yield _title("Health checks")
    width = max((len(check.name) for check in given.checks), default=0)
    for check in given.checks:
        state, look = ("healthy  ", "green") if check.healthy else ("unhealthy", "red")
        reason = event_story.printable(check.reason)
        yield (("  ", ""), (state, look), (f"  {check.name.ljust(width)}  ", ""), (reason, "dim"))


def _plugins(given: Snapshot) -> Iterator[Row]:
    if given.plugins:
        yield ()
        yield _title("Plugins")
    width = max((len(one.name) for one in given.plugins), default=0)
    for one in given.plugins:
        look = {"failed": "red", "": "dim"}.get(one.outcome, "green")
        outcome = (one.outcome or "never ran").ljust(9)
        said = event_story.printable(one.said)
        yield (("  ", ""), (outcome, look), (f"  {one.name.ljust(width)}  ", ""), (said, "dim"))


def _resources(given: Sequence[ResourceStatus]) -> Iterator[Row]:
    """What is not well first."""
    order = list(Phase)
    width = max((len(one.resource) for one in given), default=0)
    for one in sorted(given, key=lambda one: (order.index(one.phase), one.resource)):
        said = one.reason or counted(one.artifacts, "artifact") + " as declared"
        yield (
            ("  ", ""),
            (one.phase.value.ljust(10), LOOKS[one.phase]),
            (f"  {one.resource.ljust(width)}  ", ""),
            (event_story.printable(said), "dim"),
        )


def _fitting(given: list[Row], room: int) -> list[Row]:
    if len(given) <= room:
        return given
    return [*given[: room - 1], ((f"  … and {len(given) - room + 1} more", "dim"),)]


def _events(given: Snapshot) -> Iterator[Row]:
    today = time.strftime("%Y-%m-%d", time.localtime(given.now))
    for event in given.events:
        if isinstance(event, Missed):
            yield (
                (f"  … {counted(event.count, 'event')} dropped before they were read", "yellow"),
            )
            continue
        owners = [name for name in about(event) if name != event.subject]
        yield (
            (f"  {event_story.clock(event.time, today)}  ", "dim"),
            (event.kind.ljust(9), event_story.look(event.kind)),
            (f"  {event_story.printable(f'{event.subject}: {event.message}')}", ""),
            (f" ({', '.join(owners[:2])})" if owners else "", "dim"),
        )


def _title(text: str) -> Row:
    return ((text, "bold"),)
