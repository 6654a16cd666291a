"""What became of each run of a plugin, the last of each plugin kept."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.dataclass import dataclass
from holdfast.state import defaults
from holdfast.state.database import Database, Row
from holdfast.state.rows import INTEGER, INTEGER_OR_NONE, MOMENT, TEXT, Table

STORED, UNCHANGED, FAILED = "stored", "unchanged", "failed"
OUTCOMES = (STORED, UNCHANGED, FAILED)
_TYPES = {
    "plugin": TEXT,
    "trigger": TEXT,
    "started": MOMENT,
    "seconds": MOMENT,
    "outcome": TEXT,
    "generation": INTEGER_OR_NONE,
    "reason": TEXT,
    "stderr": TEXT,
    "number": INTEGER,
}


@dataclass(frozen=True, slots=True)
class PluginRun:
    plugin: str
    trigger: str  # interval, manual, or "event TOPIC"
    started: float
    seconds: float
    outcome: str
    generation: int | None = None  # of the part it led to
    reason: str = ""  # why it failed
    stderr: str = ""
    number: int = 0


def put(database: Database, run: PluginRun) -> None:
    if run.outcome not in OUTCOMES:
        raise ValueError(f"outcome {run.outcome!r} is none of {', '.join(OUTCOMES)}")
    with database.transaction():
        database.execute(
            "INSERT INTO plugin_runs"
            " (plugin, trigger, started, seconds, outcome, generation, reason, stderr)"
            " VALUES (?,?,?,?,?,?,?,?)",
            (
                run.plugin,
                run.trigger,
                run.started,
                run.seconds,
                run.outcome,
                run.generation,
                run.reason,
                run.stderr,
            ),
        )
        database.execute(
            "DELETE FROM plugin_runs WHERE plugin=? AND number NOT IN (SELECT number FROM"
            " plugin_runs WHERE plugin=? ORDER BY number DESC LIMIT ?)",
            (run.plugin, run.plugin, defaults.KEEP_RUNS),
        )


def read(database: Database, plugin: str) -> list[PluginRun]:
    """The newest first; of all plugins where none is named."""
    rest = "WHERE plugin=? OR ?='' ORDER BY number DESC"
    return _table().read(database, rest, (plugin, plugin))


def problems(database: Database) -> Iterator[str]:
    yield from _table().problems(database)


def _table() -> Table[PluginRun]:
    return Table("plugin_runs", _TYPES, _decode, lambda row: f"plugin run {row[-1]}")


def _decode(row: Row) -> PluginRun:
    run = PluginRun(*row)
    if run.outcome not in OUTCOMES:
        raise ValueError(f"outcome {run.outcome!r} is not known")
    return run
