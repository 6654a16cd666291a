"""Every call, as the schema has it: its name on the wire, its messages, and whether it only reads.

Nothing is generated but the messages: server and client take the rest from the schema itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from holdfast.api import holdfast_pb2, route_control_pb2, routes_pb2
from holdfast.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    service: str  # "holdfast.v1.Router"
    name: str  # "Status"
    request: type[Message]
    reply: type[Message]
    streams: bool  # answers with more than one message
    reads: bool
    signed: bool  # who calls stands in the request itself, as clients of RouteControl know it

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"

    @property
    def short(self) -> str:
        return f"{self.service.rpartition('.')[2]}.{self.name}"

    @property
    def service_field(self) -> str:
        """What `Services` calls its service: "router"."""
        return _snake(self.service.rpartition(".")[2])

    @property
    def method(self) -> str:
        """What its service calls the method that answers it: "take_back"."""
        return _snake(self.name)


def _snake(name: str) -> str:
    """A word in capitals stays one: "configure_bgp"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _call(method: MethodDescriptor) -> Call:
    return Call(
        method.containing_service.full_name,
        method.name,
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
        method.server_streaming,
        method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS,
        {"owner", "token"}.issubset(method.input_type.fields_by_name),
    )


SCHEMAS = (holdfast_pb2.DESCRIPTOR, route_control_pb2.DESCRIPTOR, routes_pb2.DESCRIPTOR)

CALLS: Mapping[str, Call] = {
    call.short: call
    for schema in SCHEMAS
    for service in schema.services_by_name.values()
    for call in map(_call, service.methods)
}
