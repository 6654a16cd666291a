"""The calls of RouteControl as a client of the original sends them, over the real socket."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.api import route_control_pb2 as rc
from holdfast.runtime.routes.sessions import FRR, Peer, Seen
from tests.agent.routes.conftest import Served
from tests.runtime.routes.memory import ADMIN_TOKEN, NET_TOKEN, TOKENS

BGP = rc.PROTOCOL_BGP


def signed(kind: type[Any], owner: str = "edge", **fields: Any) -> Any:
    return kind(owner=owner, token=TOKENS.get(owner, "?"), **fields)


def requests(owner: str = "edge") -> dict[str, Any]:
    """One of each call that declares or withdraws, in an order in which all are answered."""
    peer = rc.BGPPeer(neighbor_address="192.0.2.1", remote_as=65001)
    ospf = {"interface_name": "eth0", "area_id": "0"}
    return {
        "Register": signed(rc.RegisterRequest, owner),
        "ConfigureBGP": signed(
            rc.ConfigureBGPRequest, owner, local_as=65000, router_id="192.0.2.254"
        ),
        "ApplyPeer": signed(rc.ApplyPeerRequest, owner, peer=peer),
        "AdvertisePrefix": signed(
            rc.AdvertisePrefixRequest, owner, prefix="10.0.0.5/24", protocol=BGP
        ),
        "EnableBFD": signed(rc.EnableBFDRequest, owner, peer_address="192.0.2.1"),
        "EnableOSPF": signed(rc.EnableOSPFRequest, owner, **ospf),
        "RemovePeer": signed(rc.RemovePeerRequest, owner, neighbor_address="192.0.2.1"),
        "WithdrawPrefix": signed(
            rc.WithdrawPrefixRequest, owner, prefix="10.0.0.0/24", protocol=BGP
        ),
        "DisableBFD": signed(rc.DisableBFDRequest, owner, peer_address="192.0.2.1"),
        "DisableOSPF": signed(rc.DisableOSPFRequest, owner, interface_name="eth0"),
        "Deregister": signed(rc.DeregisterRequest, owner),
    }


def test_every_call_is_answered(served: Served) -> None:
    for name, request in requests().items():
        assert served.code(f"RouteControl.{name}", request) == "OK", name
    assert not served.said


def test_a_wrong_token_comes_before_wrong_arguments(served: Served) -> None:
    for name, request in requests().items():
        wrong = type(request)(owner="edge", token=ADMIN_TOKEN)
        assert served.code(f"RouteControl.{name}", wrong) == "UNAUTHENTICATED", name
        assert served.code(f"RouteControl.{name}", type(request)()) == "INVALID_ARGUMENT", name
    assert served.declarations.kept == {}


def test_another_owners_token_is_no_token(served: Served) -> None:
    for name, request in requests().items():
        request.token = NET_TOKEN
        assert served.code(f"RouteControl.{name}", request) == "UNAUTHENTICATED", name
    assert served.declarations.kept == {}


def test_a_link_is_named_as_the_kernel_does_and_declared_by_its_resource(served: Served) -> None:
    ask = requests()["EnableOSPF"]
    served.ask("RouteControl.EnableOSPF", ask)
    [document] = served.declarations.kept["Owner/edge"].values()
    assert document["spec"]["interface"] == "wan"
    ask.interface_name = "eth9"
    assert served.code("RouteControl.EnableOSPF", ask) == "INVALID_ARGUMENT"


def test_what_is_absent_is_not_found(served: Served) -> None:
    for name in ("RemovePeer", "WithdrawPrefix", "DisableBFD", "DisableOSPF"):
        assert served.code(f"RouteControl.{name}", requests()[name]) == "NOT_FOUND", name


def test_objects_of_others_exist_already(served: Served) -> None:
    names = ("ApplyPeer", "AdvertisePrefix", "EnableBFD", "EnableOSPF")
    for name in names:
        assert served.code(f"RouteControl.{name}", requests()[name]) == "OK"
        assert served.code(f"RouteControl.{name}", requests("net")[name]) == "ALREADY_EXISTS", name
    assert served.code("RouteControl.ConfigureBGP", requests("net")["ConfigureBGP"]) == (
        "PERMISSION_DENIED"
    )


def test_a_session_tells_what_was_declared_before(served: Served) -> None:
    for name in ("ApplyPeer", "AdvertisePrefix"):
        served.ask(f"RouteControl.{name}", requests()[name])
    first = served.ask("RouteControl.Register", requests()["Register"])
    again = served.ask("RouteControl.Register", signed(rc.RegisterRequest, reassert_intents=True))
    assert list(first.current_prefixes) == ["10.0.0.0/24"]
    assert list(first.current_peers) == ["192.0.2.1"]
    assert first.session_id.startswith("edge-") and first.session_id != again.session_id


def test_deregister_keeps_what_is_declared_unless_told_otherwise(served: Served) -> None:
    served.ask("RouteControl.AdvertisePrefix", requests()["AdvertisePrefix"])
    served.ask("RouteControl.Deregister", signed(rc.DeregisterRequest))
    assert served.declarations.kept["Owner/edge"]
    served.ask("RouteControl.Deregister", signed(rc.DeregisterRequest, withdraw_all=True))
    assert not served.declarations.kept["Owner/edge"]


def test_configure_bgp_tells_what_was_before(served: Served) -> None:
    ask = requests()["ConfigureBGP"]
    assert served.ask("RouteControl.ConfigureBGP", ask).previous_as == 0
    ask.local_as = 65009
    reply = served.ask("RouteControl.ConfigureBGP", ask)
    assert (reply.previous_as, reply.previous_router_id) == (65000, "192.0.2.254")


def test_the_status_tells_what_frr_really_has(served: Served) -> None:
    for name in ("ApplyPeer", "AdvertisePrefix", "EnableBFD", "EnableOSPF"):
        served.ask(f"RouteControl.{name}", requests()[name])
    before = served.ask("RouteControl.GetStatus", rc.GetStatusRequest())
    assert [one.state for one in before.prefixes] == ["accepted"]
    assert [one.state for one in before.peers] == ["Accepted"]
    served.observed.now = Seen(
        FRR(True, "10.3", "01:00:00"),
        peers={"192.0.2.1": Peer("Established", 65001, 5, 1, "00:00:09")},
        advertised={"10.0.0.0/24": ("192.0.2.1",)},
    )
    status = served.ask("RouteControl.GetStatus", rc.GetStatusRequest(owner_filter="edge"))
    assert [(one.state, one.prefixes_sent) for one in status.peers] == [("Established", 1)]
    assert [(one.state, one.owner) for one in status.prefixes] == [("advertised", "edge")]
    assert status.frr_status.connected and status.frr_status.version == "10.3"
    assert len(status.bfd_sessions) == 1
    assert [one.interface_name for one in status.ospf_interfaces] == ["eth0"]
    other = served.ask("RouteControl.GetStatus", rc.GetStatusRequest(owner_filter="net"))
    assert not other.peers and not other.prefixes


def test_events_come_by_type_and_owner(served: Served) -> None:
    wanted = rc.StreamEventsRequest(owner_filter="edge", event_types=["owner_registered"])
    found = served.stream("RouteControl.StreamEvents", wanted)
    everything = served.stream("RouteControl.StreamEvents", rc.StreamEventsRequest())
    from_now_on(served, 2)
    served.ask("RouteControl.Register", signed(rc.RegisterRequest, "net"))
    session = served.ask("RouteControl.Register", signed(rc.RegisterRequest)).session_id
    event = next(found)
    assert event.type == rc.EVENT_TYPE_OWNER_REGISTERED and event.owner == "edge"
    assert event.metadata["session_id"] == session and int(event.metadata["sequence"]) == 2
    assert [next(everything).owner, next(everything).owner] == ["net", "edge"]
    found.cancel()
    everything.cancel()


def from_now_on(served: Served, readers: int) -> None:
    """Waits until so many read events: what is told after that, they are told."""
    import time

    end = time.monotonic() + 30
    while len(served.desk.stream.readers) < readers and time.monotonic() < end:
        time.sleep(0.01)
    assert len(served.desk.stream.readers) == readers


def test_an_unknown_type_of_event_is_refused(served: Served) -> None:
    import grpc

    stream = served.stream(
        "RouteControl.StreamEvents", rc.StreamEventsRequest(event_types=["PEER_SIDEWAYS"])
    )
    with pytest.raises(grpc.RpcError, match="PEER_UP"):
        next(stream)


def test_a_session_that_comes_and_goes_is_told(served: Served) -> None:
    for name in ("ApplyPeer", "AdvertisePrefix"):
        served.ask(f"RouteControl.{name}", requests()[name])
    stream = served.stream("RouteControl.StreamEvents", rc.StreamEventsRequest())
    from_now_on(served, 1)
    up = Seen(
        FRR(True, "10.3"), {"192.0.2.1": Peer("Established")}, advertised={"10.0.0.0/24": ("a",)}
    )
    for now in (up, Seen(FRR(False)), Seen(FRR(True, "10.3"), {"192.0.2.1": Peer("Active")})):
        served.observed.now = now
        served.on_loop(served.desk.looked)
    events = [next(stream) for _ in range(7)]
    stream.cancel()
    assert [rc.EventType.Name(one.type).removeprefix("EVENT_TYPE_") for one in events] == [
        "FRR_CONNECTED", "PEER_UP", "PREFIX_ADVERTISED", "FRR_DISCONNECTED", "FRR_CONNECTED",
        "PEER_DOWN", "PREFIX_WITHDRAWN",
    ]  # fmt: skip
    assert events[1].owner == "edge" and events[2].owner == "edge"
    assert events[5].metadata["previous_state"] == "Established"
