"""Events, as the ledger has them."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from holdfast.agent.event_stream import EventStream
from holdfast.agent.services import wire
from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits
from holdfast.api.callers import Caller
from holdfast.api.conditions import Busy
from holdfast.dataclass import dataclass
from holdfast.runtime.event_log import Filter


@dataclass(frozen=True, slots=True)
class Events:
    stream: EventStream

    async def read(
        self, request: pb.ReadEventsRequest, _caller: Caller
    ) -> AsyncGenerator[pb.ReadEventsReply, None]:
        if len(self.stream.readers) >= limits.MAX_SUBSCRIBERS:
            raise Busy(
                f"{limits.MAX_SUBSCRIBERS} others read events already, which is as many as may"
            )
        wanted = Filter(frozenset(request.kinds), request.subject, request.resource)
        log = self.stream.read(wanted, request.after, request.last, follow=request.follow)
        try:
            async for event in log:
                yield wire.event_to(event)
        finally:
            await log.aclose()
