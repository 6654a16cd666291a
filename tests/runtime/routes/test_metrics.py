"""The fifteen metrics of the original: live sessions, and labels that callers cannot choose."""

from __future__ import annotations

from holdfast.api import route_control_pb2 as rc
from holdfast.runtime.routes import documents
from holdfast.runtime.routes.conflicts import Claimed
from holdfast.runtime.routes.metrics import RouteNumbers
from holdfast.runtime.routes.sessions import FRR, Peer, Seen
from holdfast.runtime.routes.status_of import Picture
from holdfast.runtime.routes.tally import Tally


def numbers(seen: Seen) -> RouteNumbers:
    up = documents.peer(rc.BGPPeer(neighbor_address="192.0.2.1", remote_as=1), 0)
    down = documents.peer(rc.BGPPeer(neighbor_address="192.0.2.2", remote_as=1), 0)
    prefix = documents.prefix("10.0.0.0/8", rc.PROTOCOL_BGP, None)
    claimed = [
        Claimed(source, documents.target_of(raw), raw)
        for source, raw in (("Owner/edge", up), ("Owner/edge", down), ("Plugin/x", prefix))
    ]
    picture = Picture({one.target: one for one in claimed}, {}, seen, {}, str)
    return RouteNumbers(Tally(), picture, frozenset({"edge", "net"}), 1)


def test_all_of_them_are_there() -> None:
    found = numbers(Seen())
    assert len([*found.counted(), *found.timed()]) == 15


def test_only_what_is_up_is_active() -> None:
    seen = Seen(FRR(True), {"192.0.2.1": Peer("Established"), "192.0.2.2": Peer("Active")},
                advertised={"10.0.0.0/8": ("192.0.2.1",)})  # fmt: skip
    found = {one.name: one.values for one in numbers(seen).counted()}
    assert found["novaroute_active_peers"] == {("edge",): 1, ("net",): 0}
    assert found["novaroute_active_prefixes"]["_config", "BGP"] == 1
    assert found["novaroute_frr_connected"] == {(): 1.0}
