"""The server: two sockets beside the loop, and limits on what may be asked of it."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from holdfast.api import errors, limits, sockets
from holdfast.api.calls import CALLS, Call
from holdfast.api.conditions import Busy
from holdfast.api.inherited import Inherited
from holdfast.api.relay import Relay
from holdfast.api.services import Services
from holdfast.api.sockets import SOCKETS, Socket
from holdfast.dataclass import dataclass, field
from holdfast.errors import HoldfastError
from holdfast.paths import Paths

# It goes on for as long as somebody listens.
_ENDLESS = "Events.Read"
_OPTIONS = (
    ("grpc.max_receive_message_length", limits.MAX_REQUEST_BYTES),
    ("grpc.max_send_message_length", limits.MAX_REPLY_BYTES),
    ("grpc.max_metadata_size", limits.MAX_METADATA_BYTES),
    ("grpc.max_concurrent_streams", limits.MAX_CALLS),
    ("grpc.so_reuseport", 0),
)

Context = grpc.aio.ServicerContext[Any, Any]
Say = Callable[[str], None]


@dataclass(slots=True)
class Server:
    services: Services
    say: Say
    inherited: Inherited = field(default_factory=Inherited)
    _running: list[Any] = field(default_factory=list)
    _relays: list[Relay] = field(default_factory=list)
    _held: ExitStack = field(default_factory=ExitStack)

    async def start(self, paths: Paths) -> None:
        """Raises Refused where another process listens, OSError where a socket cannot be made."""
        if self.inherited.problem:
            raise HoldfastError(self.inherited.problem)
        sockets.make_folder(paths)
        folder = self._held.enter_context(sockets.folder(paths))
        most = limits.connections(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        for each in SOCKETS:
            handed = self.inherited.sockets.get(each.name)
            # A copy, for it is closed with the server, and a start that failed is made again.
            listener = handed.dup() if handed is not None else self._own(each, folder, paths)
            name = f"inner-{each.name}"
            place, shown = f"{folder}/{name}", paths.under(sockets.FOLDER) / name
            server = self._listen(each, place, shown)
            await server.start()
            self._running.append(server)
            relay = Relay(listener, place, most)
            relay.start()
            self._relays.append(relay)

    def _own(self, each: Socket, folder: str, paths: Paths) -> socket.socket:
        """Where the service manager holds none."""
        place = f"{folder}/{each.name}"
        sockets.make_way(place, paths.under(sockets.FOLDER) / each.name)
        found = sockets.listen(place, each)
        self._held.callback(Path(place).unlink, missing_ok=True)
        self._held.callback(found.close)
        return found

    def _listen(self, each: Socket, place: str, shown: Path) -> grpc.aio.Server:
        """On a file that root alone can open."""
        # gRPC removes whatever is in its way, a socket that another process listens on included.
        sockets.make_way(place, shown)
        server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=limits.MAX_CALLS)
        server.add_generic_rpc_handlers(list(self._handlers(each.read_only)))
        mask = os.umask(0o177)
        try:
            server.add_insecure_port(f"unix:{place}")
        except RuntimeError as error:
            raise OSError(f"{shown}: gRPC does not listen there: {error}") from None
        finally:
            os.umask(mask)
        return server

    async def stop(self) -> None:
        for relay in self._relays:
            relay.pause()
        await asyncio.gather(*(server.stop(limits.GRACE_S) for server in self._running))
        await asyncio.gather(*(relay.end() for relay in self._relays))
        self._held.close()

    def _handlers(self, read_only: bool) -> list[grpc.GenericRpcHandler[Any, Any]]:
        handlers: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
        for call in CALLS.values():
            answer = _Answer(call, self.services.method(call), read_only, self.say)
            handler = (
                grpc.unary_stream_rpc_method_handler(
                    answer.stream,
                    request_deserializer=answer.request,
                    response_serializer=answer.serialize,
                )
                if call.streams
                else grpc.unary_unary_rpc_method_handler(
                    answer.unary,
                    request_deserializer=answer.request,
                    response_serializer=answer.serialize,
                )
            )
            handlers.setdefault(call.service, {})[call.name] = handler
        return [
            grpc.method_handlers_generic_handler(service, methods)
            for service, methods in handlers.items()
        ]


@dataclass(frozen=True, slots=True)
class _Answer:
    """One call on one socket."""

    call: Call
    ask: Callable[[Any], Any]
    read_only: bool
    say: Say

    def request(self, data: bytes) -> Message | None:
        """None for what is no such message: gRPC would answer that with a traceback in the log."""
        try:
            return self.call.request.FromString(data)
        except DecodeError:
            return None

    @staticmethod
    def serialize(message: Message) -> bytes:
        return message.SerializeToString()

    async def unary(self, request: Message | None, context: Context) -> Message:
        reply: list[Message] = []

        async def work() -> None:
            reply.append(await self.ask(request))

        await self._guarded(request, context, work())
        if self.call.short == "Router.About":
            reply[0].read_only = self.read_only  # type: ignore[attr-defined]  # an AboutReply
        return reply[0]

    async def stream(self, request: Message | None, context: Context) -> None:
        async def work() -> None:
            answer: AsyncGenerator[Message, None] = self.ask(request)
            async with aclosing(answer):
                async for message in answer:
                    try:
                        async with asyncio.timeout(limits.STALLED_S):
                            await context.write(message)
                    except TimeoutError:
                        raise Busy(_STALLED) from None

        await self._guarded(request, context, work())

    async def _guarded(
        self, request: Message | None, context: Context, work: Coroutine[Any, Any, None]
    ) -> None:
        try:
            await self._refuse(request, context)
            limit = limits.CALL_S if self.call.reads else limits.CHANGE_S
            async with asyncio.timeout(None if self.call.short == _ENDLESS else limit):
                await work
        except HoldfastError as error:
            await self._fail(error, context)
        except TimeoutError:
            await context.abort(
                grpc.StatusCode.DEADLINE_EXCEEDED, f"{self.call.short} takes longer than it may"
            )
        except (grpc.aio.AbortError, grpc.aio.UsageError):
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            told = f"a fault of Holdfast's: {error!r} in {where.name}"
            self.say(f"{self.call.short}: {told} ({Path(where.filename).name}:{where.lineno})")
            await context.abort(grpc.StatusCode.INTERNAL, told)
        finally:
            work.close()  # not begun where it was refused

    async def _refuse(self, request: Message | None, context: Context) -> None:
        if self.read_only and not self.call.reads:
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                f"{self.call.short} changes things, and this socket is for reading",
            )
        if request is None:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"not a {self.call.request.DESCRIPTOR.full_name} message",
            )

    async def _fail(self, error: HoldfastError, context: Context) -> None:
        detail = errors.to_wire(error).SerializeToString()
        context.set_trailing_metadata(((errors.DETAIL, detail),))
        await context.abort(errors.code_of(error), errors.summary(error))


_STALLED = (
    f"nothing was read for {limits.STALLED_S:.0f} s: dropped; come back with the number of the last"
    " event that was read"
)
