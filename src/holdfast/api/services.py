"""The services of the schema, one class each: its calls are methods of that name in snake case."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from holdfast.api import holdfast_pb2 as pb
from holdfast.api import route_control_pb2 as rc
from holdfast.api import routes_pb2 as routes
from holdfast.api.callers import Caller
from holdfast.api.calls import Call
from holdfast.dataclass import dataclass


class Router(Protocol):
    async def about(self, request: pb.AboutRequest, caller: Caller) -> pb.AboutReply: ...
    async def console(self, request: pb.ConsoleRequest, caller: Caller) -> pb.ConsoleReply: ...
    async def status(self, request: pb.StatusRequest, caller: Caller) -> pb.StatusReply: ...
    def plan(
        self, request: pb.PlanRequest, caller: Caller
    ) -> AsyncGenerator[pb.PlanReply, None]: ...
    def explain(
        self, request: pb.ExplainRequest, caller: Caller
    ) -> AsyncGenerator[pb.Document, None]: ...
    def apply(
        self, request: pb.ApplyRequest, caller: Caller
    ) -> AsyncGenerator[pb.ApplyReply, None]: ...
    async def confirm(self, request: pb.ConfirmRequest, caller: Caller) -> pb.ConfirmReply: ...
    async def take_back(self, request: pb.TakeBackRequest, caller: Caller) -> pb.TakeBackReply: ...
    def generations(
        self, request: pb.GenerationsRequest, caller: Caller
    ) -> AsyncGenerator[pb.Document, None]: ...


class Dynamic(Protocol):
    def list(
        self, request: pb.ListPartsRequest, caller: Caller
    ) -> AsyncGenerator[pb.Document, None]: ...
    def describe(
        self, request: pb.DescribePartRequest, caller: Caller
    ) -> AsyncGenerator[pb.Document, None]: ...
    def render(
        self, request: pb.RenderRequest, caller: Caller
    ) -> AsyncGenerator[pb.Document, None]: ...
    def diff(
        self, request: pb.DiffRequest, caller: Caller
    ) -> AsyncGenerator[pb.Document, None]: ...
    async def put(self, request: pb.PutPartRequest, caller: Caller) -> pb.PutPartReply: ...
    async def declare(self, request: pb.DeclareRequest, caller: Caller) -> pb.DeclareReply: ...
    async def withdraw(
        self, request: pb.WithdrawPartRequest, caller: Caller
    ) -> pb.WithdrawPartReply: ...


class Plugins(Protocol):
    async def list(self, request: pb.ListPluginsRequest, caller: Caller) -> pb.Document: ...
    async def run(self, request: pb.RunPluginRequest, caller: Caller) -> pb.Document: ...


class Actions(Protocol):
    async def list(self, request: pb.ListActionsRequest, caller: Caller) -> pb.Document: ...
    async def show(self, request: pb.ActionRequest, caller: Caller) -> pb.Document: ...
    async def journal(self, request: pb.JournalRequest, caller: Caller) -> pb.Document: ...
    async def approve(self, request: pb.ActionRequest, caller: Caller) -> pb.Document: ...
    async def execute(self, request: pb.ExecuteRequest, caller: Caller) -> pb.Document: ...
    async def rollback(self, request: pb.ActionRequest, caller: Caller) -> pb.Document: ...


class Events(Protocol):
    def read(
        self, request: pb.ReadEventsRequest, caller: Caller
    ) -> AsyncGenerator[pb.ReadEventsReply, None]: ...


class RouteControl(Protocol):
    async def register(
        self, request: rc.RegisterRequest, caller: Caller
    ) -> rc.RegisterResponse: ...
    async def deregister(
        self, request: rc.DeregisterRequest, caller: Caller
    ) -> rc.DeregisterResponse: ...
    async def configure_bgp(
        self, request: rc.ConfigureBGPRequest, caller: Caller
    ) -> rc.ConfigureBGPResponse: ...
    async def apply_peer(
        self, request: rc.ApplyPeerRequest, caller: Caller
    ) -> rc.ApplyPeerResponse: ...
    async def remove_peer(
        self, request: rc.RemovePeerRequest, caller: Caller
    ) -> rc.RemovePeerResponse: ...
    async def advertise_prefix(
        self, request: rc.AdvertisePrefixRequest, caller: Caller
    ) -> rc.AdvertisePrefixResponse: ...
    async def withdraw_prefix(
        self, request: rc.WithdrawPrefixRequest, caller: Caller
    ) -> rc.WithdrawPrefixResponse: ...
    async def enable_bfd(
        self, request: rc.EnableBFDRequest, caller: Caller
    ) -> rc.EnableBFDResponse: ...
    async def disable_bfd(
        self, request: rc.DisableBFDRequest, caller: Caller
    ) -> rc.DisableBFDResponse: ...
    async def enable_ospf(
        self, request: rc.EnableOSPFRequest, caller: Caller
    ) -> rc.EnableOSPFResponse: ...
    async def disable_ospf(
        self, request: rc.DisableOSPFRequest, caller: Caller
    ) -> rc.DisableOSPFResponse: ...
    async def get_status(
        self, request: rc.GetStatusRequest, caller: Caller
    ) -> rc.GetStatusResponse: ...
    def stream_events(
        self, request: rc.StreamEventsRequest, caller: Caller
    ) -> AsyncGenerator[rc.RouteEvent, None]: ...


class Routes(Protocol):
    async def declare(
        self, request: routes.DeclareRoutesRequest, caller: Caller
    ) -> routes.DeclareRoutesReply: ...
    async def begin_sync(
        self, request: routes.BeginSyncRequest, caller: Caller
    ) -> routes.BeginSyncReply: ...
    async def complete_sync(
        self, request: routes.CompleteSyncRequest, caller: Caller
    ) -> routes.CompleteSyncReply: ...
    def hold(
        self, request: routes.HoldLeaseRequest, caller: Caller
    ) -> AsyncGenerator[routes.LeaseReply, None]: ...
    async def heartbeat(
        self, request: routes.HeartbeatRequest, caller: Caller
    ) -> routes.LeaseReply: ...
    async def status(
        self, request: routes.RouteStatusRequest, caller: Caller
    ) -> routes.RouteStatusReply: ...
    def events(
        self, request: routes.RouteEventsRequest, caller: Caller
    ) -> AsyncGenerator[routes.RouteEventReply, None]: ...


@dataclass(frozen=True, slots=True)
class Services:
    """Every method raises HoldfastError for what cannot be done. None may block the event loop."""

    router: Router
    dynamic: Dynamic
    plugins: Plugins
    actions: Actions
    events: Events
    route_control: RouteControl
    routes: Routes

    def method(self, call: Call) -> Any:
        """The one that answers a call; its type is that of the call's messages."""
        return getattr(getattr(self, call.service_field), call.method)
