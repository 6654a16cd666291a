"""The drivers of a machine behind one face: for each kind, the driver that has it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact, ArtifactKind, Key
from holdfast.engine.claim import Claim
from holdfast.engine.difference import Difference
from holdfast.engine.driver import Driver, Memory, Result, Scope
from holdfast.engine.observed import Along, BulkSighting, Loss, Observed, Sighting
from holdfast.engine.plan import Operation
from holdfast.errors import DriverError


@dataclass(frozen=True, slots=True, eq=False)
class DriverEntry:
    """A driver in the list of a machine. It is made once it is needed: a router pays no imports
    and no connections for drivers that it has no use for."""

    kinds: tuple[ArtifactKind, ...]
    make: Callable[[], Driver]
    # It is not needed where nothing of its kinds is declared or claimed, unless it remembers.
    on_demand: bool = False
    # Of one on demand that finds, besides, what tells its maker: the name of its memory, in which
    # something stands while such things may be there.
    memory: str = ""
    # Whether there is anything it could look at. Asked while nobody knows what it remembers.
    present: Callable[[], bool] = lambda: False

    def is_needed(self, scope: Scope, named: frozenset[str]) -> bool:
        """named: the kinds of what is declared or claimed."""
        if not self.on_demand or not named.isdisjoint(kind.name for kind in self.kinds):
            return True
        if not self.memory:
            return False
        remembered = scope.remembered.get(self.memory)
        return self.present() if remembered is None else bool(remembered)


class Drivers:
    """A machine as a pass sees it: every driver of a list."""

    def __init__(
        self,
        epoch: str,
        entries: Iterable[DriverEntry],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """epoch: how long objects live that a reboot ends. close: ends what drivers share."""
        self.epoch = epoch
        self._entries = tuple(entries)
        self._of_kind = {kind.name: entry for entry in self._entries for kind in entry.kinds}
        self._made: dict[DriverEntry, Driver] = {}
        self._close = close

    def __enter__(self) -> Drivers:
        return self

    def __exit__(self, *_exception: object) -> None:
        for driver in self._made.values():
            driver.close()
        self._close()

    def observe(self, scope: Scope) -> Observed:
        """What is there; kinds that could not be read are named in `unknown`."""
        sightings: dict[Key, Sequence[Sighting]] = {}
        bulk: dict[str, BulkSighting] = {}
        unknown: dict[str | Key, str] = {}
        losses: dict[Key, Sequence[Loss]] = {}
        along: dict[Key, Sequence[Along]] = {}
        links: frozenset[str] = frozenset()
        named = scope.named_kinds()
        for entry in self._entries:
            kinds = [kind.name for kind in entry.kinds]
            if scope.kinds is not None and scope.kinds.isdisjoint(kinds):
                continue
            if not entry.is_needed(scope, named):
                continue
            try:
                seen = self._driver(entry).observe(scope)
            except (DriverError, OSError) as error:
                unknown.update(dict.fromkeys(kinds, str(error)))
                continue
            sightings.update(seen.sightings)
            bulk.update(seen.bulk)
            unknown.update(seen.unknown)
            losses.update(seen.losses)
            along.update(seen.along)
            links |= seen.links
        return Observed(sightings, bulk, unknown, losses=losses, along=along, links=links)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        """Carry out operations of one kind."""
        return self.of_kind(operations[0].kind).apply(operations, progress)

    def to_remember(
        self, planned: Sequence[Operation], remembered: Mapping[str, Memory]
    ) -> dict[str, Memory]:
        """What has to be remembered otherwise from now on, before these are carried out."""
        found = {}
        concerned = {self._driver(self._of_kind[operation.kind]) for operation in planned}
        for driver in concerned.union(self._made.values()):
            if driver.memory:
                before = remembered.get(driver.memory)
                memory = driver.to_remember(planned, before)
                if memory is not None and memory != before:
                    found[driver.memory] = memory
        return found

    def difference(self, operation: Operation) -> Difference:
        return self.of_kind(operation.kind).difference(operation)

    def content(self, seen: Artifact) -> bytes:
        return self.of_kind(seen.key.kind).content(seen)

    def sweep(self, claims: Iterable[Claim]) -> None:
        """Nobody writes these objects now: what an interrupted write left beside them may go."""
        for claim in claims:
            self.of_kind(claim.key.kind).sweep(claim.key)

    def settle(self, claims: Iterable[Claim]) -> None:
        """These claims are durable now: the marks on their objects may go."""
        marks: dict[str, dict[Key, str]] = {}
        for claim in claims:
            marks.setdefault(claim.key.kind, {})[claim.key] = claim.nonce
        for kind, marked in marks.items():
            self.of_kind(kind).settle(marked)

    def of_kind(self, kind: str) -> Driver:
        return self._driver(self._of_kind[kind])

    def _driver(self, entry: DriverEntry) -> Driver:
        if entry not in self._made:
            self._made[entry] = entry.make()
        return self._made[entry]
