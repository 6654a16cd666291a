"""Requests of RouteControl as documents, and what is refused of them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.api import route_control_pb2 as rc
from holdfast.api.conditions import CallRefused
from holdfast.runtime.routes import documents, text

PEER = {"neighbor_address": "192.0.2.1", "remote_as": 65001}
LINKS = {"eth0": "wan"}  # resources by the kernel's names
BGP, OSPF = rc.PROTOCOL_BGP, rc.PROTOCOL_OSPF


def peer(local_as: int = 0, **fields: Any) -> Any:
    return documents.peer(rc.BGPPeer(**{**PEER, **fields}), local_as)["spec"]


def test_a_peer_has_the_defaults_of_the_original() -> None:
    assert peer() == {
        "address": "192.0.2.1",
        "remoteAS": 65001,
        "families": [
            {"family": "ipv4", "importAll": True, "maxPrefixes": 1000, "maxPrefixesWarning": True}
        ],
    }
    assert peer(bfd_enabled=True)["bfd"] == {
        "receiveInterval": "300ms",
        "transmitInterval": "300ms",
        "detectMultiplier": 3,
    }


def test_zero_that_was_sent_is_meant() -> None:
    assert peer(max_prefix=0)["families"] == [{"family": "ipv4", "importAll": True}]
    attributes = rc.PrefixAttributes(med=0, local_preference=0)
    spec = documents.prefix("192.0.2.0/24", BGP, attributes)["spec"]
    assert spec["med"] == 0 and spec["localPreference"] == 0
    assert "med" not in documents.prefix("192.0.2.0/24", BGP, rc.PrefixAttributes())["spec"]


@pytest.mark.parametrize(
    "fields",
    [
        {"neighbor_address": ""},
        {"neighbor_address": "example.net"},
        {"neighbor_address": "fe80::1%eth0"},
        {"neighbor_address": "224.0.0.5"},
        {"remote_as": 0},
        {"peer_type": 7},
        {"source_address": "here"},
        {"source_address": "2001:db8::1"},
        {"keepalive": 10},
        {"hold_time": 30},
        {"keepalive": 1, "hold_time": 2},
        {"keepalive": 10, "hold_time": 29},
        {"keepalive": 30000, "hold_time": 90000},
        {"address_families": [0]},
        {"address_families": [9]},
        {"ebgp_multihop": 256},
        {"bfd_min_rx_ms": 300},
        {"bfd_enabled": True, "bfd_min_rx_ms": 1},
        {"bfd_enabled": True, "bfd_detect_multiplier": 1},
        {"description": "x" * 4097},
        {"description": "up\nrouter bgp 1"},
        {"description": "up | include down"},
        {"password": "swordfish"},
        {"password": "x" * 4097},
    ],
)
def test_what_no_peer_can_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(CallRefused) as refused:
        peer(**fields)
    assert refused.value.code == "INVALID_ARGUMENT"


def test_a_password_is_refused_and_not_told() -> None:
    with pytest.raises(CallRefused, match="passwordFile") as refused:
        peer(password="swordfish fish")  # noqa: S106 - that is the point
    assert "swordfish" not in str(refused.value)


def test_the_type_of_a_peer_is_held_against_the_instance() -> None:
    assert peer(65001, peer_type=rc.PEER_TYPE_INTERNAL)["remoteAS"] == 65001
    assert peer(0, peer_type=rc.PEER_TYPE_INTERNAL)["remoteAS"] == 65001
    with pytest.raises(CallRefused, match="internal"):
        peer(65000, peer_type=rc.PEER_TYPE_INTERNAL)
    with pytest.raises(CallRefused, match="external"):
        peer(65001, peer_type=rc.PEER_TYPE_EXTERNAL)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("10.0.0.5/24", "10.0.0.0/24"),
        ("2001:DB8:0:0::/32", "2001:db8::/32"),
        ("2001:db8::5/64", "2001:db8::/64"),
        ("192.0.2.1/32", "192.0.2.1/32"),
    ],
)
def test_each_prefix_has_one_spelling(written: str, meant: str) -> None:
    found = documents.prefix(written, BGP, None)
    assert found["spec"]["prefix"] == meant
    assert documents.target_of(found) == documents.prefix_key(meant, BGP)


def test_names_of_objects_are_names_of_resources() -> None:
    from holdfast.resources.spec.document import parse_name

    long = "2001:db8:1111:2222:3333:4444:5555:6666"
    for target in (
        *(documents.prefix_key(one, BGP) for one in ("::/0", "0.0.0.0/0", f"{long}/128")),
        *(documents.peer_key(one) for one in ("fe80::", "::1", long)),
        *(
            documents.ospf_key(one)
            for one in ("eth0.100", "br-lan", "wan@x", "a-", "15-characters-x")
        ),
    ):
        assert parse_name(target.name) == target.name


@pytest.mark.parametrize(
    "written", ["", "10.0.0.0", "10.0.0.0/33", "a/8", "10.0.0.0/8/8", "ff00::/8"]
)
def test_what_is_no_prefix_is_refused(written: str) -> None:
    with pytest.raises(CallRefused) as refused:
        documents.prefix(written, BGP, None)
    assert refused.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("protocol", [0, 3, -1])
def test_an_unknown_protocol_is_refused(protocol: Any) -> None:
    with pytest.raises(CallRefused, match="protocol"):
        documents.prefix("192.0.2.0/24", protocol, None)


def test_attributes_are_of_bgp() -> None:
    with pytest.raises(CallRefused, match="OSPF"):
        documents.prefix("192.0.2.0/24", OSPF, rc.PrefixAttributes(med=0))
    assert documents.prefix("192.0.2.0/24", OSPF, rc.PrefixAttributes())["kind"] == "OSPFPrefix"


@pytest.mark.parametrize(
    "fields",
    [
        {"communities": ["65536:1"]},
        {"communities": ["1:2:3:4"]},
        {"communities": ["65001:100 additive"]},
        {"communities": ["65001:1"] * 33},
        {"next_hop": "2001:db8::1"},
        {"next_hop": "nowhere"},
    ],
)
def test_attributes_are_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(CallRefused):
        documents.prefix("192.0.2.0/24", BGP, rc.PrefixAttributes(**fields))


def test_communities_are_told_apart() -> None:
    sent = rc.PrefixAttributes(communities=["65001:100", "no-export", "65001:1:2", "65001:0100"])
    spec = documents.prefix("192.0.2.0/24", BGP, sent)["spec"]
    assert spec["communities"] == ["65001:100", "no-export"]
    assert spec["largeCommunities"] == ["65001:1:2"]


def test_ospf_has_the_defaults_of_the_original_and_one_form_of_areas() -> None:
    asked = rc.EnableOSPFRequest(interface_name="eth0", area_id="1")
    found = documents.ospf(asked, LINKS.__getitem__)["spec"]
    assert found == {
        "interface": "wan", "area": "0.0.0.1", "cost": 10, "helloInterval": "10s",
        "deadInterval": "40s",
    }  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"interface_name": ""},
        {"interface_name": "eth0 area"},
        {"interface_name": "x" * 16},
        {"area_id": ""},
        {"area_id": "4294967296"},
        {"area_id": "one"},
        {"cost": 65536},
        {"hello_interval": 20, "dead_interval": 10},
    ],
)
def test_what_ospf_cannot_take_is_refused(fields: dict[str, Any]) -> None:
    given = {"interface_name": "eth0", "area_id": "0", **fields}
    with pytest.raises(CallRefused) as refused:
        documents.ospf(rc.EnableOSPFRequest(**given), LINKS.__getitem__)
    assert refused.value.code == "INVALID_ARGUMENT"


def test_runs_of_spaces_are_one_as_frr_stores_them() -> None:
    assert text.checked("description", "to  the   core ") == "to the core"
