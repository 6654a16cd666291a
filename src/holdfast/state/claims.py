"""Claims as rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.kinds import KINDS
from holdfast.state import values
from holdfast.state.database import Database, Row
from holdfast.state.rows import INTEGER, TEXT, TEXT_OR_NONE, Table

_TYPES = {
    "kind": TEXT,
    "name": TEXT,
    "owners": TEXT,
    "provenance": TEXT,
    "state": TEXT,
    "fields": TEXT,
    "fingerprint": TEXT,
    "origin": TEXT,
    "generation": INTEGER,
    "epoch": TEXT,
    "nonce": TEXT,
    "original": TEXT_OR_NONE,
    "revert": INTEGER,
}
_COLUMNS = ", ".join(_TYPES)
_PUT = f"INSERT OR REPLACE INTO claims ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608 (constants only)

# Looked up 50 000 times in a large ledger; calling the enum costs four times as much.
_PROVENANCES = {str(member): member for member in Provenance}
_STATES = {str(member): member for member in ClaimState}


def read(database: Database) -> dict[Key, Claim]:
    """Every claim. One row that cannot be read is an error: a claim left out is a leaked object."""
    return {claim.key: claim for claim in _table().read(database, "ORDER BY kind, name")}


def problems(database: Database) -> Iterator[str]:
    """Each claim that cannot be read, and why."""
    yield from _table().problems(database)


def write(database: Database, put: Iterable[Claim], remove: Iterable[Key]) -> None:
    """All in one transaction; none at all where there is nothing to write."""
    claims, keys = list(put), list(remove)
    if not claims and not keys:
        return
    with database.transaction():
        remove_rows(database, keys)
        put_rows(database, claims)


def put_rows(database: Database, put: Iterable[Claim]) -> None:
    """Within a transaction."""
    database.execute_many(_PUT, [_encode(claim) for claim in put])


def remove_rows(database: Database, keys: Iterable[Key]) -> None:
    """Within a transaction."""
    database.execute_many("DELETE FROM claims WHERE kind=? AND name=?", keys)


def _table() -> Table[Claim]:
    owners: dict[str, tuple[str, ...]] = {}
    return Table("claims", _TYPES, lambda row: _decode(row, owners), _named)


def _named(row: Row) -> str:
    return f"claim {row[0]} {row[1]}"


def _encode(claim: Claim) -> Row:
    fields = values.dump_fields(claim.fields)
    return (
        claim.key.kind,
        claim.key.name,
        values.dump(claim.owners),
        claim.provenance.value,
        claim.state.value,
        fields,
        _digest(fields),
        claim.origin,
        claim.generation,
        claim.epoch,
        claim.nonce,
        None if claim.original is None else values.dump_fields(claim.original),
        int(claim.revert),
    )


def _decode(row: Row, known_owners: dict[str, tuple[str, ...]]) -> Claim:
    kind, name, owners, provenance, state, fields, digest = row[:7]
    origin, generation, epoch, nonce, original, revert = row[7:]
    if _digest(fields) != digest:
        raise ValueError(f"its fields do not have the fingerprint {digest} they were stored with")
    names = known_owners.get(owners)
    if names is None:
        names = known_owners[owners] = values.load_names(owners)
    if kind not in KINDS:
        raise ValueError(f"there is no kind of object {kind!r}")
    if provenance not in _PROVENANCES or state not in _STATES:
        raise ValueError(f"provenance {provenance!r} with state {state!r} is not known")
    return Claim(
        Key(kind, name),
        names,
        _PROVENANCES[provenance],
        _STATES[state],
        values.load_fields(fields),
        origin,
        generation,
        epoch,
        nonce,
        None if original is None else values.load_fields(original),
        bool(revert),
    )


def _digest(text: str) -> str:
    """As `artifact.fingerprint`, of text in that form already."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
