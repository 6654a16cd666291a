"""Routing control over memory: no ledger, no FRR, and policies that a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.config.part import Raw, Target
from holdfast.engine.event_kinds import EventKind
from holdfast.runtime.routes import documents
from holdfast.runtime.routes.conflicts import Claimed
from holdfast.runtime.routes.control import Control
from holdfast.runtime.routes.declarations import Batch, Outcome
from holdfast.runtime.routes.overrides import Overrides
from holdfast.runtime.routes.owners import Owner
from holdfast.runtime.routes.sessions import FRR, Seen
from holdfast.runtime.routes.status_of import Trouble

EDGE_TOKEN, NET_TOKEN, ADMIN_TOKEN = (
    "edge-token-0123456789",
    "net-token-0123456789",
    "admin-token-01234",
)
TOKENS = {"edge": EDGE_TOKEN, "net": NET_TOKEN, "admin": ADMIN_TOKEN}


@dataclass
class MemoryNotes:
    kept: dict[str, Any] = field(default_factory=dict)

    def read(self, name: str) -> Any:
        return self.kept.get(name)

    async def write(self, name: str, value: Any) -> None:
        self.kept[name] = value


@dataclass
class MemoryDeclarations:
    """What sources declare. `refuse` says why something cannot be stored."""

    kept: dict[str, dict[Target, Raw]] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    elsewhere: tuple[Claimed, ...] = ()
    refuse: Callable[[Raw], str] = lambda _raw: ""
    _asserted: dict[str, set[Target]] = field(default_factory=dict)

    def held(self) -> Mapping[str, Mapping[Target, Raw]]:
        return self.kept

    def others(self) -> Sequence[Claimed]:
        return self.elsewhere

    async def declare(self, batch: Batch) -> Sequence[Outcome]:
        self.batches.append(batch)
        mine, found = self.kept.get(batch.source, {}), []
        changed = dict(mine)
        for raw in batch.put:
            target = documents.target_of(raw)
            found.append(Outcome(target, self.refuse(raw), unchanged=mine.get(target) == raw))
            if not found[-1].refusal:
                changed[target] = raw
                self._asserted.get(batch.source, set()).add(target)
        for target in batch.withdraw:
            found.append(Outcome(target, unchanged=target not in mine))
            changed.pop(target, None)
        stops = not batch.each and any(one.refusal for one in found)
        if not batch.dry_run and not stops and changed != mine:
            self.kept = {**self.kept, batch.source: changed}
        return found

    async def begin_sync(self, source: str) -> None:
        self._asserted[source] = set()

    async def complete_sync(self, source: str, *, dry_run: bool) -> Sequence[Target]:
        mine = self.kept.get(source, {})
        gone = [target for target in mine if target not in self._asserted[source]]
        if not dry_run:
            kept = {target: raw for target, raw in mine.items() if target not in gone}
            self.kept = {**self.kept, source: kept}
        return gone


@dataclass
class MemoryPolicies:
    known: dict[str, Owner] = field(
        default_factory=lambda: {
            name: Owner(name, may_configure_instance=name != "net") for name in TOKENS
        }
    )
    against: Callable[[str, Raw], str] = lambda _source, _raw: ""

    def owners(self) -> Mapping[str, Owner]:
        return self.known

    def link(self, ifname: str) -> str:
        return {"lan0": "lan", "eth0": "wan"}.get(ifname, "")

    def ifname(self, link: str) -> str:
        return {"lan": "lan0", "wan": "eth0"}[link]

    def refusal(self, source: str, raw: Raw) -> str:
        return self.against(source, raw)


@dataclass
class MemoryJournal:
    told: list[tuple[str, str, str, dict[str, str]]] = field(default_factory=list)

    def tell(self, kind: EventKind, source: str, message: str, data: Mapping[str, str]) -> None:
        self.told.append((str(kind), source, message, dict(data)))

    def kinds(self) -> list[str]:
        return [kind for kind, *_ in self.told]


@dataclass
class MemoryObserved:
    now: Seen = field(default_factory=lambda: Seen(FRR(True, "10.3")))
    failed: dict[str, Trouble] = field(default_factory=dict)

    def seen(self) -> Seen:
        return self.now

    def troubles(self) -> Mapping[str, Trouble]:
        return self.failed


@dataclass
class World:
    policies: MemoryPolicies = field(default_factory=MemoryPolicies)
    declarations: MemoryDeclarations = field(default_factory=MemoryDeclarations)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    notes: MemoryNotes = field(default_factory=MemoryNotes)
    observed: MemoryObserved = field(default_factory=MemoryObserved)
    control: Control = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Holdfast starts anew, with what is kept."""
        self.control = Control(
            self.policies, self.declarations, self.journal, Overrides(self.notes)
        )

    def owner(self, name: str) -> Owner:
        return self.policies.known[name]

    def held(self, name: str) -> list[str]:
        return sorted(str(one) for one in self.declarations.kept.get(f"Owner/{name}", {}))
