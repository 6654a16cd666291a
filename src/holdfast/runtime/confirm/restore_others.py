"""What others lost by a change, put back with the change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import groupby

from holdfast.dataclass import dataclass, field
from holdfast.engine import event_kinds
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.snapshot import Snapshot
from holdfast.host.foreign_state import comparing
from holdfast.host.foreign_state import record as others_record
from holdfast.host.foreign_state.record import Record
from holdfast.host.foreign_state.restore import Restored, restore
from holdfast.host.netlink import tags
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.state.events import Event
from holdfast.state.values import JSON


@dataclass(slots=True)
class OthersLosses:
    """What others had before a generation, from its way back."""

    before: Snapshot
    record: Record
    _done: list[tuple[Key, str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # what could not be put back, by the last try

    def unchanged(self) -> frozenset[Key]:
        """What may go for a moment when ours is brought back."""
        if self.record.empty:
            return frozenset()
        with closing(NetlinkSocket()) as sock:
            return comparing.unchanged(sock, self.record)

    def put_back(self) -> bool:
        """Whether that may have taken something of ours, or brought what ours waited for."""
        claims = {claim.key: claim for claim in self.before.claims}
        ours = tags.untagged(claims, self.record.tag)
        with closing(NetlinkSocket()) as sock:
            found: Restored = restore(sock, self.record, lambda key: key in ours)
        self._done += found.done
        self.failed = found.failed
        return found.moved or any(key.kind == LINK.name for key, _ in found.done)

    def events(self, generation: int, before: int) -> Iterator[Event]:
        """Routes come in thousands and share an event; everything else has its own."""

        def alike(one: tuple[int, tuple[Key, str]]) -> tuple[str, str, int]:
            at, (key, holder) = one
            return key.kind, holder, 0 if key.kind == ROUTE.name else at

        for (kind, holder, _), group in groupby(enumerate(self._done), key=alike):
            keys = [key for _, (key, _) in group]
            subject = str(keys[0])
            if len(keys) > 1:
                subject = f"{len(keys)} {kind}s, the first {keys[0].name}"
            data: dict[str, JSON] = {"count": len(keys), "holder": holder}
            said = f"{holder}; lost with generation {generation}"
            yield Event(event_kinds.RESTORED, subject, said, before, data)


def of(before: Snapshot, *, same_boot: bool) -> OthersLosses:
    """ValueError where the record cannot be read. A boot took all of it away, ours and theirs."""
    if not before.others or not same_boot:
        return OthersLosses(before, Record(0.0, before.tag))
    return OthersLosses(before, others_record.unpack(before.others))
