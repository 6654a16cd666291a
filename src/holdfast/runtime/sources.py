"""Sources besides the startup file: what they hand in, what of it is in force, who is awaited.

Whoever hands a part in (a plugin's run, the API, the command line) goes through `put`. It checks
what must hold of every part before it is stored; whether a part can be merged with the rest is
found out at every merge, since that depends on what else there is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping

from holdfast.config import merge as merging
from holdfast.config.part import Part
from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import ConfigError, HoldfastError, LedgerError, Problem
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.dynamic import effective
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.source_name import parse_source
from holdfast.resources.router import Router
from holdfast.runtime import part_checks
from holdfast.state.ledger import Ledger
from holdfast.state.values import JSON
from holdfast.state.working_copy import Stamp, stamp

MOST_SOURCES = 256
_MOST_REASON = 1024

# How soon it is noticed that another process handed a part in. The file of the ledger is looked at
# this often, and read only if it changed.
_LOOK_S = 0.5

# Why the last part of a source was not taken in, by source: for `dynamic list`.
REFUSED = "refused-parts"
# The generation of each source that was in force last.
ACCEPTED = "accepted-parts"
# What the last part of a source is called by whoever handed it in, by source.
CALLED = "part-names"


@dataclass(frozen=True, slots=True)
class Stored:
    """All that a merge needs to know of sources besides the startup file."""

    parts: tuple[Part, ...]
    accepted: Mapping[str, int]

    def merge(self, startup: Router, now: float, before: Effective | None = None) -> Effective:
        return effective.merge(startup, self.parts, now, before, self.accepted)

    def with_part(self, part: Part) -> Stored:
        """One that declares by increments, as it stands now; none of what it declares is left where
        it holds nothing."""
        others = [
            one for one in self.parts if not (one.by_increments and one.source == part.source)
        ]
        return Stored((*others, *((part,) if part.resources else ())), self.accepted)


def stored(ledger: Ledger, *, every: bool = False) -> Stored:
    """every: also the generations that no longer count, to look back at."""
    accepted = _accepted(ledger)
    if every:
        return Stored(tuple(ledger.parts()), accepted)
    newest = ledger.parts(newest=True)
    others = (
        ledger.part(part.source, accepted[part.source])
        for part in newest
        if not part.by_increments and accepted.get(part.source, part.generation) != part.generation
    )
    return Stored((*newest, *(other for other in others if other is not None)), accepted)


def last(ledger: Ledger, source: str) -> int:
    """The generation that it handed in last; 0 for none."""
    return max((number for name, number, _ in ledger.part_index() if name == source), default=0)


def accept(ledger: Ledger, merged: Effective) -> Mapping[str, int]:
    """Notes what is in force: it stays so while what its source says next cannot be merged."""
    known = _accepted(ledger)
    now = known | {part.source: part.generation for part in _whole(merged)}
    if now != known:
        _note_accepted(ledger, now)
    return now


def news(ledger: Ledger, merged: Effective) -> bool:
    """Whether `accept` would write anything."""
    known = _accepted(ledger)
    return any(known.get(part.source) != part.generation for part in _whole(merged))


def _whole(merged: Effective) -> list[Part]:
    """Of what is declared by increments, nothing older ever counts again."""
    return [part for part in merged.active if not part.by_increments]


def _accepted(ledger: Ledger) -> dict[str, int]:
    found = ledger.note(ACCEPTED)
    given = found.items() if isinstance(found, dict) else ()
    return {name: number for name, number in given if isinstance(number, int)}


def _note_accepted(ledger: Ledger, accepted: Mapping[str, int]) -> None:
    ledger.put_note(ACCEPTED, {name: accepted[name] for name in sorted(accepted)})


def put(ledger: Ledger, part: Part, now: float | None = None) -> int:
    """Stores a part. ConfigError with every reason against it, which is noted for `dynamic list`;
    what the source contributed before then stays in force. Answers how many resources that its
    source declared by increments it takes the place of."""
    moment = time.time() if now is None else now
    problems = list(_problems(ledger, part, moment))
    if problems:
        if not any(problem.path == "spec.source" for problem in problems):
            refuse(ledger, part.source, f"{part.ref}: {problems[0].path}: {problems[0].message}")
        raise ConfigError(problems)
    replaced = [
        one for one in ledger.parts(newest=True) if one.by_increments and one.source == part.source
    ]
    _make_room(ledger, part.source, moment)
    accepted = _accepted(ledger)
    kept = accepted.get(part.source, 0)
    before = ledger.part(part.source, kept)
    ledger.put_part(part, kept)
    if before is not None and before.digest == part.digest:  # in force as it was, for longer
        _note_accepted(ledger, accepted | {part.source: part.generation})
    _note_called(ledger, part.source, part.called)
    refuse(ledger, part.source, "")
    return sum(len(part.resources) for part in replaced)


def called(ledger: Ledger) -> dict[str, str]:
    found = ledger.note(CALLED)
    given = found.items() if isinstance(found, dict) else ()
    return {source: str(name) for source, name in given}


def _note_called(ledger: Ledger, source: str, name: str) -> None:
    """name: empty where it has none."""
    known = called(ledger)
    if known.get(source, "") == name:
        return
    known.pop(source, None)
    if name:
        known[source] = name
    ledger.put_note(CALLED, {**known})


def refuse(ledger: Ledger, source: str, reason: str) -> None:
    """Notes why a source contributes nothing new; empty: it does."""
    known = refusals(ledger)
    if known.get(source, "") == reason[:_MOST_REASON]:
        return
    known.pop(source, None)
    if reason:
        known[source] = reason[:_MOST_REASON]
    # The latest news last: whoever is refused under ever new names drives out no more than notes.
    latest: list[JSON] = [[name, why] for name, why in known.items()]
    ledger.put_note(REFUSED, latest[-MOST_SOURCES:])


def refusals(ledger: Ledger) -> dict[str, str]:
    found = ledger.note(REFUSED)
    given = found if isinstance(found, list) else ()
    return {str(one[0]): str(one[1]) for one in given if isinstance(one, list) and len(one) == 2}


def withdraw(ledger: Ledger, source: str, now: float | None = None) -> str:
    """Ends what a source contributes, and forgets what of it was refused; answers which part that
    was, or the source where none was in force. source: or a part of it that is in force."""
    moment = time.time() if now is None else now
    source = _source_of(ledger, source, moment)
    current = [part for part in in_force(ledger, moment) if part.source == source]
    if not current and source not in refusals(ledger):
        known = sorted({part.source for part in in_force(ledger, moment)})
        more = f"in force are parts of {', '.join(known)}" if known else "no part is in force"
        raise HoldfastError(f"{source} contributes nothing that could be withdrawn; {more}")
    if current:
        ledger.end_parts(source)
    refuse(ledger, source, "")
    return current[0].ref if current else source


def _source_of(ledger: Ledger, wanted: str, now: float) -> str:
    """wanted: a source, or what it or its part in force is called, as `describe` takes them."""
    names = called(ledger)
    found = sorted(
        part.source
        for part in in_force(ledger, now)
        if wanted in (part.ref, part.name, part.source.partition("/")[2], names.get(part.source))
    )
    if len(found) > 1:
        raise HoldfastError(f"{wanted} is what parts of {', '.join(found)} are called; name one")
    return found[0] if found else wanted


def in_force(ledger: Ledger, now: float) -> list[Part]:
    """What may count of each source, the newest first. Policies of the startup file may shorten
    that further: see `resources.dynamic.effective`."""
    return merging.split(stored(ledger).parts, now)[0]


def _problems(ledger: Ledger, part: Part, now: float) -> Iterator[Problem]:
    try:
        parse_source(part.source)
    except ValueError as error:
        yield Problem("", "spec.source", str(error))
        return
    before = last(ledger, part.source)
    if 0 < part.generation <= before:
        message = f"{part.generation} is not above {before}, which {part.source} handed in before"
        yield part_checks.wrong(part, "generation", message)
    full = len(ledger.part_index()) >= MOST_SOURCES
    if not before and full and not _over(ledger, now):
        message = f"{MOST_SOURCES} sources contribute already: withdraw one that is not needed"
        yield part_checks.wrong(part, "source", message)
    yield from part_checks.problems(part, now)


def _over(ledger: Ledger, now: float) -> list[str]:
    """Sources that contribute nothing any more, the longest over first."""
    alive = {part.source for part in in_force(ledger, now)}
    ends = sorted((end or 0.0, source) for source, _, end in ledger.part_index())
    return [source for _, source in ends if source not in alive]


def _make_room(ledger: Ledger, source: str, now: float) -> None:
    """Sources come and go, with a build each perhaps: those that are over make room for others."""
    known = {name for name, _, _ in ledger.part_index()}
    if source in known or len(known) < MOST_SOURCES:
        return
    gone = _over(ledger, now)[0]
    ledger.forget_parts(gone)
    _note_accepted(ledger, {k: one for k, one in _accepted(ledger).items() if k != gone})
    _note_called(ledger, gone, "")
    refuse(ledger, gone, "")


@dataclass(slots=True)
class Sources:
    """What the daemon knows of them. `read` and `awaited` belong to the thread of passes."""

    paths: Paths
    _index: tuple[tuple[str, int, float | None], ...] | None = None
    _stored: Stored = Stored((), {})
    _late: dict[str, int] | None = None  # over when the daemon started: generation by source
    _ran: set[str] = field(default_factory=set)

    def read(self) -> Stored:
        """What counts of each source; the same value as long as nothing is handed in. What cannot
        be read raises LedgerError: unknown is not the same as none."""
        with Ledger.read(self.paths) as ledger:
            index, accepted = ledger.part_index(), _accepted(ledger)
            if index != self._index or accepted != self._stored.accepted:
                self._stored, self._index = stored(ledger), index
        return self._stored

    def is_current(self, ledger: Ledger) -> bool:
        """Whether nobody else handed anything in since it was read."""
        return self._index is not None and ledger.part_index() == self._index

    def take(self, ledger: Ledger, stored: Stored) -> None:
        """What was just written, by the daemon itself."""
        self._stored, self._index = stored, ledger.part_index()

    def accept(self, ledger: Ledger, merged: Effective) -> Stored:
        """What was merged, with what is in force noted."""
        self._stored = replace(self._stored, accepted=accept(ledger, merged))
        return self._stored

    async def watch(self, changed: Callable[[], None]) -> None:
        """Tells of parts that any process hands in or withdraws."""
        seen: Stamp = ()
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                now = stamp(self.paths)
                if now != seen and await asyncio.to_thread(self._others):
                    changed()
                seen = now
            except LedgerError:
                continue  # the pass says it, and will not go on without

    def _others(self) -> bool:
        with Ledger.read(self.paths) as ledger:
            return self._index is not None and ledger.part_index() != self._index

    def ran(self, source: str) -> None:
        """Whoever makes the parts of this source has run since the start, or failed to."""
        self._ran.add(source)

    def awaited(self, effective: Effective) -> tuple[str, ...]:
        """Sources that run by themselves, were in force once, and have not said anything since
        the daemon started: their parts may be over only because it was down. The first call is
        the start."""
        over = {part.source: part.generation for part in effective.expired}
        if self._late is None:
            self._late = over
        recurring = set(_recurring(effective))
        return tuple(
            source
            for source, generation in sorted(self._late.items())
            if over.get(source) == generation and source in recurring and source not in self._ran
        )


def _recurring(effective: Effective) -> Iterator[str]:
    """Plugins that run without being asked. Others may never run again; their parts are over."""
    resources = effective.startup.resources
    proposing = registry.having(resources, lambda kind: kind.proposes_parts)
    plugins = {resource.name: resource.spec for resource in proposing}
    for resource in registry.having(resources, lambda kind: kind.admits_parts):
        if resource.spec.plugin_ref is None:
            continue  # it hands parts in by itself
        triggers = (
            *(plugins[resource.spec.plugin_ref].triggers or ()),
            *(resource.spec.triggers or ()),
        )
        if any(trigger.type == "interval" for trigger in triggers):
            yield str(resource.spec.contributor)
