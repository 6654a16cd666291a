"""The server: sockets beside the loop, and limits on what may be asked of it."""

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

from holdfast.api import errors, limits, own_sockets, sockets
from holdfast.api.callers import OPERATOR, READER, Caller, CallerKind, OwnSocket, Speakers
from holdfast.api.calls import CALLS, Call
from holdfast.api.conditions import Busy
from holdfast.api.door import Door
from holdfast.api.inherited import Inherited
from holdfast.api.refusals import Refusals
from holdfast.api.relay import Relay
from holdfast.api.services import Services
from holdfast.api.sockets import SOCKETS
from holdfast.dataclass import dataclass, field
from holdfast.errors import HoldfastError, Refused
from holdfast.paths import Paths

# They go on for as long as somebody listens.
_ENDLESS = frozenset({"Events.Read", "RouteControl.StreamEvents", "Routes.Events", "Routes.Hold"})
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
class _Listening:
    """One socket that is served."""

    server: grpc.aio.Server
    relay: Relay
    held: ExitStack  # ends with it
    own: OwnSocket | None = None

    async def stop(self) -> None:
        self.relay.pause()
        await self.server.stop(limits.GRACE_S)
        await self.relay.end()
        self.held.close()


@dataclass(slots=True)
class Server:
    services: Services
    say: Say
    refusals: Refusals
    inherited: Inherited = field(default_factory=Inherited)
    speakers: Speakers = field(default_factory=Speakers)
    _listening: dict[str, _Listening] = field(default_factory=dict)  # by the name of the socket
    _held: ExitStack = field(default_factory=ExitStack)

    async def start(self, paths: Paths) -> None:
        """Raises Refused where another process listens, OSError where a socket cannot be made."""
        if self.inherited.problem:
            raise HoldfastError(self.inherited.problem)
        sockets.make_folder(paths)
        folder = self._held.enter_context(sockets.folder(paths))
        most = limits.connections(_descriptors())
        for each in SOCKETS:
            held = ExitStack()
            handed = self.inherited.sockets.get(each.name)
            # A copy, for it is closed with the server, and a start that failed is made again.
            if handed is not None:
                listener = handed.dup()
            else:
                listener = own_sockets.made(folder, paths.under(sockets.FOLDER), each, held)
            over = READER if each.read_only else OPERATOR
            await self._serve(each.name, listener, over, paths, most, held)

    async def follow(self, paths: Paths, parent: own_sockets.Parent) -> dict[str, str]:
        """Serves the own sockets of sources as they are declared now; answers with what keeps it
        from that, by source."""
        wanted = {
            own_sockets.name_of(speaker.caller.source): speaker
            for speaker in self.speakers.known
            if speaker.socket is not None
        }
        for name, served in list(self._listening.items()):
            speaker = wanted.get(name)
            if served.own is not None and (speaker is None or speaker.socket != served.own):
                del self._listening[name]
                await served.stop()
                if speaker is None:
                    self.refusals.forget(name)
        troubles = {}
        for name, speaker in wanted.items():
            if name not in self._listening and speaker.socket is not None:
                try:
                    listener, held = self._own(speaker.socket, paths, parent)
                    over, most = speaker.caller, limits.OWN_CONNECTIONS
                    await self._serve(name, listener, over, paths, most, held, speaker.socket)
                except (OSError, HoldfastError) as error:
                    troubles[speaker.caller.source] = f"its socket is not served: {error}"
        own = sum(served.own is not None for served in self._listening.values())
        for served in self._listening.values():
            if served.own is None:
                served.relay.most = limits.connections(_descriptors(), own)
        return troubles

    def _own(
        self, own: OwnSocket, paths: Paths, parent: own_sockets.Parent
    ) -> tuple[socket.socket, ExitStack]:
        if (
            sum(served.own is not None for served in self._listening.values())
            >= limits.MAX_OWN_SOCKETS
        ):
            raise Refused(f"{limits.MAX_OWN_SOCKETS} sources have one, which is as many as may")
        held = ExitStack()
        return own_sockets.opened(paths, own, parent, held), held

    async def _serve(
        self,
        name: str,
        listener: socket.socket,
        over: Caller,
        paths: Paths,
        most: int,
        held: ExitStack,
        own: OwnSocket | None = None,
    ) -> None:
        try:
            folder = held.enter_context(sockets.folder(paths))
            place = f"{folder}/inner-{name}"
            shown = paths.under(sockets.FOLDER) / f"inner-{name}"
            server = self._listen(name, over, place, shown)
            await server.start()
        except BaseException:
            listener.close()
            held.close()
            raise
        relay = Relay(listener, place, most)
        relay.start()
        self._listening[name] = _Listening(server, relay, held, own)

    def _listen(self, name: str, over: Caller, place: str, shown: Path) -> grpc.aio.Server:
        """On a file that root alone can open."""
        # gRPC removes whatever is in its way, a socket that another process listens on included.
        sockets.make_way(place, shown)
        server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=limits.MAX_CALLS)
        server.add_generic_rpc_handlers(list(self._handlers(name, over)))
        mask = os.umask(0o177)
        try:
            server.add_insecure_port(f"unix:{place}")
        except RuntimeError as error:
            raise OSError(f"{shown}: gRPC does not listen there: {error}") from None
        finally:
            os.umask(mask)
        return server

    async def stop(self) -> None:
        for served in self._listening.values():
            served.relay.pause()
        await asyncio.gather(*(served.stop() for served in self._listening.values()))
        self._listening.clear()
        self._held.close()

    def _handlers(self, name: str, over: Caller) -> list[grpc.GenericRpcHandler[Any, Any]]:
        door = Door(name, over, self.speakers, self.refusals)
        handlers: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
        answering = sockets.services(name)
        for call in CALLS.values():
            if call.service not in answering:
                continue
            answer = _Answer(call, self.services.method(call), door, self.say)
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


def _descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@dataclass(frozen=True, slots=True)
class _Answer:
    """One call on one socket."""

    call: Call
    ask: Callable[[Any, Caller], Any]
    door: Door
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

        async def work(caller: Caller) -> None:
            reply.append(await self.ask(request, caller))
            if self.call.short == "Router.About":
                reply[0].read_only = caller.kind is CallerKind.READER  # type: ignore[attr-defined]  # an AboutReply

        await self._guarded(request, context, work)
        return reply[0]

    async def stream(self, request: Message | None, context: Context) -> None:
        async def work(caller: Caller) -> None:
            answer: AsyncGenerator[Message, None] = self.ask(request, caller)
            async with aclosing(answer):
                async for message in answer:
                    try:
                        async with asyncio.timeout(limits.STALLED_S):
                            await context.write(message)
                    except TimeoutError:
                        raise Busy(_STALLED) from None

        async def watched(caller: Caller) -> None:
            """Ends with the token that it was asked for with."""
            answering = asyncio.create_task(work(caller))
            try:
                while not (await asyncio.wait({answering}, timeout=limits.ADMITTED_AGAIN_S))[0]:
                    self.door.admit(self.call, request, context)
                await answering
            finally:
                answering.cancel()
                await asyncio.gather(answering, return_exceptions=True)

        await self._guarded(
            request, context, lambda caller: (watched if caller.source else work)(caller)
        )

    async def _guarded(
        self,
        request: Message | None,
        context: Context,
        work: Callable[[Caller], Coroutine[Any, Any, None]],
    ) -> None:
        try:
            await self.door.ready(self.call, request, context)
            caller = self.door.admit(self.call, request, context)
            await self._refuse(request, context)
            limit = limits.CALL_S if self.call.reads else limits.CHANGE_S
            async with asyncio.timeout(None if self.call.short in _ENDLESS else limit):
                await work(caller)
        except HoldfastError as error:
            await self._fail(self.door.counted(error, self.call, request, context), context)
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

    async def _refuse(self, request: Message | None, context: Context) -> None:
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
