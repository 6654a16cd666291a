"""Routes: what Holdfast adds to RouteControl, for owners that declare much and want to know."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TypeVar

from holdfast.agent.services.route_desk import RouteDesk
from holdfast.api import limits
from holdfast.api import routes_pb2 as pb
from holdfast.api.callers import Caller, CallerKind
from holdfast.api.conditions import Busy, CallRefused
from holdfast.dataclass import dataclass, field
from holdfast.runtime.event_log import Missed
from holdfast.runtime.routes import documents, event_types
from holdfast.runtime.routes.control import OK, Answer, Asked
from holdfast.runtime.routes.text import invalid

T = TypeVar("T")
Found = TypeVar("Found")
# Half of a call's time: what could be stored is told even if no pass sees it in place.
_LONGEST_WAIT_S = limits.CALL_S / 2
_MOST_OBJECTS = 20_000
# How often a lease that is held is confirmed to its holder, who sees by that that it is heard.
_BEAT_S = 5.0


@dataclass(frozen=True, slots=True)
class Routes:
    desk: RouteDesk
    syncs: dict[str, str] = field(default_factory=dict)  # by owner: the one under way

    async def declare(
        self, request: pb.DeclareRoutesRequest, caller: Caller
    ) -> pb.DeclareRoutesReply:
        with self.desk.timed("Declare"):
            owner = await self.desk.owner(caller)
            count = len(request.put) + len(request.withdraw)
            if count > _MOST_OBJECTS:
                raise invalid(f"{count} objects: at most {_MOST_OBJECTS} in one call")
            wait = request.wait_seconds
            if not math.isfinite(wait) or not 0 <= wait <= _LONGEST_WAIT_S:
                raise invalid(f"wait_seconds is from 0 to {_LONGEST_WAIT_S:.0f}")
            local_as = self._local_as(request)
            asked = Asked(
                _read(
                    request.put,
                    lambda route_object: documents.object_of(
                        route_object, local_as, self.desk.link
                    ),
                ),
                _read(request.withdraw, documents.key_of),
                request.each,
                wait,
                request.dry_run,
            )
            answers = await self.desk.control.declare(owner, asked)
            return pb.DeclareRoutesReply(outcomes=map(_outcome, answers))

    async def begin_sync(self, _request: pb.BeginSyncRequest, caller: Caller) -> pb.BeginSyncReply:
        with self.desk.timed("BeginSync"):
            owner = await self.desk.owner(caller)
            await self.desk.control.declarations.begin_sync(owner.source)
            self.syncs[owner.name] = uuid.uuid4().hex
            return pb.BeginSyncReply(sync=self.syncs[owner.name])

    async def complete_sync(
        self, request: pb.CompleteSyncRequest, caller: Caller
    ) -> pb.CompleteSyncReply:
        """One that began before another, or before Holdfast did, sweeps nothing: what was asserted
        since is not known of it."""
        with self.desk.timed("CompleteSync"):
            owner = await self.desk.owner(caller)
            if not request.sync or self.syncs.get(owner.name) != request.sync:
                raise CallRefused(
                    "FAILED_PRECONDITION",
                    "that sync is not the one under way: begin one, assert everything, then"
                    " complete it",
                )
            gone = await self.desk.control.complete_sync(owner, dry_run=request.dry_run)
            if not request.dry_run:
                del self.syncs[owner.name]
            return pb.CompleteSyncReply(withdrawn=map(str, gone))

    async def hold(
        self, _request: pb.HoldLeaseRequest, caller: Caller
    ) -> AsyncGenerator[pb.LeaseReply, None]:
        owner = await self.desk.owner(caller)
        if self.desk.holding() >= limits.MAX_SUBSCRIBERS:
            raise Busy(f"{limits.MAX_SUBSCRIBERS} streams hold leases already")
        self.desk.leases.hold(owner)
        try:
            while True:
                yield pb.LeaseReply(grace_seconds=owner.grace or 0.0)
                await asyncio.sleep(_BEAT_S)
        finally:
            self.desk.leases.release(owner)

    async def heartbeat(self, _request: pb.HeartbeatRequest, caller: Caller) -> pb.LeaseReply:
        with self.desk.timed("Heartbeat"):
            owner = await self.desk.owner(caller)
            left = self.desk.leases.left(owner.name)
            until = 0.0 if left is None else time.time() + left
            return pb.LeaseReply(grace_seconds=owner.grace or 0.0, until=until)

    async def status(self, request: pb.RouteStatusRequest, _caller: Caller) -> pb.RouteStatusReply:
        with self.desk.timed("Status"):
            await self.desk.ready()
            picture = self.desk.picture()
            return pb.RouteStatusReply(
                objects=picture.objects(request.owner),
                summary=picture.summary(request.owner),
                owners=self.desk.owners(request.owner),
            )

    async def events(
        self, request: pb.RouteEventsRequest, caller: Caller
    ) -> AsyncGenerator[pb.RouteEventReply, None]:
        await (self.desk.owner(caller) if caller.kind is CallerKind.OWNER else self.desk.ready())
        kinds = event_types.kinds_of(request.event_types)
        log = self.desk.events(kinds, request.owner, after=request.after, follow=request.follow)
        async for event in log:
            if isinstance(event, Missed):
                yield pb.RouteEventReply(missed=event.count)
            else:
                made = event_types.route_event(event)
                yield pb.RouteEventReply(sequence=event.sequence, event=made)

    def _local_as(self, request: pb.DeclareRoutesRequest) -> int:
        """An instance of the same call counts: its peers are of that AS."""
        for route_object in request.put:
            if route_object.WhichOneof("object") == "instance":
                return route_object.instance.local_as
        return self.desk.control.local_as()


def _read(given: Iterable[T], read: Callable[[T], Found]) -> list[Found | CallRefused]:
    """What cannot be read is refused in its place."""
    found: list[Found | CallRefused] = []
    for one in given:
        try:
            found.append(read(one))
        except CallRefused as refused:
            found.append(refused)
    return found


def _outcome(answer: Answer) -> pb.RouteOutcome:
    refused = answer.refused
    return pb.RouteOutcome(
        resource="" if answer.target is None else str(answer.target),
        code=OK if refused is None else refused.code,
        message="" if refused is None else str(refused),
        unchanged=answer.unchanged,
        applied=answer.applied,
    )
