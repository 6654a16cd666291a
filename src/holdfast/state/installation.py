"""Who this installation is, and which network namespace it knows to be its own.

Both are notes, so that they go along with an export: a ledger that is restored is the same
installation again. Two copies at work at once are told apart by their roots
(`host/namespace_holder.py`).
"""

from __future__ import annotations

from typing import Protocol

from holdfast.dataclass import dataclass
from holdfast.state import notes
from holdfast.state.database import Database
from holdfast.state.notes import IDENTITY
from holdfast.state.values import JSON

_NAMESPACE = "namespace"


class Notes(Protocol):
    """The part of the ledger that this needs."""

    def note(self, name: str) -> JSON: ...

    def put_note(self, name: str, value: JSON) -> None: ...


@dataclass(frozen=True, slots=True)
class OwnNamespace:
    """In which a tag is proof, as all that carried it was made or taken back by this ledger."""

    epoch: str  # boot and network namespace
    tags: tuple[int, ...]  # the one that is given now, then those that objects may carry still


def identity(ledger: Notes) -> str:
    """Empty where it has none: it was never applied by a Holdfast that gives them."""
    found = ledger.note(IDENTITY)
    return found if isinstance(found, str) else ""


def ensure_identity(ledger: Notes) -> str:
    known = identity(ledger)
    if known:
        return known
    from secrets import token_hex  # once in the life of a ledger

    made = token_hex(8)
    ledger.put_note(IDENTITY, made)
    return made


def own_namespace(ledger: Notes) -> OwnNamespace | None:
    found = ledger.note(_NAMESPACE)
    if not isinstance(found, dict):
        return None
    epoch, tags = found.get("epoch"), found.get("tags")
    if not isinstance(epoch, str) or not isinstance(tags, list):
        return None
    return OwnNamespace(epoch, tuple(tag for tag in tags if isinstance(tag, int)))


def write_own_namespace(ledger: Notes, own: OwnNamespace | None) -> None:
    value: JSON = None if own is None else {"epoch": own.epoch, "tags": list(own.tags)}
    if value is not None or ledger.note(_NAMESPACE) is not None:
        ledger.put_note(_NAMESPACE, value)


def join_own_namespace(database: Database, other: Database) -> None:
    """Within a transaction: what the other ledger made in its namespace is in this one from now
    on."""
    own, theirs = own_namespace(_Rows(database)), own_namespace(_Rows(other))
    if theirs is None:
        return
    before = own.tags if own is not None and own.epoch == theirs.epoch else ()
    joined = OwnNamespace(theirs.epoch, tuple(dict.fromkeys((*theirs.tags, *before))))
    write_own_namespace(_Rows(database), joined)


@dataclass(frozen=True, slots=True)
class _Rows:
    database: Database

    def note(self, name: str) -> JSON:
        return notes.get(self.database, name)

    def put_note(self, name: str, value: JSON) -> None:
        notes.put_row(self.database, name, value)
