"""What `admin` took over, and from whom: kept until it is given back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast.config.part import Raw, Target
from holdfast.dataclass import dataclass, field
from holdfast.state.values import JSON


@dataclass(frozen=True, slots=True)
class Lost:
    source: str  # who lost it
    document: Raw  # what it had declared
    since: float


class Notes(Protocol):
    """Where it outlasts a restart."""

    def read(self, name: str) -> JSON: ...
    async def write(self, name: str, value: JSON) -> None: ...


NOTE = "route-overrides"


@dataclass(slots=True)
class Overrides:
    notes: Notes
    _lost: dict[Target, Lost] = field(default_factory=dict)
    _read: bool = False

    def all(self) -> Mapping[Target, Lost]:
        if not self._read:
            found = self.notes.read(NOTE)
            self._lost = dict(filter(None, map(_lost, found if isinstance(found, list) else ())))
            self._read = True
        return self._lost

    def of(self, source: str) -> list[Target]:
        return [target for target, lost in self.all().items() if lost.source == source]

    async def change(self, put: Mapping[Target, Lost], remove: Iterable[Target]) -> None:
        gone = [target for target in remove if target in self.all()]
        if not put and not gone:
            return
        self._lost = {
            target: lost for target, lost in self.all().items() if target not in gone
        } | dict(put)
        rows: list[JSON] = [
            {"source": lost.source, "document": dict(lost.document), "since": lost.since}
            for lost in self._lost.values()
        ]
        await self.notes.write(NOTE, rows)


def _lost(row: JSON) -> tuple[Target, Lost] | None:
    """None for what no version of Holdfast writes."""
    raw = row.get("document") if isinstance(row, dict) else None
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(row, dict) or not isinstance(raw, dict) or not isinstance(metadata, dict):
        return None
    target = Target(str(raw.get("apiVersion")), str(raw.get("kind")), str(metadata.get("name")))
    since = row.get("since")
    moment = float(since) if isinstance(since, int | float) else 0.0
    return target, Lost(str(row.get("source")), raw, moment)
