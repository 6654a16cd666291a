"""RouteControl: its calls as clients of it know them, answered by routing control."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping

from holdfast.agent.services.route_desk import RouteDesk
from holdfast.api import route_control_pb2 as rc
from holdfast.api.callers import Caller
from holdfast.api.conditions import CallRefused
from holdfast.config.part import Raw, Target
from holdfast.dataclass import dataclass
from holdfast.runtime.routes import documents, event_types
from holdfast.runtime.routes.control import Answer, Asked
from holdfast.state.events import StoredEvent


@dataclass(frozen=True, slots=True)
class RouteControl:
    desk: RouteDesk

    async def register(self, request: rc.RegisterRequest, caller: Caller) -> rc.RegisterResponse:
        with self.desk.timed("Register"):
            owner = await self.desk.owner(caller)
            session, held = self.desk.register(owner), self.desk.control.held_by(owner)
            if request.reassert_intents:
                self.desk.look_again(owner)
            return rc.RegisterResponse(
                session_id=session,
                current_prefixes=_each(held, "prefix", documents.PREFIX, documents.OSPF_PREFIX),
                current_peers=_each(held, "address", documents.PEER),
            )

    async def deregister(
        self, request: rc.DeregisterRequest, caller: Caller
    ) -> rc.DeregisterResponse:
        with self.desk.timed("Deregister"):
            owner = await self.desk.owner(caller)
            if request.withdraw_all:
                await self.desk.control.withdraw_all(owner)
            self.desk.deregister(owner)
            return rc.DeregisterResponse()

    async def configure_bgp(
        self, request: rc.ConfigureBGPRequest, caller: Caller
    ) -> rc.ConfigureBGPResponse:
        before = self.desk.control.instance()
        await self._put(
            caller,
            "ConfigureBGP",
            lambda: documents.instance(request.local_as, request.router_id),
        )
        was = before.document["spec"] if before is not None else {}
        return rc.ConfigureBGPResponse(
            previous_as=was.get("localAS", 0), previous_router_id=was.get("routerID", "")
        )

    async def apply_peer(
        self, request: rc.ApplyPeerRequest, caller: Caller
    ) -> rc.ApplyPeerResponse:
        def read() -> Raw:
            if not request.HasField("peer"):
                raise CallRefused("INVALID_ARGUMENT", "peer is missing")
            return documents.peer(request.peer, self.desk.control.local_as())

        await self._put(caller, "ApplyPeer", read)
        return rc.ApplyPeerResponse()

    async def remove_peer(
        self, request: rc.RemovePeerRequest, caller: Caller
    ) -> rc.RemovePeerResponse:
        await self._withdraw(
            caller, "RemovePeer", lambda: documents.peer_key(request.neighbor_address)
        )
        return rc.RemovePeerResponse()

    async def advertise_prefix(
        self, request: rc.AdvertisePrefixRequest, caller: Caller
    ) -> rc.AdvertisePrefixResponse:
        attributes = request.attributes if request.HasField("attributes") else None
        await self._put(
            caller,
            "AdvertisePrefix",
            lambda: documents.prefix(request.prefix, request.protocol, attributes),
        )
        return rc.AdvertisePrefixResponse()

    async def withdraw_prefix(
        self, request: rc.WithdrawPrefixRequest, caller: Caller
    ) -> rc.WithdrawPrefixResponse:
        await self._withdraw(
            caller,
            "WithdrawPrefix",
            lambda: documents.prefix_key(request.prefix, request.protocol),
        )
        return rc.WithdrawPrefixResponse()

    async def enable_bfd(
        self, request: rc.EnableBFDRequest, caller: Caller
    ) -> rc.EnableBFDResponse:
        await self._put(caller, "EnableBFD", lambda: documents.bfd(request, self.desk.link))
        return rc.EnableBFDResponse()

    async def disable_bfd(
        self, request: rc.DisableBFDRequest, caller: Caller
    ) -> rc.DisableBFDResponse:
        await self._withdraw(caller, "DisableBFD", lambda: documents.bfd_key(request.peer_address))
        return rc.DisableBFDResponse()

    async def enable_ospf(
        self, request: rc.EnableOSPFRequest, caller: Caller
    ) -> rc.EnableOSPFResponse:
        await self._put(caller, "EnableOSPF", lambda: documents.ospf(request, self.desk.link))
        return rc.EnableOSPFResponse()

    async def disable_ospf(
        self, request: rc.DisableOSPFRequest, caller: Caller
    ) -> rc.DisableOSPFResponse:
        await self._withdraw(
            caller, "DisableOSPF", lambda: documents.ospf_key(request.interface_name)
        )
        return rc.DisableOSPFResponse()

    async def get_status(
        self, request: rc.GetStatusRequest, _caller: Caller
    ) -> rc.GetStatusResponse:
        with self.desk.timed("GetStatus"):
            await self.desk.ready()
            return self.desk.picture().summary(request.owner_filter)

    async def stream_events(
        self, request: rc.StreamEventsRequest, _caller: Caller
    ) -> AsyncGenerator[rc.RouteEvent, None]:
        await self.desk.ready()
        kinds = event_types.kinds_of(request.event_types)
        async for event in self.desk.events(kinds, request.owner_filter, follow=True):
            if isinstance(event, StoredEvent):
                yield event_types.route_event(event)

    async def _put(self, caller: Caller, method: str, read: Callable[[], Raw]) -> Answer:
        with self.desk.timed(method):
            owner = await self.desk.owner(caller)
            return await self.desk.control.one(owner, Asked(put=[read()]))

    async def _withdraw(self, caller: Caller, method: str, read: Callable[[], Target]) -> Answer:
        with self.desk.timed(method):
            owner = await self.desk.owner(caller)
            return await self.desk.control.one(owner, Asked(withdraw=[read()]))


def _each(held: Mapping[Target, Raw], field: str, *kinds: str) -> list[str]:
    return [raw["spec"][field] for target, raw in held.items() if target.kind in kinds]
