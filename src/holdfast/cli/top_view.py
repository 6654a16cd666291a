"""What `holdfast top` shows, as rows: the most telling first, as far as they fit."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from holdfast.characters import escaped
from holdfast.cli.screen import Row
from holdfast.dataclass import dataclass
from holdfast.engine import event_kinds
from holdfast.numbers import counted
from holdfast.render import event as event_story
from holdfast.render.status import ago
from holdfast.runtime.event_log import Missed, about
from holdfast.runtime.phases import LOOKS, Phase, ResourceStatus
from holdfast.runtime.status import Status
from holdfast.state.events import StoredEvent

# A terminal of fewer lines has none for what is past.
_SMALL = 20
# The events that are worth lines even where there are many resources.
_EVENTS = 8
# As many as a page of output bears.
_PRINTED = 10
_HOUR = 3600.0
_VERDICTS = {
    True: ("healthy  ", "green"),
    False: ("unhealthy", "red"),
    None: ("unknown  ", "magenta"),
}
# As terminals send them.
UP, DOWN, PAGE_UP, PAGE_DOWN = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~"
HOME, END = "\x1b[H", "\x1b[F"
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)
# What a repair, or the want of one, is recorded as.
_TOLD = (
    event_kinds.CREATED,
    event_kinds.UPDATED,
    event_kinds.REPLACED,
    event_kinds.DELETED,
    event_kinds.REPAIRED,
    event_kinds.DRIFT,
    event_kinds.FIGHT,
)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    healthy: bool | None  # None: it has not come to a verdict yet
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


@dataclass(slots=True)
class Scrolled:
    """How far down the list of resources somebody went."""

    first: int = 0
    most: int = 0  # where the last of them is in sight
    page: int = 1  # how many are in sight between those above and those below

    def press(self, keys: str) -> None:
        """keys: one, or several where somebody holds one down."""
        for key in _KEY.findall(keys):
            self._press(key)

    def _press(self, key: str) -> None:
        page = self.page
        steps = {UP: -1, "k": -1, DOWN: 1, "j": 1, PAGE_UP: -page, PAGE_DOWN: page, " ": page}
        ends = {HOME: -self.first, "g": -self.first, END: self.most, "G": self.most}
        wanted = self.first + (steps | ends).get(key, 0)
        self.first = max(0, min(wanted, self.most))

    def fitting(self, given: list[Row], room: int) -> list[Row]:
        """As many as there is room for, with a line for those before and one for those after."""
        self.page = max(room - 2, 1)
        if len(given) <= room:
            self.first = self.most = 0
            return given
        if room == 1:
            self.first = self.most = 0
            return [_more(len(given), "more")]
        self.most = len(given) - room + 1
        self.first = min(self.first, self.most)
        left = room - (1 if self.first else 0)
        above = [_more(self.first, "above")] if self.first else []
        below = len(given) - self.first - left
        if below <= 0:
            return [*above, *given[self.first : self.first + left]]
        return [*above, *given[self.first : self.first + left - 1], _more(below + 1, "more")]


def rows(given: Snapshot, height: int, scrolled: Scrolled | None = None) -> list[Row]:
    """height: 0 for all there is."""
    passes = list(_passes(given))
    top = [*_head(given), *_counts(given), *(passes[:1] if 0 < height < _SMALL else passes)]
    middle = [*_troubles(given), *_candidates(given), *_checks(given), *_plugins(given)]
    resources = list(_resources(given.status.resources)) if given.status else []
    events = list(_events(given))[-_PRINTED:]
    if height:
        # A line below each title, and one at the end for the key that leaves.
        events = events[-min(len(events), max(3, min(_EVENTS, height // 4))) :]
        room = height - len(top) - len(middle) - len(events) - 4
        resources = (scrolled or Scrolled()).fitting(resources, max(room, 1))
    shown: list[Row] = [*top, *middle]
    if resources:
        shown += [(), *resources]
    shown += [(), _title("Events"), *(events or [(("  none yet", "dim"),)])]
    return shown[: height - 1] if height else shown


def footer(now: float) -> Row:
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    return ((f"q leaves · ↑ ↓ scroll · {clock}", "dim"),)


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
    for number, pass_seen in enumerate(given.passes):
        label = "last pass " if number == 0 else "before it "
        age = ago(max(0, int(given.now - pass_seen.when)))
        why = escaped(", ".join(pass_seen.causes))
        took = f"{pass_seen.seconds * 1000:.0f} ms"
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
        yield ((f"  {escaped(trouble)}", "yellow"),)
    if len(given.troubles) > 5:
        yield ((f"  … and {len(given.troubles) - 5} more", "dim"),)


def _candidates(given: Snapshot) -> Iterator[Row]:
    resources = given.status.resources if given.status else ()
    found = [
        (resource.resource, resource.active)
        for resource in resources
        if resource.active is not None
    ]
    if found:
        yield ()
        yield _title("Default routes")
    for policy, active in found:
        why = escaped(active.why)
        since = ago(max(0, int(given.now - active.since))) if active.since else "not applied yet"
        name = escaped(active.name)
        yield (("  ", ""), (name, "green"), (f"  {policy}, {since}  ", ""), (why, "dim"))


def _checks(given: Snapshot) -> Iterator[Row]:
    if given.checks:
        yield ()
        yield _title("Health checks")
    width = max((len(check.name) for check in given.checks), default=0)
    for check in given.checks:
        state, look = _VERDICTS[check.healthy]
        reason = escaped(check.reason)
        yield (("  ", ""), (state, look), (f"  {check.name.ljust(width)}  ", ""), (reason, "dim"))


def _plugins(given: Snapshot) -> Iterator[Row]:
    if given.plugins:
        yield ()
        yield _title("Plugins")
    width = max((len(plugin.name) for plugin in given.plugins), default=0)
    for plugin in given.plugins:
        look = {"failed": "red", "": "dim"}.get(plugin.outcome, "green")
        outcome = (plugin.outcome or "never ran").ljust(9)
        said = escaped(plugin.said)
        yield (("  ", ""), (outcome, look), (f"  {plugin.name.ljust(width)}  ", ""), (said, "dim"))


def _resources(given: Sequence[ResourceStatus]) -> Iterator[Row]:
    """What is not well first."""
    order = list(Phase)
    width = max((len(status.resource) for status in given), default=0)
    for status in sorted(given, key=lambda status: (order.index(status.phase), status.resource)):
        said = status.reason or counted(status.artifacts, "artifact") + " as declared"
        yield (
            ("  ", ""),
            (status.phase.value.ljust(10), LOOKS[status.phase]),
            (f"  {status.resource.ljust(width)}  ", ""),
            (escaped(said), "dim"),
        )


def _more(count: int, where: str) -> Row:
    return ((f"  … and {count} {where}", "dim"),)


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
            (f"  {escaped(f'{event.subject}: {event.message}')}", ""),
            (f" ({', '.join(owners[:2])})" if owners else "", "dim"),
        )


def _title(text: str) -> Row:
    return ((text, "bold"),)
