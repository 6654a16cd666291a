"""Which startup config is in force: the file, or the last good one."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from pathlib import Path

from holdfast.config.part import RECORD
from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import ConfigError, LedgerError, Problem, Refused
from holdfast.paths import Paths
from holdfast.resources.router import Router, load_router
from holdfast.runtime.confirm import stored_configuration
from holdfast.runtime.confirm import trial as confirm
from holdfast.runtime.defaults import LEDGER_WAIT_S
from holdfast.runtime.detached_thread import DetachedThread, StillRunning, TookTooLong
from holdfast.runtime.log import Level, Line, fault
from holdfast.runtime.trusted_configuration import refuse_untrusted
from holdfast.runtime.unfinished_files import (
    QUIET_S,
    TOLD_AFTER_S,
    Unfinished,
    Version,
    Youngest,
    version,
)
from holdfast.state.database import OlderLedgerError
from holdfast.state.generations import CARRIED_OUT, REVERTED, Generation
from holdfast.state.ledger import Ledger

# A file system that did not answer is asked again after so long.
_HANGS_AGAIN_S = 5.0
# What takes longer to read is read beside the passes. YAML takes a second for each megabyte or two.
_BESIDE_S = 0.5


@dataclass(frozen=True, slots=True)
class Loaded:
    router: Router | None  # None: there never was a valid one
    said: tuple[str, ...]  # for the log, now
    trouble: str = ""  # what stands in the way of the file; empty where it is in force
    error: ConfigError | Refused | None = None  # the same, for who asked
    youngest: Youngest | None = None  # of its files
    again_in: float = math.inf  # seconds until it is worth reading again, whatever is told
    unready: bool = False  # it is being read, and `apart` tells when it was


@dataclass(frozen=True, slots=True)
class _Attempt:
    read: Router | ConfigError | None  # None: it may be half of what it will be
    youngest: Youngest | None = None
    again_in: float = math.inf


def _disk_files(router: Router | None) -> list[Path]:
    files = router.files if router is not None else ()
    return [Path(file.path) for file in files if not file.path.startswith(RECORD)]


@dataclass(slots=True)
class Startup:
    """The file is in force if it is valid and was not reverted. Otherwise what was in force
    stays; at the start, when nothing was, the last good generation of the ledger is taken. What is
    there is never taken down because a file cannot be read."""

    paths: Paths
    file: Path
    writes: bool = True  # a ledger of an older format may be brought up to date
    router: Router | None = None
    unfinished: Unfinished = field(default_factory=Unfinished)
    apart: DetachedThread[_Attempt] = field(default_factory=DetachedThread)
    _begun: tuple[Version | None, ...] = ()  # the files when it was begun to read them
    _written_since: float | None = None  # it was not taken for being written
    _trial: tuple[int, Router] | None = None  # the generation that waits to be confirmed

    def read(self, *, asked: bool = False) -> Loaded:
        """Reads the file again; asked: by somebody who says that it is whole. LedgerError where it
        cannot be told whether it was reverted."""
        on_trial = self._on_trial()
        if on_trial is not None:
            return on_trial
        try:
            found = self._found(asked=asked)
            if found.read is None and self.router is None and not self._generation():
                # There is nothing that half of a file could take away.
                found = self._found(asked=True)
        except TookTooLong:
            problem = Problem(str(self.file), "", "cannot be read: the file system does not answer")
            found = _Attempt(ConfigError([problem]), again_in=_HANGS_AGAIN_S)
        except StillRunning:
            trouble = f"{self.file} is being read: the last good one stays in force until it was"
            return Loaded(self.router, (), trouble, unready=True)
        except Exception as error:  # of whatever kind: the router must not be left alone for it
            unread = fault(f"{self.file} could not be checked", error)
            return self._fallback(unread, [], Refused(unread))
        if found.read is None:
            return self._wait(found)
        self._written_since = None
        if isinstance(found.read, ConfigError):
            said = [Line(str(problem), Level.WARNING) for problem in found.read.problems]
            instead = self._fallback(f"{self.file} is invalid", said, found.read)
            return replace(instead, again_in=found.again_in)
        router = found.read
        with self._ledger() as ledger:
            latch = ledger.latch(router.files)
        if latch is not None:
            why = (
                f"{self.file} was reverted (generation {latch.generation}: {latch.reason}) and is"
                " not applied again by itself; `holdfast apply` applies it all the same"
            )
            return self._fallback(why, [], Refused(why))
        again = "read again" if self.router else "read"
        warnings = (Line(f"warning: {warning}", Level.WARNING) for warning in router.warnings)
        self.router = router
        count = len(router.resources)
        told = (*warnings, f"{self.file} {again}: {count} resources")
        return Loaded(router, told, youngest=found.youngest)

    def _found(self, *, asked: bool) -> _Attempt:
        """Raises Unready where something is in force that drift is to be repaired from while a
        large file is read."""
        taken_up = self.apart.busy
        known = [self.file, *_disk_files(self.router)]
        if not taken_up:
            self._begun = tuple(map(version, known))
        within = _BESIDE_S if self.router is not None else None
        found = self.apart.run(lambda: self._attempt(asked=asked), within)
        changed = self._begun != tuple(map(version, known))
        if taken_up and (changed or (asked and found.read is None)):
            return self._found(asked=asked)
        return found

    def _attempt(self, *, asked: bool) -> _Attempt:
        """Before, so that a list of a million routes is not read again and again while somebody
        writes it; and after, for it may have been written meanwhile."""
        known = [self.file, *_disk_files(self.router)]
        before = self.unfinished.youngest(known)
        if before is not None and not asked and before.missing(QUIET_S):
            return _Attempt(None, before, before.missing(QUIET_S))
        read: Router | ConfigError
        # A look for garbage among millions of nodes takes a second, and every thread waits for it.
        collects = gc.isenabled()
        gc.disable()
        try:
            refuse_untrusted(self.file)
            read = load_router(self.file, self.paths.root, again=self.router)
        except ConfigError as error:
            read = error
        finally:
            if collects:
                gc.enable()
        after = self.unfinished.youngest(
            known if isinstance(read, ConfigError) else _disk_files(read)
        )
        if after is not None and not asked and after.missing(QUIET_S):
            return _Attempt(None, after, after.missing(QUIET_S))
        return _Attempt(read, after)

    def _wait(self, found: _Attempt) -> Loaded:
        """What is in force stays so until the file is whole. Nobody is told of what is a matter of
        a moment."""
        now = self.unfinished.clock()
        if self._written_since is None:
            self._written_since = now
        path = found.youngest.path if found.youngest is not None else self.file
        why = f"{path} is being written"
        error = Refused(f"{why}: ask again in a moment")
        said: tuple[str, ...] = ()
        if self.router is None:
            number, self.router, _ = self.last_good()
            said = (f"{why}: generation {number} of the ledger is in force until it is left alone",)
        trouble = ""
        if now - self._written_since > TOLD_AFTER_S:
            opened = found.youngest is not None and found.youngest.opened
            how = f" (`fuser -v {path}` names who has it open)" if opened else " without a pause"
            kept = "the last good one stays in force; `holdfast apply` takes it as it is"
            trouble = f"{why}{how}: {kept}"
        return Loaded(self.router, said, trouble, error, again_in=found.again_in)

    def _generation(self) -> int:
        """The number of the last good one; 0 where there is none."""
        return self.last_good()[0]

    def _on_trial(self) -> Loaded | None:
        """The generation that waits to be confirmed, whatever the file says meanwhile."""
        with self._ledger() as ledger:
            waiting = ledger.waiting()
            if waiting is None:
                self._trial = None
                return None
            number = waiting.generation
            said: tuple[str, ...] = ()
            if self._trial is None or self._trial[0] != number:
                _, router = stored_configuration.load_generation(
                    ledger, number, self.paths.root, Path(waiting.file)
                )
                self._trial = number, router
                said = (f"generation {number}, of {waiting.file}, is on trial",)
        why = confirm.told(waiting)
        return Loaded(
            self._trial[1],
            said,
            f"{self.file} is not read meanwhile: {why}",
            Refused(f"nothing was touched: {why}"),
        )

    def _fallback(self, why: str, said: list[Line], error: ConfigError | Refused) -> Loaded:
        if self.router is not None:
            kept = "the last good one stays in force"
        else:
            number, self.router, skipped = self.last_good()
            said += skipped
            kept = f"generation {number} of the ledger is in force" if number else "nothing is done"
        level = why.level if isinstance(why, Line) else Level.WARNING
        trouble = Line(f"{why}: {kept}", level)
        return Loaded(self.router, (*said, trouble), trouble, error)

    def last_good(self) -> tuple[int, Router | None, list[Line]]:
        """Its number and what it declared; and what was wrong with newer ones."""
        skipped: list[Line] = []
        try:
            with self._ledger() as ledger:
                for generation in self._candidates(ledger):
                    try:
                        number = generation.number
                        _, router = stored_configuration.load_generation(
                            ledger, number, self.paths.root, self.file
                        )
                    except Refused as error:
                        skipped.append(Line(str(error), Level.ERROR))
                        continue
                    except LedgerError:
                        raise
                    except Exception as error:  # as above
                        skipped.append(fault(f"generation {number} could not be checked", error))
                        continue
                    if ledger.latch(router.files) is None:
                        return number, router, skipped
        except LedgerError as error:
            skipped.append(Line(str(error), Level.ERROR))
        return 0, None, skipped

    def _ledger(self) -> Ledger:
        """To read. One of an older format is brought up to date first: no pass would otherwise
        ever come to do it."""
        try:
            return Ledger.read(self.paths)
        except OlderLedgerError:
            if not self.writes:
                raise
            Ledger.open(self.paths, command="holdfast serve", wait=LEDGER_WAIT_S).close()
            return Ledger.read(self.paths)

    def _candidates(self, ledger: Ledger) -> Iterator[Generation]:
        """Of this file, the newest first; before those whose pass failed, those whose did not."""
        name = str(self.file)
        ours = [
            generation
            for generation in ledger.generations()
            if generation.state != REVERTED and any(file.path == name for file in generation.files)
        ]
        yield from (our for our in ours if our.state in CARRIED_OUT)
        yield from (our for our in ours if our.state not in CARRIED_OUT)
