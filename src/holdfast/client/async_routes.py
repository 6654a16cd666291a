"""The client under asyncio."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Self

import grpc
import grpc.aio

from holdfast.api import route_control_pb2 as rc
from holdfast.api import routes_pb2 as pb
from holdfast.api.calls import CALLS
from holdfast.client import requests
from holdfast.client.requests import Event, RouteError, Unavailable


class AsyncRoutes:
    """Declares for one owner. What it declared stays declared while it is open, over restarts of
    Holdfast; after that, for as long as the owner's lease says."""

    def __init__(
        self,
        owner: str,
        *,
        token: str = "",
        token_file: str | os.PathLike[str] = "",
        socket: str = requests.SOCKET,
    ) -> None:
        self._owner, self._token = owner, requests.token_of(token, token_file)
        self._socket = socket
        self._declared: dict[bytes, pb.RouteObject] = {}
        self._holding: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()  # an assertion is of all, or of none in between

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Registers. Raises Unavailable where Holdfast does not answer, RouteError where it does
        not take the token."""
        self._channel = grpc.aio.insecure_channel(f"unix:{self._socket}", options=requests.OPTIONS)
        try:
            await self._register()
        except BaseException:
            await self._channel.close(None)
            raise
        self._holding = asyncio.create_task(self._hold())

    async def close(self, *, withdraw: bool = False) -> None:
        """withdraw: all that the owner declares; else it stays for as long as its lease says."""
        if self._holding is not None:
            self._holding.cancel()
            with suppress(asyncio.CancelledError):
                await self._holding
            self._holding = None
        try:
            if withdraw:
                await self._ask(
                    "RouteControl.Deregister",
                    rc.DeregisterRequest(owner=self._owner, token=self._token, withdraw_all=True),
                )
        finally:
            await self._channel.close(None)

    async def declare(
        self,
        put: Sequence[pb.RouteObject] = (),
        withdraw: Sequence[pb.RouteKey] = (),
        *,
        each: bool = False,
        dry_run: bool = False,
        wait: float = 0.0,
    ) -> list[pb.RouteOutcome]:
        """All, or none: RouteError then says why. each: what can be taken is, and the outcomes
        say what could not."""
        async with self._changing:
            reply: pb.DeclareRoutesReply = await self._ask(
                "Routes.Declare",
                pb.DeclareRoutesRequest(
                    put=put,
                    withdraw=withdraw,
                    each=each,
                    dry_run=dry_run,
                    wait_seconds=wait,
                ),
            )
            why = requests.refused(reply)
            if why is not None and not each:
                raise why
            if not dry_run:
                self._note(put, withdraw, reply)
            return list(reply.outcomes)

    async def advertise(self, prefix: str, **attributes: Any) -> None:
        """attributes: protocol, local_preference, communities, med, next_hop."""
        await self.declare([requests.advertised(prefix, **attributes)])

    async def withdraw(self, prefix: str, protocol: str = "bgp") -> None:
        await self.declare(withdraw=[requests.prefix_key(prefix, protocol)])

    async def peer(self, address: str, remote_as: int, **fields: Any) -> None:
        """fields: those of BGPPeer."""
        peer = rc.BGPPeer(neighbor_address=address, remote_as=remote_as, **fields)
        await self.declare([pb.RouteObject(peer=peer)])

    async def remove_peer(self, address: str) -> None:
        await self.declare(withdraw=[pb.RouteKey(peer=address)])

    async def status(self, owner: str = "") -> pb.RouteStatusReply:
        reply: pb.RouteStatusReply = await self._ask(
            "Routes.Status", pb.RouteStatusRequest(owner=owner)
        )
        return reply

    async def sync(self, objects: Sequence[pb.RouteObject]) -> list[str]:
        """Declares these and nothing else of its owner; answers what was withdrawn."""
        async with self._changing:
            begun: pb.BeginSyncReply = await self._ask("Routes.BeginSync", pb.BeginSyncRequest())
            self._declared = {
                requests.name_of(requests.key_of(route_object)): route_object
                for route_object in objects
            }
            await self._assert_all()  # nothing is swept where something could not be asserted
            done: pb.CompleteSyncReply = await self._ask(
                "Routes.CompleteSync",
                pb.CompleteSyncRequest(sync=begun.sync),
            )
            return list(done.withdrawn)

    async def events(self, *types: str, owner: str = "", after: int = 0) -> AsyncIterator[Event]:
        """Those after a number, or from now on. It goes on where it was when Holdfast comes back,
        without an event twice or missing."""
        waits = requests.waits()
        while True:
            request = pb.RouteEventsRequest(
                after=after,
                owner=owner,
                event_types=types,
                follow=True,
            )
            try:
                async for reply in self._stream("Routes.Events", request):
                    waits = requests.waits()
                    event = requests.event_of(reply)
                    after = event.number or after
                    yield event
            except grpc.aio.AioRpcError as error:
                why = requests.error_of(error)
                if not isinstance(why, Unavailable):
                    raise why from None
            await asyncio.sleep(next(waits))

    def _note(
        self,
        put: Sequence[pb.RouteObject],
        withdraw: Sequence[pb.RouteKey],
        reply: pb.DeclareRoutesReply,
    ) -> None:
        taken = [outcome.code == "OK" for outcome in reply.outcomes]
        for route_object, done in zip(put, taken, strict=False):
            if done:
                self._declared[requests.name_of(requests.key_of(route_object))] = route_object
        for key, done in zip(withdraw, taken[len(put) :], strict=False):
            if done:
                self._declared.pop(requests.name_of(key), None)

    async def _register(self) -> None:
        await self._ask(
            "RouteControl.Register",
            rc.RegisterRequest(owner=self._owner, token=self._token, reassert_intents=True),
        )

    async def _hold(self) -> None:
        """Holds the lease; and asserts everything when Holdfast was gone and is there again."""
        waits = requests.waits()
        again = False
        while True:
            try:
                if again:
                    await self._register()
                    async with self._changing:
                        await self._assert_all()
                    again = False
                request = pb.HoldLeaseRequest()
                async for _ in self._stream("Routes.Hold", request):
                    waits = requests.waits()
            except (grpc.aio.AioRpcError, RouteError):
                pass  # what a call is refused for is told to whoever makes one
            again = True
            await asyncio.sleep(next(waits))

    async def _assert_all(self) -> None:
        """Only what this client declared: the owner may have others."""
        objects = list(self._declared.values())
        if objects:
            request = pb.DeclareRoutesRequest(put=objects, each=True)
            why = requests.refused(await self._ask("Routes.Declare", request))
            if why is not None:
                raise why

    async def _ask(self, short: str, request: Any) -> Any:
        call = CALLS[short]
        function = self._channel.unary_unary(
            call.path,
            request_serializer=call.request.SerializeToString,
            response_deserializer=call.reply.FromString,
        )
        try:
            return await function(request, timeout=requests.CALL_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise requests.error_of(error) from None

    def _stream(self, short: str, request: Any) -> Any:
        call = CALLS[short]
        function = self._channel.unary_stream(
            call.path,
            request_serializer=call.request.SerializeToString,
            response_deserializer=call.reply.FromString,
        )
        return function(request, metadata=self._metadata)

    @property
    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._token}"),)
