"""BGP in a real bgpd of both versions: made, seen as declared, changed, and gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.bgp_attributes import Attributes
from holdfast.engine.kinds.bgp_filter import bgp_filter
from holdfast.engine.kinds.bgp_instance import bgp_instance
from holdfast.engine.kinds.bgp_network import bgp_aggregate
from holdfast.engine.kinds.bgp_peer import Session, bgp_peer, bgp_peer_group
from holdfast.engine.plan import Verb
from tests.frr.drive import Drive, driver_of, networks
from tests.frr.ground import Frr, Ground

INSTANCE = bgp_instance(65001, router_id="192.0.2.1")
PEER = "192.0.2.2"
SECRET = "s3cret|x"  # noqa: S105 (of a test)
ACTIVE = ("activate",)


@pytest.fixture
def bgpd(frr: Ground) -> Frr:
    return frr.frr("bgpd")


@pytest.fixture
def drive(bgpd: Frr) -> Iterator[Drive]:
    driver = driver_of(bgpd)
    yield Drive(driver)
    driver.close()


def config(bgpd: Frr) -> str:
    return bgpd.vtysh("show running-config")


@pytest.mark.parametrize(
    "change",
    [
        {"router_id": "192.0.2.9"},
        {"router_id": None},
        {"log_neighbor_changes": False},
        {"ebgp_requires_policy": True, "network_import_check": True},
        {"multipath_relax": True, "listen_limit": 7},
        {"graceful_restart": True, "restart_time": 90, "stale_path_time": 200},
        {"graceful_shutdown": True},
    ],
)
def test_an_instance_there_and_back(drive: Drive, change: dict[str, object]) -> None:
    said: dict[str, object] = {"router_id": "192.0.2.1"}
    other = bgp_instance(65001, **{**said, **change})  # type: ignore[arg-type]  # as parametrized
    drive.settle(INSTANCE)
    drive.settle(other)
    drive.settle(INSTANCE)


SESSIONS = [
    Session(remote_as="65002", ipv4_unicast=ACTIVE),
    Session(remote_as="external", description="to the world", passive=True,
            ipv4_unicast=ACTIVE, password=SECRET, keepalive=10, hold_time=30),
    Session(remote_as="internal", shutdown=True, update_source="192.0.2.1", connect_time=7,
            advertisement_interval=3, bfd=True, ipv4_unicast=ACTIVE, extended_nexthop=True),
    Session(remote_as="65002", ebgp_multihop=4, local_as="65010 no-prepend replace-as",
            graceful_restart="helper", password=SECRET[::-1], ipv6_unicast=ACTIVE),
    Session(remote_as="65002", ttl_security=2, bfd=True, bfd_profile="fast",
            ipv4_unicast=("activate", "maximum-prefix 1000 80 warning-only", "next-hop-self",
                          "route-map THEIRS in", "soft-reconfiguration inbound"),
            ipv6_unicast=("activate", "allowas-in", "default-originate")),
    Session(remote_as="65002", disable_connected_check=True,
            ipv4_unicast=("activate", "maximum-prefix 5", "route-map OTHER in",
                          "route-map OTHER out")),
]  # fmt: skip


def test_every_session_becomes_every_other(drive: Drive) -> None:
    for before in SESSIONS:
        drive.settle(INSTANCE, bgp_peer(PEER, before))
        for after in SESSIONS:
            drive.settle(INSTANCE, bgp_peer(PEER, after))
            drive.settle(INSTANCE, bgp_peer(PEER, before))
    drive.settle(INSTANCE)


def test_groups_ranges_and_links(drive: Drive, bgpd: Frr) -> None:
    group = bgp_peer_group(
        "HF-group", SESSIONS[0], listen_ranges=["198.51.100.0/24", "2001:db8::/64"]
    )
    member = bgp_peer(PEER, Session(), group="HF-group")
    link = bgp_peer("lo", Session(remote_as="external", ipv4_unicast=ACTIVE))
    drive.settle(INSTANCE, group, member, link)
    fewer = bgp_peer_group("HF-group", SESSIONS[1], listen_ranges=["198.51.100.0/24"])
    drive.settle(INSTANCE, fewer, member, link)
    drive.settle(INSTANCE, fewer)
    drive.settle(INSTANCE)
    assert " neighbor " not in config(bgpd)


def test_networks_with_attributes(drive: Drive, bgpd: Frr) -> None:
    prefixes = ("198.51.100.0/24", "198.51.101.0/24", "2001:db8:1::/48")
    drive.settle(INSTANCE, *networks(*prefixes))
    med = Attributes(
        med=0,
        local_preference=0,
        communities=("65001:1", "no-export"),
        large_communities=("65001:1:2",),
        prepend=(65001, 65001),
    )
    changed = networks(*prefixes[1:], attributes=med)
    drive.settle(INSTANCE, *networks(prefixes[0]), *changed)
    assert f"route-map {med.map_name} permit 10" in config(bgpd)
    drive.settle(INSTANCE, *networks(prefixes[0]))
    assert med.map_name not in config(bgpd)  # nothing names it any more
    drive.settle(INSTANCE)
    assert "route-map" not in config(bgpd)


def test_a_map_that_was_edited_by_hand_is_made_anew(drive: Drive, bgpd: Frr) -> None:
    med = Attributes(med=7)
    declared = networks("198.51.100.0/24", attributes=med)
    drive.settle(INSTANCE, *declared)
    bgpd.configure(f"route-map {med.map_name} permit 10\n set metric 8\nexit\n")
    (change,) = drive.plan(INSTANCE, *declared).changes
    assert change.verb is Verb.UPDATE
    drive.settle(INSTANCE, *declared)
    assert "set metric 7" in config(bgpd)
    bgpd.configure(f"no route-map {med.map_name}\n")
    drive.settle(INSTANCE, *declared)
    assert "set metric 7" in config(bgpd)


def test_networks_below_a_summary_change(drive: Drive, bgpd: Frr) -> None:
    """bgpd of 10.3 crashes where the line is changed as it stands."""
    summary = bgp_aggregate("198.51.0.0/16", summary_only=True)
    drive.settle(INSTANCE, *networks("198.51.100.0/24"), summary)
    pid = bgpd.pid("bgpd")
    changed = networks("198.51.100.0/24", attributes=Attributes(med=5))
    drive.settle(INSTANCE, *changed, summary)
    other = bgp_aggregate("198.51.0.0/16", as_set=True, attributes=Attributes(med=5))
    drive.settle(INSTANCE, *changed, other)
    drive.settle(INSTANCE)
    assert bgpd.pid("bgpd") == pid
    assert "aggregate" not in config(bgpd)


def test_filters(drive: Drive, bgpd: Frr) -> None:
    lines = (
        "ip prefix-list @-1 seq 5 permit 10.0.0.0/8 le 24",
        "bgp as-path access-list @-2 seq 5 permit ^65001_",
        "bgp community-list standard @-3 seq 5 permit 65001:100",
        "bgp large-community-list standard @-4 seq 5 permit 65001:1:100",
        "route-map @ permit 10",
        "match ip address prefix-list @-1",
        "match as-path @-2",
        "set local-preference 200",
        "route-map @ permit 20",
        "match community @-3",
    )
    drive.settle(made := bgp_filter("in", lines))
    bgpd.configure(f"no ip prefix-list {made.key.name}-1 seq 5\n")
    drive.settle(made)
    drive.settle()
    assert made.key.name not in config(bgpd)


def test_what_others_have_is_a_conflict(drive: Drive, bgpd: Frr) -> None:
    bgpd.configure(
        "router bgp 65001\n neighbor 192.0.2.2 remote-as 65099\n"
        " address-family ipv4 unicast\n  network 198.51.100.0/24 route-map THEIRS\n"
        "  network 198.51.101.0/24\n exit-address-family\nexit\n"
    )
    before = config(bgpd)
    declared: list[Artifact] = [bgp_instance(65001), bgp_peer(PEER, SESSIONS[0])]
    planned = drive.plan(*declared, *networks("198.51.100.0/24", "198.51.101.0/24"))
    assert not planned.changes
    held = {conflict.desired.key.name for conflict in planned.conflicts}
    assert {PEER, "198.51.100.0/24", "default"} <= held
    offered = {candidate.desired.key.name for candidate in planned.candidates}
    assert "198.51.101.0/24" in offered
    assert config(bgpd) == before


def test_an_instance_with_others_in_it_stays(drive: Drive, bgpd: Frr) -> None:
    drive.settle(INSTANCE, bgp_peer(PEER, SESSIONS[0]))
    bgpd.configure("router bgp 65001\n neighbor 192.0.2.77 remote-as 65077\nexit\n")
    planned = drive.plan()
    kept = [orphan for orphan in planned.orphans if not orphan.removed]
    assert [str(orphan.losses) for orphan in kept] == [
        "('neighbor 192.0.2.77 (frr.conf or vtysh)',)"
    ]
    drive.apply()
    assert "192.0.2.77" in config(bgpd)
    assert PEER + " " not in config(bgpd)


def test_another_as_number(drive: Drive, bgpd: Frr) -> None:
    drive.settle(INSTANCE, bgp_peer(PEER, SESSIONS[0]))
    other = bgp_instance(65009)
    (replaced,) = drive.apply(other, bgp_peer(PEER, SESSIONS[0]))
    assert (replaced.operation.verb, replaced.ok) == (Verb.REPLACE, True)
    drive.settle(other, bgp_peer(PEER, SESSIONS[0]))
    assert "router bgp 65009" in config(bgpd)


def test_what_frr_refuses_is_told_in_its_words(drive: Drive) -> None:
    drive.settle(INSTANCE)
    wrong = bgp_peer(PEER, Session(remote_as="65002", local_as="65001", password=SECRET))
    (result,) = drive.apply(INSTANCE, wrong)
    assert not result.ok
    assert "local-as" in result.failures[0].error
    assert SECRET not in repr(result)
