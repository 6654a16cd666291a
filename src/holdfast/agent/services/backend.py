"""All that the daemon answers to its API."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from holdfast.agent.event_stream import EventStream
from holdfast.agent.services import wire
from holdfast.agent.services.actions import ActionAnswers
from holdfast.agent.services.parts import PartAnswers
from holdfast.agent.services.plugins import PluginAnswers
from holdfast.agent.services.router import RouterAnswers
from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits
from holdfast.api.conditions import Busy
from holdfast.dataclass import dataclass, field
from holdfast.runtime.event_log import Filter


@dataclass(slots=True)
class Backend(RouterAnswers, PartAnswers, PluginAnswers, ActionAnswers):
    events: EventStream = field(init=False)

    def __post_init__(self) -> None:
        self.events = EventStream(self.paths, self.threads)

    async def read_events(
        self, request: pb.ReadEventsRequest
    ) -> AsyncGenerator[pb.ReadEventsReply, None]:
        if len(self.events.readers) >= limits.MAX_SUBSCRIBERS:
            raise Busy(
                f"{limits.MAX_SUBSCRIBERS} others read events already, which is as many as may"
            )
        wanted = Filter(frozenset(request.kinds), request.subject, request.resource)
        log = self.events.read(wanted, request.after, request.last, follow=request.follow)
        try:
            async for event in log:
                yield wire.event_to(event)
        finally:
            await log.aclose()
