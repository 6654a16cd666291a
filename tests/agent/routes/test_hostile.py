"""What somebody may send who means no good: the documented code, and nothing is stored."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from holdfast.api import limits, sockets
from holdfast.api import route_control_pb2 as rc
from holdfast.state.ledger import Ledger
from tests.agent.routes.conftest import Served
from tests.agent.routes.test_route_control import requests
from tests.runtime.routes.memory import EDGE_TOKEN

_CHANGES = (
    "ConfigureBGP", "ApplyPeer", "AdvertisePrefix", "EnableBFD", "EnableOSPF", "RemovePeer",
    "WithdrawPrefix", "DisableBFD", "DisableOSPF",
)  # fmt: skip
_TEXTS = {
    "control": "a\x1b[2J\r\nrouter bgp 1",
    "nul": "10.0.0.0/24\x00no router bgp",
    "long": "x" * 4097,
    "pipe": "eth0 | include x",
    "megabyte": "1" * (1 << 20),
}
_SPOILT = (
    [  # each call, its text fields, and those of the message in it
        (name, *path)
        for name in _CHANGES
        for path in [
            ("", field.name)
            for field in rc.DESCRIPTOR.message_types_by_name[f"{name}Request"].fields
            if field.type == FieldDescriptor.TYPE_STRING and field.name not in ("owner", "token")
        ]
    ]
    + [
        ("ApplyPeer", "peer", name)
        for name in ("neighbor_address", "description", "source_address", "password")
    ]
    + [
        ("AdvertisePrefix", "attributes", "next_hop"),
        ("AdvertisePrefix", "attributes", "communities"),
    ]
)


@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS.keys())
def test_no_text_gets_through(served: Served, text: str) -> None:
    for name, inside, field in _SPOILT:
        request: Any = requests()[name]
        message = getattr(request, inside) if inside else request
        if field == "communities":
            message.communities.append(text)
        else:
            setattr(message, field, text)
        assert served.code(f"RouteControl.{name}", request) == "INVALID_ARGUMENT", (name, field)
    assert served.declarations.kept == {} and not served.said


@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS.keys())
def test_owners_and_tokens_are_compared_and_not_told(served: Served, text: str) -> None:
    request = requests()["AdvertisePrefix"]
    request.owner = text
    assert served.code("RouteControl.AdvertisePrefix", request) == "UNAUTHENTICATED"
    request.owner, request.token = "edge", text
    assert served.code("RouteControl.AdvertisePrefix", request) == "UNAUTHENTICATED"
    assert served.declarations.kept == {}


def test_numbers_that_no_enum_has(served: Served) -> None:
    for name, spoil in (
        ("AdvertisePrefix", lambda request: setattr(request, "protocol", 77)),
        ("ApplyPeer", lambda request: setattr(request.peer, "peer_type", 77)),
        ("ApplyPeer", lambda request: request.peer.address_families.append(77)),
    ):
        request = requests()[name]
        spoil(request)
        assert served.code(f"RouteControl.{name}", request) == "INVALID_ARGUMENT", name
    assert served.declarations.kept == {}


def test_ten_thousand_calls_without_a_token_that_fits(served: Served) -> None:
    """After those that may fail at a time, nothing is told but that there are too many; and an
    owner with its token is answered all the while."""
    call = rc.AdvertisePrefixRequest(prefix="10.0.0.0/24", protocol=rc.PROTOCOL_BGP)
    codes: Counter[str] = Counter()
    for number in range(10_000):
        call.owner, call.token = f"owner-{number}", EDGE_TOKEN
        codes[served.code("RouteControl.AdvertisePrefix", call)] += 1
    assert codes.keys() == {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED"}
    assert codes["UNAUTHENTICATED"] >= limits.REFUSALS_AT_ONCE
    assert sum(served.refusals.counts.values()) == 10_000
    assert {socket for socket, _ in served.refusals.counts} == {sockets.ROUTES.name}
    assert served.code("RouteControl.AdvertisePrefix", requests()["AdvertisePrefix"]) == "OK"
    with Ledger.read(served.paths) as ledger:
        assert not ledger.events()
