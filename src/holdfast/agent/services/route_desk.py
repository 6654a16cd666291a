"""What both services of routing control share: sessions, leases, reads and events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from ipaddress import ip_address, ip_network

from holdfast.agent.event_stream import EventStream
from holdfast.api import limits
from holdfast.api import route_control_pb2 as rc
from holdfast.api import routes_pb2 as routes
from holdfast.api.callers import Caller
from holdfast.api.conditions import Busy, CallRefused, Denied
from holdfast.dataclass import dataclass, field
from holdfast.engine import event_kinds
from holdfast.errors import HoldfastError
from holdfast.runtime.event_log import Filter, Missed
from holdfast.runtime.routes import documents, event_types
from holdfast.runtime.routes.control import Control
from holdfast.runtime.routes.leases import Leases
from holdfast.runtime.routes.owners import Owner, owner_of
from holdfast.runtime.routes.sessions import Seen, carried, changes
from holdfast.runtime.routes.status_of import Observed, Picture
from holdfast.runtime.routes.text import invalid, shown
from holdfast.state.events import StoredEvent

# How often leases are looked at. A grace is seconds at least.
LEASES_S = 0.5


@dataclass(slots=True)
class RouteDesk:
    control: Control
    leases: Leases
    observed: Observed
    stream: EventStream
    look: Callable[[str], None]  # there is a reason for a pass
    sessions: dict[str, str] = field(default_factory=dict)  # by owner: the session's id
    _before: Seen = field(default_factory=Seen)

    async def ready(self) -> None:
        """For its first pass a daemon lets callers wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.FIRST_PASS_S):
                while not self._ready():
                    await asyncio.sleep(LEASES_S)

    def _ready(self) -> bool:
        with suppress(CallRefused):
            self.control.policies.owners()
            self.control.declarations.held()
            return True
        return False

    async def owner(self, caller: Caller) -> Owner:
        """What the startup file says of who asks, which is a sign of life of its lease."""
        await self.ready()
        owner = self.control.policies.owners().get(owner_of(caller.source))
        if owner is None:  # it was there when the call was let in
            raise Denied(f"{caller.source} is not in the startup file any more")
        self.leases.heard(owner)
        return owner

    def link(self, ifname: str) -> str:
        """The resource that stands for a link that a request names as the kernel does."""
        found = self.control.policies.link(ifname)
        if not found:
            raise invalid(
                f"interface_name: no resource of the startup file stands for the link"
                f" {shown(ifname)}: declare one, such as an Interface"
            )
        return found

    def register(self, owner: Owner) -> str:
        session = f"{owner.name}-{time.time_ns()}"
        self.sessions[owner.name] = session
        self.control.journal.tell(
            event_kinds.OWNER_REGISTERED,
            owner.source,
            f"{owner.name} began a session",
            {"session_id": session},
        )
        return session

    def deregister(self, owner: Owner) -> None:
        self.sessions.pop(owner.name, None)
        self.control.journal.tell(
            event_kinds.OWNER_DEREGISTERED, owner.source, f"{owner.name} ended its session", {}
        )

    def look_again(self, owner: Owner) -> None:
        self.look(f"{owner.source}, which asserts what it declared")

    def picture(self) -> Picture:
        return Picture(
            dict(self.control.index().holders),  # as it is now: metrics look at it in threads
            dict(self.control.overrides.all()),
            self.observed.seen(),
            self.observed.troubles(),
            self.control.policies.ifname,
        )

    def holding(self) -> int:
        return self.leases.streams

    def owners(self, wanted: str) -> Iterator[routes.OwnerStatus]:
        held = self.control.declarations.held()
        for name, owner in sorted(self.control.policies.owners().items()):
            if wanted and name != wanted:
                continue
            left = self.leases.left(name)
            yield routes.OwnerStatus(
                owner=name,
                registered=name in self.sessions,
                connected=self.leases.connected(name),
                objects=len(held.get(owner.source, {})),
                until=0.0 if left is None else time.time() + left,
            )

    async def events(
        self, kinds: frozenset[str], owner: str, *, after: int = 0, follow: bool
    ) -> AsyncGenerator[StoredEvent | Missed, None]:
        """The ledger is the queue of each subscriber: one that reads slowly holds a number, and is
        told how many it missed."""
        if len(self.stream.readers) >= limits.MAX_SUBSCRIBERS:
            raise Busy(f"{limits.MAX_SUBSCRIBERS} others read events already")
        start = after or (await self.stream.newest() if follow else 0)
        log = self.stream.read(Filter(kinds), start, follow=follow)
        async with aclosing(log):
            async for event in log:
                if isinstance(event, Missed):
                    self.control.tally.dropped += event.count
                    yield event
                elif not owner or event_types.owner(event) == owner:
                    yield event

    def looked(self) -> None:
        """FRR was looked at: what changed is told."""
        seen = self.observed.seen()
        for change in changes(self._before, seen):
            self.control.journal.tell(
                change.kind,
                change.about,
                change.message,
                {**change.data, **self._owner_of(change.data)},
            )
        self._before = carried(self._before, seen)

    def _owner_of(self, data: Mapping[str, str]) -> dict[str, str]:
        """A session of BFD may be that of a peer."""
        holders, found = self.control.index().holders, None
        if "peer" in data:
            address = ip_address(data["peer"])
            found = holders.get(documents.peer_target(address)) or holders.get(
                documents.bfd_target(address)
            )
        elif "prefix" in data:
            network = ip_network(data["prefix"])
            found = holders.get(documents.prefix_target(network, rc.PROTOCOL_BGP))
        return {"owner": owner_of(found.source) or found.source} if found is not None else {}

    async def keep_leases(self) -> None:
        """Withdraws what nobody stands for any more."""
        while not self._ready():
            await asyncio.sleep(LEASES_S)
        known, held = self.control.policies.owners(), self.control.declarations.held()
        self.leases.start(known, {name for name in known if held.get(known[name].source)})
        await self.control.settle()
        while True:
            await asyncio.sleep(LEASES_S)
            for owner in self.leases.due(self.control.policies.owners()):
                with suppress(HoldfastError):  # the ledger may be held: it is tried again
                    await self._expire(owner)
                    self.leases.end(owner)
            await self.leases.note()

    async def _expire(self, owner: Owner) -> None:
        count = len(self.control.held_by(owner))
        if not count:
            return
        await self.control.withdraw_all(owner)
        self.sessions.pop(owner.name, None)
        self.control.journal.tell(
            event_kinds.OWNER_EXPIRED,
            owner.source,
            f"nothing was heard of {owner.name} for {owner.grace:g} s: {count} objects were"
            " withdrawn",
            {},
        )

    @contextmanager
    def timed(self, method: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.control.tally.call(method, time.monotonic() - began)
