"""The effective config as the daemon holds it: read again when the file changed, merged again when
a part did or is over, and otherwise the very same value."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.config.part import RECORD
from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import ConfigError, HoldfastError, LedgerError, Refused
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.router import Router
from holdfast.runtime import merge_events, sources
from holdfast.runtime import startup as startups
from holdfast.runtime.defaults import LEDGER_WAIT_S
from holdfast.runtime.increments import (
    Answer,
    Batch,
    Batches,
    Merged,
    Merging,
    Register,
    registers,
)
from holdfast.runtime.log import fault
from holdfast.runtime.sources import Sources, Stored
from holdfast.runtime.startup import Startup
from holdfast.runtime.unfinished_files import QUIET_BEFORE_DELETES_S, Youngest
from holdfast.state import latches
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger


class Stale(Exception):  # noqa: N818 (no error)
    """What sources handed in has to be read first."""


@dataclass(frozen=True, slots=True)
class Read:
    effective: Effective | None  # None: there never was a valid startup file
    said: tuple[str, ...] = ()  # for the log, now
    events: tuple[Event, ...] = ()  # recorded already
    troubles: tuple[str, ...] = ()  # what has no effect now, and why
    error: ConfigError | Refused | None = None  # why the file itself is not in force
    unloaded: tuple[str, ...] = ()  # sources that nothing may be cleaned up without
    # What goes, goes because parts came or went: the file is the one that was applied. Policies of
    # the administrator's say what parts may do and for how long, so that nobody has to be asked.
    parts_alone: bool = False
    youngest: Youngest | None = None  # of the files, as they were read
    again_in: float = math.inf  # seconds until the file is to be read again, whatever is told
    unready: bool = False  # the file is being read; when it was, is told

    def too_new(self, deletes: bool) -> str:
        """Why what the file says has to wait: nothing is deleted for what was written just now."""
        if not deletes or self.delay() <= 0 or self.youngest is None:
            return ""
        return (
            f"{self.youngest.path} was written a moment ago, and something would be deleted for it;"
            f" it is taken once it was left alone for {QUIET_BEFORE_DELETES_S:.0f} s"
        )

    def delay(self) -> float:
        """How many seconds from now that is."""
        if self.youngest is None:
            return 0.0
        passed = time.monotonic() - self.youngest.at
        return self.youngest.missing(QUIET_BEFORE_DELETES_S) - passed

    @property
    def router(self) -> Router | None:
        return self.effective.router if self.effective is not None else None

    def same_startup(self, other: Effective | None) -> bool:
        """Whether what differs between the two is parts alone."""
        mine = self.effective
        return mine is not None and other is not None and mine.startup is other.startup

    @property
    def next_change(self) -> float | None:
        """When it is to be read again at the latest, in seconds since 1970."""
        return self.effective.next_change if self.effective is not None else None


@dataclass(slots=True)
class Configuration:
    """Belongs to the thread of passes, but for `sources.ran`."""

    paths: Paths
    file: Path
    clock: Callable[[], float] = time.time
    startup: Startup = field(init=False)
    sources: Sources = field(init=False)
    _loaded: startups.Loaded | None = None
    _unsaid: tuple[str, ...] = ()  # of it
    _stored: Stored | None = None
    _merged_at: float = 0.0
    _effective: Effective | None = None
    _moved: set[str] = field(default_factory=set)  # parts whose coming or going is not settled
    _settled: Router | None = None  # the startup config that passes converged with last
    _applied: str = ""  # the digest of its files
    _registers: tuple[Stored, dict[str, Register]] = (Stored((), {}), {})

    def __post_init__(self) -> None:
        self.startup = Startup(self.paths, self.file)
        self.sources = Sources(self.paths)

    def read(self, *, again: bool, asked: bool = False) -> Read:
        """again: the file may have changed; asked: somebody wants it taken as it is. Raises
        LedgerError: what is in force cannot be told then, and nothing may be done."""
        if again or self._loaded is None:
            self._loaded = self.startup.read(asked=asked)
            self._unsaid = self._loaded.said
        startup, trouble = self._loaded.router, self._loaded.trouble
        if startup is None:
            said, self._unsaid = self._unsaid, ()
            again_in = self._loaded.again_in
            return Read(None, said, (), (trouble,), self._loaded.error, again_in=again_in)
        stored, now = self.sources.read(), self.clock()
        events: tuple[Event, ...] = ()
        effective = self._effective
        if effective is None or effective.startup is not startup or self._due(stored, now):
            try:
                effective = stored.merge(startup, now, self._effective)
            except Exception as error:  # of whatever kind: the file is not to blame for it
                return self._unmerged(startup, stored, error)
            before, (events, stored) = self._records(), self._record(effective, stored)
            self._effective, self._stored, self._merged_at = effective, stored, now
            self._moved |= {path for path, _ in before ^ self._records()}
        said, self._unsaid = self._unsaid, ()
        return Read(
            effective,
            said,
            events,
            (*((trouble,) if trouble else ()), *effective.findings),
            self._loaded.error,
            self.sources.awaited(effective),
            bool(self._moved) and latches.digest(startup.files) == self._applied,
            self._loaded.youngest,
            self._loaded.again_in,
            self._loaded.unready,
        )

    def _unmerged(self, startup: Router, stored: Stored, error: Exception) -> Read:
        """What was in force with this file, or the file alone. Either way nothing is cleaned up:
        what parts contribute is unknown."""
        known = self._effective
        if known is None or known.startup is not startup:
            known = Effective(startup, startup)
        said, self._unsaid = self._unsaid, ()
        loaded = self._loaded
        trouble = fault("what other sources contribute was not merged", error)
        return Read(
            known,
            said,
            troubles=(trouble,) if not loaded or not loaded.trouble else (loaded.trouble, trouble),
            error=loaded.error if loaded else None,
            unloaded=tuple(sorted({part.source for part in stored.parts})),
        )

    def declare(
        self, ledger: Ledger, given: Sequence[Batch], merging: Merging | None = None
    ) -> tuple[list[Answer | HoldfastError], tuple[Event, ...]]:
        """Batches of increments: what becomes of each, in order, and the events of it. They are
        stored together, and what is in force by them is what is read next."""
        if self._effective is None or not self.sources.is_current(ledger):
            raise Stale
        before, stored, now = self._effective, self.sources.read(), self.clock()
        known, self._registers = self._registers, (Stored((), {}), {})
        found = known[1] if known[0] is stored else registers(stored, ledger.declaring())
        batches = Batches(
            ledger,
            before.startup,
            now,
            Merged(before, stored),
            found,
            ledger.last_number(),
            merging,
        )
        answers: list[Answer | HoldfastError] = []
        for batch in given:
            try:
                answers.append(batches.take(batch))
            except LedgerError:
                raise
            except HoldfastError as error:
                answers.append(error)
        batches.write()
        effective, stored = batches.merged.effective, batches.merged.stored
        events: tuple[Event, ...] = ()
        if effective is not before and not batches.amended:
            stored = replace(stored, accepted=sources.accept(ledger, effective))
            events = tuple(merge_events.record(ledger, effective))
        self.sources.take(ledger, stored)
        self._registers = stored, found
        self._effective, self._stored, self._merged_at = effective, stored, now
        if effective is not before:
            self._moved |= {f"{RECORD}{batch.source}" for batch in given}
        return answers, events

    def last_good(self) -> Effective | None:
        """What was in force before the file that was read last, by the ledger, with the parts of
        today. None: there is no such thing."""
        _, startup, _ = self.startup.last_good()
        return self.sources.read().merge(startup, self.clock()) if startup is not None else None

    @property
    def effective(self) -> Effective | None:
        """As of the last read, and of what was declared since."""
        return self._effective

    @property
    def is_settled(self) -> bool:
        """Whether the startup file is the one that passes converged with: what goes now, goes
        because of what other sources say."""
        known = self._effective
        return known is not None and known.startup is self._settled

    def settled(self) -> None:
        """A pass converged, with nothing left for want of a source."""
        self._moved.clear()
        startup = self._effective.startup if self._effective is not None else None
        if startup is not None and startup is not self._settled:
            self._settled, self._applied = startup, latches.digest(startup.files)

    def _records(self) -> set[tuple[str, bytes]]:
        """What parts are in force; at the start, what was when a pass last converged."""
        if self._effective is not None:
            files = self._effective.router.files
            return {(file.path, file.content) for file in files if file.path.startswith(RECORD)}
        with Ledger.read(self.paths) as ledger:
            for generation in ledger.generations():
                if generation.state == "converged":
                    self._applied = latches.digest_of(generation)
                    found = ledger.generation_files(generation.number)
                    return {one for one in found.items() if one[0].startswith(RECORD)}
        return set()

    def _due(self, stored: Stored, now: float) -> bool:
        """Other parts, or one of them is over; or the clock was set back, and one is not."""
        known = self._effective
        if known is None or stored is not self._stored or now < self._merged_at:
            return True
        return known.next_change is not None and now >= known.next_change

    def _record(self, effective: Effective, stored: Stored) -> tuple[tuple[Event, ...], Stored]:
        """The events of it; and what was merged, with what is in force noted."""
        with Ledger.read(self.paths) as reader:
            if not merge_events.changed(reader, effective) and not sources.news(reader, effective):
                return (), stored
        with Ledger.open(self.paths, command="holdfast serve", wait=LEDGER_WAIT_S) as ledger:
            known = self.sources.accept(ledger, effective)
            return tuple(merge_events.record(ledger, effective)), known
