"""The client: calls as plain functions, and failures as the errors they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from holdfast.api import errors, limits
from holdfast.api import holdfast_pb2 as pb
from holdfast.api.calls import CALLS, Call
from holdfast.api.conditions import Gone, Silent
from holdfast.dataclass import dataclass, field
from holdfast.errors import HoldfastError, Refused

_OPTIONS = (
    ("grpc.max_receive_message_length", limits.MAX_REPLY_BYTES),
    ("grpc.max_metadata_size", limits.MAX_METADATA_BYTES),
    ("grpc.enable_http_proxy", 0),
    # One that failed to connect would be waited out by the next channel to the same place.
    ("grpc.use_local_subchannel_pool", 1),
)
Reply = TypeVar("Reply", bound=Message)


@dataclass(frozen=True, slots=True)
class Client:
    """Every method raises what the daemon raised. `place` is the socket's path."""

    channel: grpc.Channel
    # That says for which source this client speaks; "": the socket alone says who calls.
    token: str = field(default="", repr=False)

    @property
    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def ask(self, short: str, request: Message, kind: type[Reply], timeout: float) -> Reply:
        """A call that is answered with one message: `ask("Router.Status", ...)`."""
        call = CALLS[short]
        function = self.channel.unary_unary(
            call.path, request_serializer=_bytes, response_deserializer=kind.FromString
        )
        with _translated(call):
            reply: Reply = function(request, timeout=timeout, metadata=self._metadata)
            return reply

    def stream(
        self, short: str, request: Message, kind: type[Reply], timeout: float | None
    ) -> Iterator[Reply]:
        call = CALLS[short]
        function = self.channel.unary_stream(
            call.path, request_serializer=_bytes, response_deserializer=kind.FromString
        )
        with _translated(call):
            answer = function(request, timeout=timeout, metadata=self._metadata)
            try:
                yield from answer
            finally:
                answer.cancel()  # type: ignore[no-untyped-call]  # grpc-stubs leaves it so

    def about(self, timeout: float = limits.ABOUT_S) -> pb.AboutReply:
        return self.ask("Router.About", pb.AboutRequest(), pb.AboutReply, timeout)


@contextmanager
def connected(place: str, token: str = "") -> Iterator[Client]:
    with grpc.insecure_channel(f"unix:{place}", options=_OPTIONS) as channel:
        yield Client(channel, token)


def _bytes(message: Message) -> bytes:
    return message.SerializeToString()


@contextmanager
def _translated(call: Call) -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        raise _error(call, error) from None


def _error(call: Call, failure: Any) -> HoldfastError:
    for name, value in failure.trailing_metadata() or ():
        if name == errors.DETAIL:
            return errors.from_wire(pb.Error.FromString(value))
    code, said = failure.code(), failure.details()
    if code == grpc.StatusCode.PERMISSION_DENIED:
        return Refused(said)
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return Gone(
            f"the daemon ended while it was asked for {call.short} ({said}); what it had begun, it"
            " goes on with when it starts again"
        )
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return Silent(f"the daemon did not answer {call.short} in time")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return HoldfastError(f"the daemon does not know {call.short}: it is of another version")
    return HoldfastError(f"{call.short}: {said} ({code.name})")
