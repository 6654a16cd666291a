"""Latches: configurations that were reverted, and so are not applied again by themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from holdfast.config.part import RECORD
from holdfast.dataclass import dataclass
from holdfast.state.database import Database, Row
from holdfast.state.generations import ConfigFile, Generation
from holdfast.state.rows import INTEGER, MOMENT, TEXT, Table

# What parts of other sources are stored as in a generation: no file of the operator's.
DYNAMIC = RECORD


@dataclass(frozen=True, slots=True)
class Latch:
    digest: str
    generation: int  # the one that was reverted
    time: float
    reason: str


def digest(files: Iterable[ConfigFile]) -> str:
    """Of what startup files say, wherever they lie: a candidate that was reverted is the same one
    when it is copied over the served file."""
    return _joined((file.path, hashlib.sha256(file.content).hexdigest()) for file in files)


def digest_of(generation: Generation) -> str:
    """The same, of files that are stored."""
    return _joined((file.path, file.sha256) for file in generation.files)


def parts(files: Iterable[ConfigFile]) -> dict[str, str]:
    """What a digest leaves out: by source, the digest of what it contributes."""
    return _by_source((file.path, hashlib.sha256(file.content).hexdigest()) for file in files)


def parts_of(generation: Generation) -> dict[str, str]:
    """The same, of what is stored."""
    return _by_source((file.path, file.sha256) for file in generation.files)


def _by_source(digests: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {path[len(DYNAMIC) :]: digest for path, digest in digests if path.startswith(DYNAMIC)}


def _joined(digests: Iterable[tuple[str, str]]) -> str:
    found = sorted(digest for path, digest in digests if not path.startswith(DYNAMIC))
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def get(database: Database, digest: str) -> Latch | None:
    found = _table().read(database, "WHERE digest=?", (digest,))
    return found[0] if found else None


def exist(database: Database) -> bool:
    """Whether there is any: where none is, nothing has to be digested to ask for it."""
    return bool(database.query("SELECT 1 FROM latches LIMIT 1"))


def read(database: Database) -> list[Latch]:
    return _table().read(database, "ORDER BY digest")


def lift(database: Database, digest: str) -> None:
    if get(database, digest) is not None:
        with database.transaction():
            database.execute("DELETE FROM latches WHERE digest=?", (digest,))


def put_row(database: Database, latch: Latch) -> None:
    """Within a transaction."""
    database.execute(
        "INSERT OR REPLACE INTO latches VALUES (?,?,?,?)",
        (latch.digest, latch.generation, latch.time, latch.reason),
    )


def restore(database: Database, latches: Iterable[Latch]) -> None:
    """Within a transaction: these in place of those there."""
    database.execute("DELETE FROM latches")
    for latch in latches:
        put_row(database, latch)


def problems(database: Database) -> Iterator[str]:
    yield from _table().problems(database)


def _table() -> Table[Latch]:
    types = {"digest": TEXT, "generation": INTEGER, "time": MOMENT, "reason": TEXT}
    return Table("latches", types, _decode, lambda row: f"latch of generation {row[1]}")


def _decode(row: Row) -> Latch:
    latch = Latch(*row)
    if len(latch.digest) != 64:
        raise ValueError(f"{latch.digest!r} is no digest")
    return latch
