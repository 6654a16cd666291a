"""Generations that wait, or waited, to be confirmed, each with the way back to what was before.

    open ──► confirmed
      └────► reverting ──► reverted

`reverting` is written before the first change back is made, so that a revert that was interrupted
is gone on with by whoever comes next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.errors import LedgerError
from holdfast.state import claims, latches, values
from holdfast.state.database import Database, Row
from holdfast.state.latches import Latch
from holdfast.state.rows import BLOB, INTEGER, MOMENT, TEXT, Table
from holdfast.state.values import JSON

OPEN, CONFIRMED, REVERTING, REVERTED = "open", "confirmed", "reverting", "reverted"
STATES = (OPEN, CONFIRMED, REVERTING, REVERTED)

_TYPES = {
    "generation": INTEGER,
    "state": TEXT,
    "started": MOMENT,
    "deadline": MOMENT,
    "boot": TEXT,
    "monotonic_deadline": MOMENT,
    "before": INTEGER,
    "file": TEXT,
    "installs": TEXT,
    "digest": TEXT,
    "reverse": BLOB,
    "probes": TEXT,
    "reason": TEXT,
}
_COLUMNS = ", ".join(_TYPES)
_PUT = f"INSERT OR REPLACE INTO confirmations ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608 (constants only)


@dataclass(frozen=True, slots=True)
class Confirmation:
    generation: int  # the candidate
    started: float  # seconds since 1970, as the deadline is: for people to read
    deadline: float
    boot: str  # the boot in which `monotonic_deadline` means anything
    monotonic_deadline: float  # seconds of the boot clock, which no step of the wall clock moves
    before: int  # the generation that was in force; 0: none was
    file: str  # the Router document of the candidate
    installs: str  # where its text goes once it is confirmed; "" where it stays where it is
    digest: str  # of the candidate's files, as a latch has it
    reverse: bytes = field(repr=False)  # empty once it is decided; it may hold secrets
    probes: JSON = None  # what answered before the first change
    state: str = OPEN
    reason: str = ""  # why it was reverted

    @property
    def waits(self) -> bool:
        return self.state in (OPEN, REVERTING)


def begin(database: Database, waiting: Confirmation) -> None:
    with database.transaction():
        database.execute(_PUT, _encode(waiting))


def waiting(database: Database) -> Confirmation | None:
    """The one that is not decided yet; there is never more than one."""
    return next((confirmation for confirmation in read(database) if confirmation.waits), None)


def read(database: Database) -> list[Confirmation]:
    """The newest generation first."""
    return _table().read(database, "ORDER BY generation DESC")


def confirm(database: Database, generation: int) -> None:
    with database.transaction():
        _move(database, generation, OPEN, CONFIRMED, "")


def start_revert(database: Database, generation: int, reason: str) -> None:
    """From here on it can only be reverted."""
    with database.transaction():
        _move(database, generation, OPEN, REVERTING, reason)


def finish_revert(
    database: Database,
    latch: Latch,
    put: Iterable[Claim],
    remove: Iterable[Key],
) -> None:
    """All at once: the claims as they were, the end of the wait, and the latch. Generations since
    then are the candidate's as well, with parts that came while it waited."""
    with database.transaction():
        claims.remove_rows(database, remove)
        claims.put_rows(database, put)
        _move(database, latch.generation, REVERTING, REVERTED, latch.reason)
        database.execute(
            "UPDATE generations SET state=? WHERE number>=?", (REVERTED, latch.generation)
        )
        latches.put_row(database, latch)


def take_decisions(database: Database, other: Database) -> None:
    """Within a transaction: what waits here and was decided there is decided."""
    there = {
        (confirmation.generation, confirmation.started): confirmation
        for confirmation in read(other)
    }
    for confirmation in read(database):
        decided = there.get((confirmation.generation, confirmation.started))
        if confirmation.waits and decided is not None:
            database.execute(
                "DELETE FROM confirmations WHERE generation=?", (confirmation.generation,)
            )
            database.execute(_PUT, _encode(decided))


def problems(database: Database) -> Iterator[str]:
    yield from _table().problems(database)
    counted = "SELECT count(*) FROM confirmations WHERE state IN (?,?)"
    open_ones = database.query(counted, (OPEN, REVERTING))[0][0]
    if open_ones > 1:
        yield f"{open_ones} generations wait to be confirmed at once"


def _move(database: Database, generation: int, before: str, after: str, reason: str) -> None:
    rows = database.query("SELECT state FROM confirmations WHERE generation=?", (generation,))
    if rows != [(before,)]:
        now = rows[0][0] if rows else "not there"
        raise LedgerError(
            f"{database.path}: the confirmation of generation {generation} is {now}, not {before}"
        )
    kept = "reverse" if after == REVERTING else "x''"
    database.execute(
        f"UPDATE confirmations SET state=?, reason=?, reverse={kept} WHERE generation=?",  # noqa: S608 (constants only)
        (after, reason, generation),
    )


def _table() -> Table[Confirmation]:
    return Table(
        "confirmations", _TYPES, _decode, lambda row: f"confirmation of generation {row[0]}"
    )


def _encode(confirmation: Confirmation) -> Row:
    return (
        confirmation.generation,
        confirmation.state,
        confirmation.started,
        confirmation.deadline,
        confirmation.boot,
        confirmation.monotonic_deadline,
        confirmation.before,
        confirmation.file,
        confirmation.installs,
        confirmation.digest,
        confirmation.reverse,
        values.dump(confirmation.probes),
        confirmation.reason,
    )


def _decode(row: Row) -> Confirmation:
    generation, state, started, deadline, boot, monotonic, before, file = row[:8]
    installs, digest, reverse, probes, reason = row[8:]
    if state not in STATES:
        raise ValueError(f"state {state!r} is not known")
    return Confirmation(
        generation,
        started,
        deadline,
        boot,
        monotonic,
        before,
        file,
        installs,
        digest,
        reverse,
        values.load(probes),
        state,
        reason,
    )
