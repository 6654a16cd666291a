"""The ledger: what this installation made, adopted and applied, kept across restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from holdfast.config.part import Part
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import Claim, Lasting
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import (
    actions,
    claims,
    confirmations,
    copies,
    database,
    declared,
    defaults,
    events,
    folder,
    generations,
    latches,
    notes,
    parts,
    plugin_runs,
    working_copy,
)
from holdfast.state.actions import Action
from holdfast.state.confirmations import Confirmation
from holdfast.state.declared import Declaring, Write
from holdfast.state.events import Event, StoredEvent
from holdfast.state.faults import NotWritableError, UnusableError
from holdfast.state.generations import ConfigFile, Generation
from holdfast.state.latches import Latch
from holdfast.state.plugin_runs import PluginRun
from holdfast.state.storage import Storage
from holdfast.state.values import JSON

if TYPE_CHECKING:  # transfer is for few commands
    from holdfast.state.transfer import ImportSummary

T = TypeVar("T")


class Ledger:
    """Every write is one durable transaction, and what cannot be read is a LedgerError: the
    ledger never leaves a row out, and never repairs or replaces its file by itself."""

    def __init__(
        self, opened: database.Database, storage: Storage | None, clock: Callable[[], float]
    ) -> None:
        """storage: None where it is only read."""
        self._database = opened
        self._storage = storage
        self._clock = clock

    @classmethod
    def open(
        cls,
        paths: Paths,
        *,
        command: str,
        wait: float = 0.0,
        clock: Callable[[], float] = time.time,
        waiting: Callable[[float], None] = lambda _seconds: None,
        durable: bool = False,
    ) -> Ledger:
        """For writing, alone: takes the lock, waiting up to `wait` seconds for whoever holds it,
        and telling `waiting` how long that takes. Creates the ledger where there is none.

        While its file takes no writes, they go to a working copy that is lost with the next boot;
        with `durable` they are refused then (NotWritableError)."""
        storage = Storage(paths, command, clock, durable)
        storage.acquire(wait, waiting)
        try:
            return cls(storage.current(), storage, clock)
        except BaseException:
            storage.release()
            raise

    @classmethod
    def read(cls, paths: Paths) -> Ledger:
        """For reading, beside a writer if there is one. No ledger yet reads as an empty one."""
        try:
            opened = working_copy.read(paths) or _read_own(paths)
        except NotWritableError:
            # To be read it wants to have a file made beside it, too.
            opened = _read_alone(paths)
        except UnusableError:
            if not copies.is_half_made(paths.ledger):
                raise
            opened = _read_alone(paths)
        return cls(opened, None, time.time)

    def close(self) -> None:
        self._database.close()
        if self._storage is not None:
            self._storage.close()
            self._storage.release()

    @property
    def lasting(self) -> Lasting:
        """How long what is written now is kept at least."""
        copy = self._storage.copy if self._storage is not None else None
        if copy is None:
            return Lasting.FOR_GOOD
        return Lasting.THIS_PROCESS if copy.place is None else Lasting.THIS_BOOT

    @property
    def trouble(self) -> str:
        """Why it is not kept for good, and where instead; "" where it is."""
        if self._storage is None:
            return working_copy.trouble(self._database)
        return self._storage.copy.told if self._storage.copy is not None else ""

    def take_told(self) -> list[Event]:
        """What became of the ledger itself since this was asked last; recorded already."""
        if self._storage is None:
            return []
        told, self._storage.told = self._storage.told, []
        return told

    def _write(self, change: Callable[[database.Database], T]) -> T:
        """One whole transaction; on a working copy where the ledger's file takes none."""
        try:
            return self._change(change)
        except NotWritableError as error:
            if self._storage is None:
                raise
            self._database = self._storage.fall_back(error)
        try:
            return self._change(change)
        except NotWritableError as error:  # no room there either
            self._database = self._storage.fall_back(error)
            return self._change(change)

    def _change(self, change: Callable[[database.Database], T]) -> T:
        done = change(self._database)
        if self._storage is not None and self._storage.copy is not None:
            working_copy.wrote(self._storage.copy)
        return done

    def _write_for_good(self, what: str, change: Callable[[database.Database], T]) -> T:
        """NotWritableError where it could only be kept until the next boot."""
        if self._storage is not None:
            self._storage.need_durable(what)
        return change(self._database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def claims(self) -> dict[Key, Claim]:
        return claims.read(self._database)

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None:
        """Removes, then puts, in one durable transaction."""
        given, gone = list(put), list(remove)
        self._write(lambda db: claims.write(db, given, gone))

    def begin_generation(self, files: Sequence[ConfigFile]) -> int:
        """The number of the newest generation if it holds these very files and was not reverted,
        else of a new one in state `applying`. Older ones than the last 50 are dropped."""
        return self._write(lambda db: generations.begin(db, files, self._clock))

    def finish_generation(self, number: int, outcome: str) -> None:
        """outcome: converged, partial or failed."""
        self._write(lambda db: generations.finish(db, number, outcome, self._clock))

    def generations(self, limit: int = 0) -> list[Generation]:
        """The newest first; all that are kept where limit is 0."""
        return generations.read(self._database, limit)

    def generation_files(self, number: int) -> dict[str, bytes]:
        return generations.files(self._database, number)

    def append_events(self, new: Iterable[Event]) -> int:
        """The last sequence number after adding them."""
        given = list(new)
        return self._write(lambda db: events.append(db, given, self._clock))

    def events(self, after: int = 0, limit: int = 0) -> list[StoredEvent]:
        """In order, those numbered above `after`; all that are kept where limit is 0."""
        return events.read(self._database, after, limit)

    def last_event(self) -> int:
        """The highest number given out, whether or not its event is still kept."""
        return events.last(self._database)

    def put_note(self, name: str, value: JSON) -> None:
        self._write(lambda db: notes.put(db, name, value))

    def note(self, name: str) -> JSON:
        """None where there is no such note."""
        return notes.get(self._database, name)

    def put_part(self, part: Part, keep: int = 0) -> None:
        """A generation that its source does not have yet; the last ten of a source are kept, and
        the generation `keep` of it. What it declared by increments before is gone with it."""
        self._write(lambda db: parts.put(db, part, keep))

    def parts(self, *, newest: bool = False) -> list[Part]:
        """By source, the newest generation of each first; with `newest`, that one alone. Then what
        sources declare by increments."""
        return [*parts.read(self._database, newest=newest), *declared.read(self._database)]

    def part(self, source: str, generation: int) -> Part | None:
        return parts.get(self._database, source, generation)

    def part_index(self) -> tuple[tuple[str, int, float | None], ...]:
        """Source, generation and end of the newest part of each source; reads no part."""
        return (*parts.index(self._database), *declared.index(self._database))

    def end_parts(self, source: str) -> None:
        """What the source contributes is over now."""
        self._write(lambda db: parts.end(db, source, self._clock()))

    def forget_parts(self, source: str) -> None:
        """As if it had never handed anything in."""
        self._write(lambda db: parts.forget(db, source))

    def declaring(self) -> list[Declaring]:
        """The sources that declare by increments, or did once."""
        return declared.about(self._database)

    def last_number(self) -> int:
        """The highest that a resource declared by increments ever had."""
        return declared.last_number(self._database)

    def unasserted(self, source: str) -> list[int]:
        """The numbers of what a source did not put again since its sync began."""
        return declared.unasserted(self._database, source)

    def write_declared(self, given: Sequence[Write]) -> None:
        """Batches of increments, in one durable transaction."""
        self._write(lambda db: declared.write(db, given))

    def put_run(self, run: PluginRun) -> None:
        self._write(lambda db: plugin_runs.put(db, run))

    def runs(self, plugin: str = "") -> list[PluginRun]:
        """The newest first; of all plugins where none is named."""
        return plugin_runs.read(self._database, plugin)

    def actions(self) -> list[Action]:
        """The journal, in the order in which actions were proposed."""
        return actions.read(self._database)

    def action(self, key: str) -> Action | None:
        return actions.get(self._database, key)

    def write_actions(self, put: Iterable[Action], remove: Iterable[str] = ()) -> None:
        """In one transaction, by what was read while this ledger was held."""
        given, gone = list(put), list(remove)
        self._write(lambda db: actions.write(db, given, gone))

    def claim_action(self, action: Action, deadline: float) -> Action | None:
        """To be executed by whoever gets it; None where somebody else was quicker. Kept for good:
        after a boot it would be executed again."""
        now = self._clock()
        return self._write_for_good(
            f"that {action.key} is executed", lambda db: actions.claim(db, action, now, deadline)
        )

    def finish_action(
        self, claimed: Action, state: str, reason: str, result: Mapping[str, JSON]
    ) -> bool:
        """What came of a claim; False where it is another's by now, and nothing was changed."""
        now = self._clock()
        return self._write(lambda db: actions.finish(db, claimed, state, now, reason, result))

    def begin_confirmation(self, waiting: Confirmation) -> None:
        """Before the first change: the way back is durable once this returns."""
        self._write_for_good("the way back", lambda db: confirmations.begin(db, waiting))

    def waiting(self) -> Confirmation | None:
        """The generation that waits to be confirmed, or is being reverted."""
        return confirmations.waiting(self._database)

    def confirmations(self) -> list[Confirmation]:
        """Those that wait and those that are decided, the newest first."""
        return confirmations.read(self._database)

    def confirm(self, generation: int) -> None:
        self._write_for_good(
            f"that generation {generation} is confirmed",
            lambda db: confirmations.confirm(db, generation),
        )

    def start_revert(self, generation: int, reason: str) -> None:
        """From here on it can only be reverted, by whoever finds it so."""
        self._write(lambda db: confirmations.start_revert(db, generation, reason))

    def finish_revert(
        self, reverted: Confirmation, put: Iterable[Claim], remove: Iterable[Key]
    ) -> None:
        """The claims as they were, the end of the wait and the latch, in one transaction."""
        latch = Latch(reverted.digest, reverted.generation, self._clock(), reverted.reason)
        given, gone = list(put), list(remove)
        self._write(lambda db: confirmations.finish_revert(db, latch, given, gone))

    def began_with(self, files: Iterable[ConfigFile]) -> bool:
        """Was it these files, wherever they lie, that a pass was last begun with?"""
        newest = self.generations(1)
        return bool(newest) and latches.digest_of(newest[0]) == latches.digest(files)

    def latch(self, files: Iterable[ConfigFile]) -> Latch | None:
        """Why these very files are not applied by themselves; None where nothing speaks against
        it."""
        return self.latched(latches.digest(files)) if self.has_latches() else None

    def has_latches(self) -> bool:
        return latches.exist(self._database)

    def latched(self, digest: str) -> Latch | None:
        """The same by their digest."""
        return latches.get(self._database, digest)

    def latches(self) -> list[Latch]:
        return latches.read(self._database)

    def lift_latch(self, files: Iterable[ConfigFile]) -> None:
        digest = latches.digest(files)
        self._write(lambda db: latches.lift(db, digest))

    def remembered(self) -> dict[str, frozenset[str]]:
        """What drivers remember, by their names; where nobody knows, they are not in it."""
        return notes.memories(self._database)

    def remember(self, driver: str, memory: frozenset[str]) -> None:
        self._write(lambda db: notes.put_memory(db, driver, memory))

    def check(self) -> list[str]:
        """Everything wrong with the ledger; empty means sound."""
        path = self._database.path
        found = folder.loose_permissions(path.parent) if path.exists() else []
        damage = _asked(
            self._database,
            "PRAGMA integrity_check(20)",
            lambda row: "" if row[0] == "ok" else f"{path}: {row[0]}",
        )
        found += filter(None, damage)
        found += _asked(
            self._database,
            "PRAGMA foreign_key_check",
            lambda row: f"{row[0]}: a row names a missing row of {row[2]}",
        )
        for part in (
            claims,
            generations,
            events,
            notes,
            parts,
            declared,
            plugin_runs,
            actions,
            confirmations,
            latches,
        ):
            try:
                found += part.problems(self._database)
            except LedgerError as error:
                found.append(str(error))
        return [*dict.fromkeys(found)]  # what is wrong with the file is told by every table

    def export(self) -> dict[str, Any]:
        """The whole ledger as JSON data: the same ledger always gives the same data."""
        from holdfast.state import transfer

        return transfer.export(self._database)

    def import_(
        self,
        data: Mapping[str, Any],
        *,
        replace: bool = False,
        epoch: str = "",
        unit: Callable[[str], Artifact] | None = None,
    ) -> ImportSummary:
        """Takes in an export, or a ledger in the reference format. Everything is checked first;
        LedgerError names every fault. Claims that differ from those here are Refused, unless
        `replace`: the ledger then holds the data alone. epoch, unit: for the reference format."""
        from holdfast.state import transfer

        read = partial(transfer.import_, data=data, replace=replace, epoch=epoch, unit=unit)
        return self._write_for_good("what is imported", read)


def _read_own(paths: Paths) -> database.Database:
    folder.refuse_unsafe(paths.state_dir, folder=True)
    return database.open_reader(paths.ledger)


def _read_alone(paths: Paths) -> database.Database:
    """A copy in memory, made while nobody writes."""
    storage = Storage(paths, "holdfast, reading", time.time)
    storage.acquire(defaults.BUSY_TIMEOUT_S, lambda _seconds: None)
    try:
        opened = working_copy.read_copy(paths) or copies.read_copy(
            paths.ledger, working_copy.scratch(paths)
        )
    finally:
        storage.release()
    opened.query("PRAGMA query_only=ON")
    return opened


def _asked(
    opened: database.Database, pragma: str, said: Callable[[database.Row], str]
) -> list[str]:
    try:
        return [said(row) for row in opened.query(pragma)]
    except LedgerError as error:
        return [str(error)]
