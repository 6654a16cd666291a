"""Who calls is known by the tokens of all calls, wherever a call of routing control shows one."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.api import route_control_pb2 as rc
from holdfast.api import routes_pb2 as pb
from holdfast.api.callers import Caller, CallerKind, Speaker
from holdfast.api.tokens import digest_of
from tests.agent.routes.conftest import Served
from tests.agent.routes.test_route_control import requests
from tests.runtime.routes.memory import EDGE_TOKEN, NET_TOKEN

MANAGER_TOKEN = "manager-token-01234"  # noqa: S105 - of this test
NEXT_TOKEN = "the-next-token-of-edge"  # noqa: S105 - as well
DECLARE = "Routes.Declare"


def bearer(*tokens: str) -> Any:
    return tuple(("authorization", f"Bearer {token}") for token in tokens)


@pytest.mark.parametrize(
    ("name", "token", "code"),
    [
        ("", EDGE_TOKEN, "INVALID_ARGUMENT"),
        ("edge", "", "INVALID_ARGUMENT"),
        ("nobody", EDGE_TOKEN, "UNAUTHENTICATED"),
        ("net", EDGE_TOKEN, "UNAUTHENTICATED"),
        ("edge", EDGE_TOKEN + "0", "UNAUTHENTICATED"),
        ("edge", "short", "UNAUTHENTICATED"),
        ("edge\n", EDGE_TOKEN, "UNAUTHENTICATED"),
    ],
)
def test_a_request_says_who_calls(served: Served, name: str, token: str, code: str) -> None:
    request = requests()["AdvertisePrefix"]
    request.owner, request.token = name, token
    assert served.code("RouteControl.AdvertisePrefix", request) == code
    assert served.declarations.kept == {}


def test_a_token_may_stand_beside_the_request_too_if_it_is_the_same(served: Served) -> None:
    ask = requests()["AdvertisePrefix"]
    assert served.code("RouteControl.AdvertisePrefix", ask, bearer(NET_TOKEN)) == "UNAUTHENTICATED"
    assert served.code("RouteControl.AdvertisePrefix", ask, bearer(EDGE_TOKEN)) == "OK"


def test_reading_takes_the_socket_and_declaring_a_token(served: Served) -> None:
    for short, request in (
        ("RouteControl.GetStatus", rc.GetStatusRequest()),
        ("Routes.Status", pb.RouteStatusRequest()),
    ):
        assert served.code(short, request) == "OK"
        assert served.code(short, request, bearer(EDGE_TOKEN)) == "OK"
        assert served.code(short, request, bearer("nobody-has-this-one")) == "UNAUTHENTICATED"
    assert served.code(DECLARE, pb.DeclareRoutesRequest()) == "UNAUTHENTICATED"
    assert served.code(DECLARE, pb.DeclareRoutesRequest(), bearer(EDGE_TOKEN)) == "OK"


def test_a_manager_owns_no_routes(served: Served) -> None:
    manager = Caller(CallerKind.MANAGER, "Manager/main")
    speaker = Speaker(manager, (digest_of(MANAGER_TOKEN),))
    served.on_loop(lambda: served.speakers.put((*served.speakers.known, speaker)))
    shown = bearer(MANAGER_TOKEN)
    assert served.code(DECLARE, pb.DeclareRoutesRequest(), shown) == "PERMISSION_DENIED"
    assert served.code("Routes.Status", pb.RouteStatusRequest(), shown) == "OK"
    request = requests()["AdvertisePrefix"]
    request.token = MANAGER_TOKEN
    assert served.code("RouteControl.AdvertisePrefix", request) == "UNAUTHENTICATED"


def test_a_rotation_needs_no_restart(served: Served) -> None:
    edge = Caller(CallerKind.OWNER, "Owner/edge")
    ask, declared = pb.DeclareRoutesRequest(), (EDGE_TOKEN, NEXT_TOKEN)
    for tokens in (declared, declared[1:]):
        speaker = Speaker(edge, tuple(map(digest_of, tokens)))
        served.on_loop(lambda speaker=speaker: served.speakers.put((speaker,)))
        for token in declared:
            code = "OK" if token in tokens else "UNAUTHENTICATED"
            assert served.code(DECLARE, ask, bearer(token)) == code


def test_routing_control_alone_is_served_there(served: Served) -> None:
    from holdfast.api import holdfast_pb2

    for short, request in (
        ("Router.Status", holdfast_pb2.StatusRequest()),
        ("Events.Read", holdfast_pb2.ReadEventsRequest()),
    ):
        assert served.code(short, request, bearer(EDGE_TOKEN)) == "UNIMPLEMENTED"
