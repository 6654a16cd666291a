"""The journal of provider actions, by idempotency key.

    pending ──► approved ──► running ──► succeeded ──► rolledBack
       ▲            │           ├──────► failed
       └────────────┴── skipped ┘

`running` is durable before an executor is asked. Every claim raises the epoch, and a result counts
only under the epoch that it was claimed with: whoever comes late finds that out, and changes
nothing. What undoes an action is an action of its own, named by `undoes`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.dataclass import dataclass, field
from holdfast.state import values
from holdfast.state.database import Database, Row
from holdfast.state.rows import INTEGER, MOMENT, TEXT, Table

PENDING, APPROVED, RUNNING = "pending", "approved", "running"
SUCCEEDED, FAILED, SKIPPED, ROLLED_BACK = "succeeded", "failed", "skipped", "rolledBack"
STATES = (PENDING, APPROVED, RUNNING, SUCCEEDED, FAILED, SKIPPED, ROLLED_BACK)
RESULTS = (SUCCEEDED, FAILED, SKIPPED)

_TYPES = {
    "idempotency_key": TEXT,
    "source": TEXT,
    "generation": INTEGER,
    "state": TEXT,
    "epoch": INTEGER,
    "created": MOMENT,
    "changed": MOMENT,
    "deadline": MOMENT,
    "approved_by": TEXT,
    "reason": TEXT,
    "undoes": TEXT,
    "plan": TEXT,
    "result": TEXT,
}
_COLUMNS = ", ".join(_TYPES)
_PUT = f"INSERT OR REPLACE INTO actions ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608 (constants only)


@dataclass(frozen=True, slots=True)
class Action:
    key: str
    source: str  # whose part proposed it
    generation: int  # of that part
    state: str
    created: float
    changed: float
    plan: Mapping[str, Any] = field(repr=False)  # as it was proposed; it may hold secrets
    epoch: int = 0  # how often it was claimed
    deadline: float = 0.0  # until then whoever claimed it may bring a result
    approved_by: str = ""
    reason: str = ""  # why it failed or was skipped
    undoes: str = ""  # the key of the action that this one undoes
    result: Mapping[str, Any] = field(default_factory=dict, repr=False)  # what the executor said

    @property
    def digest(self) -> str:
        """The digest of the plan, which is what an approval is for."""
        return f"sha256:{hashlib.sha256(values.dump(self.plan).encode()).hexdigest()}"

    @property
    def decided(self) -> bool:
        return self.state not in (PENDING, APPROVED, RUNNING)


def write(database: Database, put: Iterable[Action], remove: Iterable[str]) -> None:
    """For whoever holds the ledger for as long as it took to read and to decide."""
    with database.transaction():
        database.execute_many(
            "DELETE FROM actions WHERE idempotency_key=?", [(key,) for key in remove]
        )
        put_rows(database, put)


def put_rows(database: Database, put: Iterable[Action]) -> None:
    """Within a transaction."""
    database.execute_many(_PUT, map(_encode, put))


def restore(database: Database, put: Iterable[Action]) -> None:
    """Within a transaction: these in place of those there."""
    database.execute("DELETE FROM actions")
    put_rows(database, put)


def claim(database: Database, action: Action, now: float, deadline: float) -> Action | None:
    """Takes one that is approved, or was claimed by somebody whose time is up, to be executed.
    None where it is no longer as it was read: somebody else was quicker."""
    if action.state not in (APPROVED, RUNNING):
        raise ValueError(f"{action.key} is {action.state}: there is nothing to execute")
    with database.transaction():
        taken = database.query(
            "UPDATE actions SET state=?, epoch=epoch+1, changed=?, deadline=?"
            " WHERE idempotency_key=? AND state=? AND epoch=? RETURNING epoch",
            (RUNNING, now, deadline, action.key, action.state, action.epoch),
        )
    return get(database, action.key) if taken else None


def finish(
    database: Database,
    claimed: Action,
    state: str,
    now: float,
    reason: str,
    result: Mapping[str, Any],
) -> bool:
    """What came of a claim. False where the claim is another's by now: this result is late, and
    nothing is changed. With an undo that succeeded, what it undoes is rolled back."""
    if state not in RESULTS:
        raise ValueError(f"state {state!r} is none of {', '.join(RESULTS)}")
    with database.transaction():
        done = database.query(
            "UPDATE actions SET state=?, changed=?, reason=?, result=?"
            " WHERE idempotency_key=? AND state=? AND epoch=? RETURNING epoch",
            (state, now, reason, values.dump(result), claimed.key, RUNNING, claimed.epoch),
        )
        if done and claimed.undoes and state == SUCCEEDED:
            database.execute(
                "UPDATE actions SET state=?, changed=? WHERE idempotency_key=? AND state=?",
                (ROLLED_BACK, now, claimed.undoes, SUCCEEDED),
            )
    return bool(done)


def read(database: Database) -> list[Action]:
    """In the order they were proposed in."""
    return _table().read(database, "ORDER BY created, 1")


def get(database: Database, key: str) -> Action | None:
    found = _table().read(database, "WHERE idempotency_key=?", (key,))
    return found[0] if found else None


def problems(database: Database) -> Iterator[str]:
    yield from _table().problems(database)
    for key, undoes in database.query(
        "SELECT idempotency_key, undoes FROM actions WHERE undoes!='' AND undoes NOT IN"
        " (SELECT idempotency_key FROM actions)"
    ):
        yield f"action {key}: undoes {undoes}, which is not there"


def _encode(action: Action) -> Row:
    return (
        action.key,
        action.source,
        action.generation,
        action.state,
        action.epoch,
        action.created,
        action.changed,
        action.deadline,
        action.approved_by,
        action.reason,
        action.undoes,
        values.dump(action.plan),
        values.dump(action.result),
    )


def _table() -> Table[Action]:
    return Table("actions", _TYPES, _decode, lambda row: f"action {row[0]}")


def _decode(row: Row) -> Action:
    key, source, generation, state, epoch, created, changed, deadline = row[:8]
    approved_by, reason, undoes, plan, result = row[8:]
    if state not in STATES:
        raise ValueError(f"state {state!r} is not known")
    return Action(
        key,
        source,
        generation,
        state,
        created,
        changed,
        values.load_mapping(plan),
        epoch,
        deadline,
        approved_by,
        reason,
        undoes,
        values.load_mapping(result),
    )
