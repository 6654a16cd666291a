"""Applied generations, each with the very files it came from."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from holdfast.dataclass import dataclass, replace
from holdfast.errors import LedgerError, Refused
from holdfast.state import defaults, faults
from holdfast.state.database import Database, Row
from holdfast.state.rows import BLOB, INTEGER, MOMENT, MOMENT_OR_NONE, TEXT, Table

APPLYING = "applying"
CONVERGED = "converged"
OUTCOMES = (CONVERGED, "partial", "failed")  # the best first
# It was carried out: what can be gone back to.
CARRIED_OUT = OUTCOMES[:2]
# After an outcome: what it changed was taken back, because nobody confirmed it.
REVERTED = "reverted"
_STATES = (APPLYING, *OUTCOMES, REVERTED)


class ConfigFile(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def content(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class GenerationFile:
    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Generation:
    number: int
    state: str  # "applying", then one of OUTCOMES, perhaps "reverted" then
    created: float
    finished: float | None
    files: tuple[GenerationFile, ...]


def begin(database: Database, files: Iterable[ConfigFile], clock: Callable[[], float]) -> int:
    """The newest generation where it holds these very files and was not reverted, else a new one.
    An unchanged configuration costs its hashing and no write."""
    contents = _by_path(files)
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    newest = read(database, 1)
    held = {file.path: file.sha256 for file in newest[0].files} if newest else None
    if held == digests and newest[0].state != REVERTED:
        return newest[0].number
    stored = {sha256 for (sha256,) in database.query("SELECT sha256 FROM contents")}
    fresh = {
        digests[path]: content for path, content in contents.items() if digests[path] not in stored
    }
    packed = [pack(sha256, content) for sha256, content in fresh.items()]
    with database.transaction():
        put_contents(database, packed)
        number = database.execute(
            "INSERT INTO generations (state, created) VALUES (?,?)", (APPLYING, clock())
        )
        put_files(database, number, digests)
        prune(database, number)
    return number


def pack(sha256: str, content: bytes) -> Row:
    return sha256, len(content), zlib.compress(content, defaults.COMPRESSION_LEVEL)


def put_contents(database: Database, packed: Iterable[Row]) -> None:
    """Within a transaction."""
    database.execute_many("INSERT INTO contents VALUES (?,?,?)", packed)


def put_files(database: Database, number: int, digests: Mapping[str, str]) -> None:
    """Within a transaction."""
    database.execute_many(
        "INSERT INTO generation_files VALUES (?,?,?)",
        [(number, path, sha256) for path, sha256 in digests.items()],
    )


def restore(database: Database, generations: Iterable[Generation], packed: Iterable[Row]) -> None:
    """Within a transaction: these generations and contents in place of what is there."""
    for table in ("generation_files", "generations", "contents"):
        database.execute(f"DELETE FROM {table}")  # noqa: S608 (constants only)
    put_contents(database, packed)
    newest = 0
    for generation in generations:
        database.execute(
            "INSERT INTO generations VALUES (?,?,?,?)",
            (generation.number, generation.state, generation.created, generation.finished),
        )
        digests = {file.path: file.sha256 for file in generation.files}
        put_files(database, generation.number, digests)
        newest = max(newest, generation.number)
    prune(database, newest)


def finish(database: Database, number: int, outcome: str, clock: Callable[[], float]) -> None:
    """The best that a pass came to with it is kept: what came in between later, a conflict or a
    driver that fails for a while, is the state of the host and not the worth of the files."""
    if outcome not in OUTCOMES:
        raise ValueError(f"outcome {outcome!r} is none of {', '.join(OUTCOMES)}")
    row = database.query("SELECT state FROM generations WHERE number=?", (number,))
    if not row:
        raise LedgerError(f"{database.path}: there is no generation {number} to finish")
    if row[0][0] in OUTCOMES[: OUTCOMES.index(outcome) + 1]:
        return
    with database.transaction():
        database.execute(
            "UPDATE generations SET state=?, finished=? WHERE number=?", (outcome, clock(), number)
        )


def read(database: Database, limit: int) -> list[Generation]:
    """The newest first; all of them where limit is 0."""
    found = _TABLE.read(database, "ORDER BY number DESC LIMIT ?", (limit or -1,))
    return [
        replace(
            generation,
            files=tuple(
                _FILES.read(database, "WHERE generation=? ORDER BY path", (generation.number,))
            ),
        )
        for generation in found
    ]


def files(database: Database, number: int) -> dict[str, bytes]:
    # SQLite takes 64 bits, and callers may say any number.
    if number >= 2**63 or not database.query("SELECT 1 FROM generations WHERE number=?", (number,)):
        raise Refused(
            f"there is no generation {number}; the last {defaults.KEEP_GENERATIONS} are kept"
        )
    return dict(_STORED.read(database, "WHERE generation=? ORDER BY path", (number,)))


def problems(database: Database) -> Iterator[str]:
    for table in (_CONTENTS, _TABLE, _FILES):
        yield from table.problems(database)


def prune(database: Database, newest: int) -> None:
    """Within a transaction: drops what lies too far back, and contents nothing names any more."""
    database.execute(
        "DELETE FROM generations WHERE number<=?", (newest - defaults.KEEP_GENERATIONS,)
    )
    database.execute(
        "DELETE FROM confirmations WHERE generation<=? AND length(reverse)=0",
        (newest - defaults.KEEP_GENERATIONS,),
    )
    database.execute(
        "DELETE FROM contents WHERE sha256 NOT IN (SELECT sha256 FROM generation_files)"
    )


def _by_path(given: Iterable[ConfigFile]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for file in given:
        if contents.setdefault(file.path, file.content) != file.content:
            raise LedgerError(
                f"{file.path}: read twice with different contents, so it changed meanwhile."
                f" {faults.UNTOUCHED} Run it again."
            )
    return contents


def _decode(row: Row) -> Generation:
    number, state, created, finished = row
    if state not in _STATES:
        raise ValueError(f"state {state!r} is not known")
    return Generation(number, state, created, finished, ())


def _unpack(row: Row) -> tuple[str, bytes]:
    name, sha256, size, compressed = row
    try:
        # No more than it held: a few bytes may stand for gigabytes.
        content = zlib.decompressobj().decompress(compressed, size + 1)
    except zlib.error:
        content = b""
    if len(content) != size or hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError("it does not have the digest it was stored under")
    return name, content


def _content_named(row: Row) -> str:
    return f"content {row[1][:16]}"


_TABLE: Table[Generation] = Table(
    "generations",
    {"number": INTEGER, "state": TEXT, "created": MOMENT, "finished": MOMENT_OR_NONE},
    _decode,
    lambda row: f"generation {row[0]}",
)
_JOINED = "generation_files JOIN contents USING (sha256)"
_FILES: Table[GenerationFile] = Table(
    _JOINED,
    {"path": TEXT, "sha256": TEXT, "size": INTEGER},
    lambda row: GenerationFile(*row),
    lambda row: f"file {row[0]}",
)
_PACKED = {"sha256": TEXT, "size": INTEGER, "compressed": BLOB}
_STORED: Table[tuple[str, bytes]] = Table(
    _JOINED, {"path": TEXT, **_PACKED}, _unpack, _content_named
)
_CONTENTS: Table[tuple[str, bytes]] = Table(
    "contents", {"sha256 AS name": TEXT, **_PACKED}, _unpack, _content_named
)
