"""What both clients send and are told: objects, errors, events, and when to try again."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import grpc

from holdfast.api import limits
from holdfast.api import route_control_pb2 as rc
from holdfast.api import routes_pb2 as pb
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError

SOCKET = "/run/holdfast/routes.sock"
TOKEN = "HOLDFAST_TOKEN"  # noqa: S105 - the name of a variable
CALL_S = 60.0
FIRST_S, LONGEST_S = 0.1, 10.0
OPTIONS = (
    ("grpc.max_receive_message_length", limits.MAX_REPLY_BYTES),
    ("grpc.max_metadata_size", limits.MAX_METADATA_BYTES),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN)


class RouteError(HoldfastError):
    """A call was refused. `code` is the name of a gRPC code: PERMISSION_DENIED."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class Unavailable(RouteError):  # noqa: N818 - it is a state
    """Holdfast does not answer. What was declared before is asserted again when it does."""


@dataclass(frozen=True, slots=True)
class Event:
    number: int  # to go on after
    type: str  # PEER_UP
    owner: str
    message: str
    time: int  # in seconds since 1970
    data: Mapping[str, str]
    missed: int = 0  # so many were dropped before they were read


def token_of(token: str, token_file: str | os.PathLike[str]) -> str:
    """token: for tests and programs that hold it anyway. Else the file, else the environment."""
    if token:
        return token
    if token_file:
        try:
            found = Path(token_file).read_text().strip()
        except OSError as error:
            raise RouteError("UNAUTHENTICATED", f"{token_file}: {error.strerror}") from None
        if not found:
            raise RouteError("UNAUTHENTICATED", f"{token_file} is empty: it holds the token alone")
        return found
    found = os.environ.get(TOKEN, "")
    if not found:
        raise RouteError("UNAUTHENTICATED", f"there is no token: name a file, or set {TOKEN}")
    return found


def error_of(error: grpc.RpcError | grpc.aio.AioRpcError) -> RouteError:
    code: grpc.StatusCode = error.code()
    said = error.details() or code.name
    if code in _GONE:
        return Unavailable(code.name, f"Holdfast does not answer on its socket: {said}")
    return RouteError(code.name, said)


def waits() -> Iterator[float]:
    """Seconds between tries, each about twice as long, and no two clients at the same time."""
    wait = FIRST_S
    while True:
        yield wait * random.uniform(0.5, 1.0)  # noqa: S311 - to spread them is all it is for
        wait = min(LONGEST_S, wait * 2)


def advertised(
    prefix: str,
    protocol: str = "bgp",
    local_preference: int | None = None,
    communities: Iterable[str] = (),
    med: int | None = None,
    next_hop: str = "",
) -> pb.RouteObject:
    """None stands for what is not set; 0 is a value."""
    given = rc.PrefixAttributes(communities=list(communities), next_hop=next_hop)
    if local_preference is not None:
        given.local_preference = local_preference
    if med is not None:
        given.med = med
    attributes = given if given.ListFields() else None
    advertised_prefix = pb.AdvertisedPrefix(
        prefix=prefix, protocol=protocol_of(protocol), attributes=attributes
    )
    return pb.RouteObject(prefix=advertised_prefix)


def protocol_of(name: str) -> rc.Protocol.ValueType:
    found = {"bgp": rc.PROTOCOL_BGP, "ospf": rc.PROTOCOL_OSPF}.get(name.lower())
    if found is None:
        raise RouteError("INVALID_ARGUMENT", f"protocol: {name!r} is neither bgp nor ospf")
    return found


def prefix_key(prefix: str, protocol: str = "bgp") -> pb.RouteKey:
    return pb.RouteKey(prefix=pb.PrefixKey(prefix=prefix, protocol=protocol_of(protocol)))


def key_of(route_object: pb.RouteObject) -> pb.RouteKey:
    which = route_object.WhichOneof("object")
    if which == "peer":
        return pb.RouteKey(peer=route_object.peer.neighbor_address)
    if which == "prefix":
        key = pb.PrefixKey(prefix=route_object.prefix.prefix, protocol=route_object.prefix.protocol)
        return pb.RouteKey(prefix=key)
    if which == "bfd":
        return pb.RouteKey(bfd=route_object.bfd.peer_address)
    if which == "ospf":
        return pb.RouteKey(ospf=route_object.ospf.interface_name)
    return pb.RouteKey(instance=True)


def name_of(key: pb.RouteKey) -> bytes:
    return key.SerializeToString(deterministic=True)


def refused(reply: pb.DeclareRoutesReply) -> RouteError | None:
    """The first reason, but for what was not taken on account of another."""
    found = [outcome for outcome in reply.outcomes if outcome.code != "OK"]
    if not found:
        return None
    first = next(
        (route_outcome for route_outcome in found if route_outcome.code != "ABORTED"), found[0]
    )
    return RouteError(first.code, first.message)


def event_of(reply: pb.RouteEventReply) -> Event:
    event = reply.event
    kind = rc.EventType.Name(event.type).removeprefix("EVENT_TYPE_")
    return Event(
        reply.sequence,
        kind,
        event.owner,
        event.detail,
        event.timestamp_unix,
        dict(event.metadata),
        reply.missed,
    )
