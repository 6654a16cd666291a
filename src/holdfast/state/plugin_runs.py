"""What became of each run of a plugin, the last of each plugin kept."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.dataclass import dataclass
from holdfast.state import defaults
from holdfast.state.database import Database

STORED, UNCHANGED, FAILED = "stored", "unchanged", "failed"
OUTCOMES = (STORED, UNCHANGED, FAILED)
_COLUMNS = "plugin, trigger, started, seconds, outcome, generation, reason, stderr, number"


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
    rows = database.query(
        f"SELECT {_COLUMNS} FROM plugin_runs WHERE plugin=? OR ?=''"  # noqa: S608 (constants only)
        " ORDER BY number DESC",
        (plugin, plugin),
    )
    return [PluginRun(*row) for row in rows]


def problems(database: Database) -> Iterator[str]:
    for number, outcome in database.query("SELECT number, outcome FROM plugin_runs"):
        if outcome not in OUTCOMES:
            yield f"plugin run {number}: outcome {outcome!r} is not known"
