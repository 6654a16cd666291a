"""The services of the schema, one class each: its calls are methods of that name in snake case."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from holdfast.api import holdfast_pb2 as pb
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


@dataclass(frozen=True, slots=True)
class Services:
    """Every method raises HoldfastError for what cannot be done. None may block the event loop."""

    router: Router
    dynamic: Dynamic
    plugins: Plugins
    actions: Actions
    events: Events

    def method(self, call: Call) -> Any:
        """The one that answers a call; its type is that of the call's messages."""
        return getattr(getattr(self, call.service_field), call.method)
