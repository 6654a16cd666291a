"""Routing control's artifact kinds: names by content, canonical forms, what resets a session."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds import bfd, bgp_filter, bgp_network, bgp_peer, ospf
from holdfast.engine.kinds import bgp_attributes as attributes
from holdfast.engine.kinds.bgp_attributes import NO_ATTRIBUTES, Attributes
from holdfast.engine.kinds.bgp_network import BGP_NETWORK, NetworkTemplate, pack_key
from holdfast.engine.kinds.bgp_peer import BGP_PEER, Session
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Change, Operation, Verb
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy
from tests.engine.memory_networks import Networks

EVERYTHING = Attributes(
    0,
    0,
    attributes.communities(["no-export", "65001:100", "65535:666"]),
    attributes.large_communities(["65001:10:1", "65001:9:1"]),
    ("rt 65001:1", "rt 65001:2", "soo 65001:3"),
    "192.0.2.1",
    (65001, 65001),
)
KEYS = [pack_key(bytes((203, 0, 113, 0)), 24), pack_key(bytes(16), 0)]


def test_lines_and_back() -> None:
    assert EVERYTHING.lines() == (
        "set local-preference 0",
        "set metric 0",
        "set community 65001:100 blackhole no-export",
        "set large-community 65001:9:1 65001:10:1",
        "set extcommunity rt 65001:1 65001:2",
        "set extcommunity soo 65001:3",
        "set ip next-hop 192.0.2.1",
        "set as-path prepend 65001 65001",
    )
    assert attributes.attributes_of(EVERYTHING.lines()) == EVERYTHING
    six = Attributes(next_hop="2001:db8::1")
    assert six.lines() == ("set ipv6 next-hop global 2001:db8::1",)
    assert attributes.attributes_of(six.lines()) == six
    assert attributes.attributes_of(()) == NO_ATTRIBUTES


@pytest.mark.parametrize("line", ["set metric rtt", "set weight 5", "match community x", "set"])
def test_a_line_that_is_no_attribute(line: str) -> None:
    with pytest.raises(ValueError):
        attributes.attributes_of([line])


def test_names_are_of_the_content_in_any_order() -> None:
    lines = EVERYTHING.lines()
    assert attributes.name_of(reversed(lines)) == EVERYTHING.map_name
    assert attributes.ours(EVERYTHING.map_name)
    assert Attributes(med=0).map_name != NO_ATTRIBUTES.map_name
    assert not attributes.ours("HF-mine")
    assert not attributes.ours("hf-0123456789abcdef")
    assert not attributes.ours(EVERYTHING.map_name + "-1")


@pytest.mark.parametrize(
    ("said", "canonical"),
    [
        ("65001:100", "65001:100"),
        ("065001:0100", "65001:100"),
        (str(65001 << 16 | 100), "65001:100"),
        ("65535:666", "blackhole"),
        ("65535:8", "accept-own-nexthop"),
        ("4294967041", "no-export"),
        ("0:1", "0:1"),
    ],
)
def test_communities(said: str, canonical: str) -> None:
    assert attributes.communities([said]) == (canonical,)


@pytest.mark.parametrize(
    "said", ["", "x", "0", "0:0", "internet", "65536:1", "1:65536", "-1:1", "1:2:3", "²:1"]
)
def test_no_communities(said: str) -> None:
    with pytest.raises(ValueError):
        attributes.community_number(said)


@pytest.mark.parametrize("shared", [NO_ATTRIBUTES, EVERYTHING])
@pytest.mark.parametrize("vrf", ["default", "red"])
@pytest.mark.parametrize("key", KEYS)
def test_a_network_and_its_template(shared: Attributes, vrf: str, key: bytes) -> None:
    template = NetworkTemplate(4 if len(key) == 5 else 6, vrf, shared)
    artifact = bgp_network.expand(template, key)
    assert bgp_network.template_of(artifact) == (template, key)
    assert bgp_network.identify(artifact.fields) == (bgp_network.scope(template), key)
    assert bgp_network.identity(artifact.key) == bgp_network.scope(template) + key
    assert set(BGP_NETWORK.fields) - {"other"} <= set(artifact.fields)


def test_a_filter_is_what_its_name_says() -> None:
    lines = ["ip prefix-list @-1 seq 5 permit 10.0.0.0/8", "route-map @ permit 10", "set metric 1",
             "match ip address prefix-list @-1", "route-map @ deny 20"]  # fmt: skip
    made = bgp_filter.bgp_filter("in", lines)
    told: Any = made.fields["lines"]
    assert told[2] == f"match ip address prefix-list {made.key.name}-1"
    assert bgp_filter.is_what_its_name_says(made.key.name, told)
    assert not bgp_filter.is_what_its_name_says(made.key.name, told[:-1])
    other = bgp_filter.bgp_filter("in", [*lines[:1], "route-map @ deny 20", *lines[1:4]])
    assert other.key != made.key
    unnamed = bgp_filter.bgp_filter("", lines)
    assert bgp_filter.is_what_its_name_says(unnamed.key.name, unnamed.fields["lines"])  # type: ignore[arg-type]  # lines


@pytest.mark.parametrize(
    ("field", "before", "after", "effect"),
    [
        ("description", None, "x", ""),
        ("keepalive", None, 3, ""),
        ("bfd", False, True, ""),
        ("bfd_profile", "a", "b", ""),
        ("graceful_shutdown", False, True, ""),
        ("ipv4_unicast", ("activate",), ("activate", "maximum-prefix 5"), ""),
        ("ipv4_unicast", ("activate", "route-map A in"), ("activate", "route-map B in"), ""),
        ("ipv4_unicast", (), ("activate",), "resets its session"),
        (
            "ipv6_unicast",
            ("activate",),
            ("activate", "route-reflector-client"),
            "resets its session",
        ),
        ("ebgp_multihop", None, 2, "resets its session"),
        ("update_source", None, "lo", "resets its session"),
        ("password", None, "scrypt:0", "resets its session"),
        ("ttl_security", 1, None, "resets its session"),
        ("remote_as", "1", "2", "resets its session"),
    ],
)
def test_what_resets_a_session(field: str, before: Any, after: Any, effect: str) -> None:
    peer = bgp_peer.bgp_peer("192.0.2.1", Session())
    operation = Operation(Verb.UPDATE, peer, (), "", changes=(Change(field, before, after),))
    assert BGP_PEER.interrupts(operation) == effect


def test_a_password_is_a_digest_in_fields() -> None:
    said = "letmein"
    peer = bgp_peer.bgp_peer("192.0.2.1", Session(password=said))
    assert said not in repr(peer)
    assert peer.payload == said.encode()
    assert peer.fields["password"] == bgp_peer.password_digest(said)
    assert bgp_peer.bgp_peer("192.0.2.1", Session()).fields["password"] is None


def test_every_field_of_a_kind_is_declared() -> None:
    made: list[tuple[Artifact, tuple[str, ...]]] = [
        (bgp_peer.bgp_peer("eth0", Session(), vrf="red"), BGP_PEER.fields),
        (bgp_peer.bgp_peer_group("g", Session()), bgp_peer.BGP_PEER_GROUP.fields),
        (bgp_network.bgp_aggregate("10.0.0.0/8"), bgp_network.BGP_AGGREGATE.fields),
        (bfd.bfd_peer("192.0.2.1", profile="x"), bfd.BFD_PEER.fields),
        (bfd.profile_of(bfd.Timing()), bfd.BFD_PROFILE.fields),
        (ospf.ospf_interface(2, "eth0", ospf.OspfInterface("0")), ospf.OSPF_INTERFACE.fields),
        (ospf.ospf_prefix("10.0.0.0/8", metric=0), ospf.OSPF_PREFIX.fields),
    ]
    for artifact, fields in made:
        assert set(fields) - {"other"} <= set(artifact.fields), artifact.key


def test_networks_are_planned_by_what_they_are_told_with() -> None:
    """One as declared, one with other attributes, one whose line says more, one that goes."""
    keys = [pack_key(bytes((10, number, 0, 0)), 16) for number in range(5)]
    plain, other = NetworkTemplate(4), NetworkTemplate(4, attributes=EVERYTHING)
    backdoor = NetworkTemplate(4, other="backdoor")
    wanted = BulkIntent("BGPPrefix/a", bgp_network.batch(plain, keys[:4]), "router.yaml:1")
    seen = Networks((plain, keys[0]), (other, keys[1]), (backdoor, keys[2]), (plain, keys[4]))
    made = plan(Desired((wanted,)), Observed(bulk={BGP_NETWORK.name: seen}), {}, Policy())
    done = {
        (op.verb.value, key[2], op.risk.value)
        for op in made.operations
        if isinstance(op.subject, Batch)
        for key in op.subject.keys
    }
    assert done == {
        ("keep", 0, "none"),
        ("update", 1, "low"),
        ("update", 2, "low"),
        ("create", 3, "low"),
        ("delete", 4, "medium"),
    }
