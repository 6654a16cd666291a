"""Policy routes and route sets, with real connections over two providers."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.plan import Operation
from tests.namespace import Namespace
from tests.uplinks.uplink_network import (
    HASHED,
    HEALTH,
    LINKS,
    LTE,
    PORT,
    TARGETS,
    WAN,
    Flow,
    UplinkNetwork,
    everything,
    facts,
    policy,
)

VOICE = (
    "{outboundInterface: lte, gatewaySource: static, gateway: 203.0.113.254, table: 120,"
    " priority: 9000, mark: 0x120, %s}"
)
SET = f"{{{HASHED}, sourceCIDRs: [10.1.0.0/24], destinationCIDRs: [0.0.0.0/0], targets: {TARGETS}}}"
BALANCED = {**LINKS, **HEALTH, "IPv4PolicyRouteSet/both": SET}
SERVERS = [f"198.51.100.{number}" for number in range(1, 65)]


def test_flows_are_spread_over_all_targets_and_each_pair_keeps_its_own(
    place: UplinkNetwork,
) -> None:
    assert place.apply(BALANCED).converged
    assert place.plan(BALANCED).changes == ()
    seen = {server: place.way(server) for server in SERVERS}
    counts = Counter(seen.values())
    # 64 flows by a fair coin: fewer than 16 on one side happens once in 40 000.
    assert min(counts["first"], counts["second"]) >= 16, counts
    assert {server: place.way(server) for server in SERVERS[:16]} == {
        server: seen[server] for server in SERVERS[:16]
    }


def test_a_target_that_is_down_gets_no_new_flows(place: UplinkNetwork) -> None:
    place.apply(BALANCED)
    seen = {server: place.way(server) for server in SERVERS[:16]}
    server = next(server for server, way in seen.items() if way == "second")
    with Flow.open(place, server) as flow:
        place.apply(BALANCED, facts(wan=False, lte=True))
        assert {place.way(server) for server in SERVERS[:16]} == {"second"}
        flow.talk()
        place.apply(BALANCED, facts(wan=False, lte=False))  # none is better than another
        flow.talk()
        assert {server: place.way(server) for server in seen} == seen


def test_flows_stay_when_the_targets_change(place: UplinkNetwork) -> None:
    """With another number of targets the same hash says something else; flows do not care."""
    place.apply(BALANCED, facts(wan=True, lte=False))
    with Flow.open(place, SERVERS[0]) as one, Flow.open(place, SERVERS[1]) as other:
        place.apply(BALANCED, facts(wan=True, lte=True))
        for flow in (one, other):
            assert flow.provider == "first"
            flow.talk()


def test_a_policy_route_goes_before_the_default(place: UplinkNetwork) -> None:
    router = {
        **LINKS, **HEALTH,
        "IPv4DefaultRoutePolicy/default": policy(WAN, LTE),
        "IPv4PolicyRoute/voice": VOICE % "destinationCIDRs: [198.51.100.5, 198.51.100.6]",
    }  # fmt: skip
    assert place.apply(router).converged
    assert place.way("198.51.100.5") == "second"
    assert place.way("198.51.100.7") == "first"
    with Flow.open(place, "198.51.100.6") as flow:
        report = place.apply(router, facts(wan=False))
        # A default route that fails over leaves the other table as it is.
        changed = {
            key.name for op in report.before.changes for key in [_key(op)] if key.kind == "nft"
        }
        assert changed == {"ip holdfast_default_route"}
        place.apply(router, facts(wan=True))
        flow.talk()


def _key(operation: Operation) -> Key:
    assert isinstance(operation.subject, Artifact)
    return operation.subject.key


def test_flows_older_than_the_policy_stay_where_they_are(
    place: UplinkNetwork, netns: Namespace
) -> None:
    netns.ip("route add default via 192.0.2.254")
    # Nothing tracks flows until a rule asks for it, as the NAT of any router does.
    netns.run("nft", "add table ip nat { chain c { type nat hook postrouting priority 100;"
              " oifname lan0 masquerade; }; }")  # fmt: skip
    voice = {**LINKS, "IPv4PolicyRoute/voice": VOICE % "sourceCIDRs: [10.1.0.0/24]"}
    with Flow.open(place) as flow:
        assert flow.provider == "first"
        flow.talk()
        place.apply(voice)
        assert place.way() == "second"
        flow.talk()
    assert place.way(source=place.neighbour) == "first"


DRIFTS = {
    "table": "nft delete table ip holdfast_policy",
    "rule of the table": "nft add rule ip holdfast_policy prerouting drop",
    "mark rule": "ip rule del priority 9000",
    "main rule": "ip rule del priority 8999",
    "route": "ip route del default table 120",
    "other route": "ip route replace default via 192.0.2.254 table 120 metric 50 proto 72",
}


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS)
def test_drift_is_repaired(place: UplinkNetwork, netns: Namespace, drift: str) -> None:
    voice = {**LINKS, "IPv4PolicyRoute/voice": VOICE % "sourceCIDRs: [10.1.0.0/24]"}
    place.apply(voice)
    netns.run(*drift.split())
    report = place.apply(voice)
    assert report.converged
    assert report.before.changes
    assert place.plan(voice).changes == ()
    assert place.way() == "second"
    with place.neighbour.listen("10.2.0.2", PORT), place.client.connect("10.2.0.2", PORT):
        pass


def test_what_is_not_declared_any_more_goes_and_nothing_else(
    place: UplinkNetwork, netns: Namespace
) -> None:
    netns.run(
        "nft", "add table ip foreign { chain c { type nat hook postrouting priority 100; }; }"
    )
    netns.ip("route add 10.9.0.0/16 via 192.0.2.254 table 120")
    netns.ip("rule add fwmark 0x120/0xff0 lookup 120 priority 9000")
    before = everything(netns)
    router = {
        **BALANCED,
        "IPv4PolicyRoute/voice": VOICE % "sourceCIDRs: [10.2.0.0/24]",
        "IPv4DefaultRoutePolicy/default": policy(WAN, LTE),
        "IPv4ReversePathFilter/wan": "{target: interface, interface: wan, mode: loose}",
    }
    place.apply(router, facts(wan=False))
    assert everything(netns) != before
    assert place.apply(LINKS).converged
    assert everything(netns) == before
    assert place.plan(LINKS).changes == ()


def test_one_of_several_is_removed(place: UplinkNetwork, netns: Namespace) -> None:
    """A table that two resources make goes on without the one."""
    first = VOICE % "sourceCIDRs: [10.1.0.0/24]"
    second = first.replace("120", "121").replace("9000", "9002").replace("10.1.", "10.2.")
    place.apply({**LINKS, "IPv4PolicyRoute/one": first, "IPv4PolicyRoute/two": second})
    assert place.way() == place.way(source=place.neighbour) == "second"
    assert place.apply({**LINKS, "IPv4PolicyRoute/two": second}).converged
    assert place.way(source=place.neighbour) == "second"
    assert netns.ip("route show table 120") == ""
    assert "0x120" not in netns.ip("rule show") + netns.run("nft", "list", "ruleset")


def test_a_shared_mark_stays_for_the_other(place: UplinkNetwork, netns: Namespace) -> None:
    one = VOICE % "sourceCIDRs: [10.1.0.0/24]"
    two = VOICE % "sourceCIDRs: [10.2.0.0/24]"
    place.apply({**LINKS, "IPv4PolicyRoute/one": one, "IPv4PolicyRoute/two": two})
    assert netns.ip("rule show").count("fwmark 0x120") == 2
    assert place.apply({**LINKS, "IPv4PolicyRoute/two": two}).converged
    assert place.way(source=place.neighbour) == "second"


def test_reverse_path_filter(place: UplinkNetwork, netns: Namespace) -> None:
    netns.ip("link add name wan0.7 type veth peer name far7")
    wanted = {
        "Interface/wan": "{ifname: wan0.7}",
        "IPv4ReversePathFilter/all": "{target: all, mode: disabled}",
        "IPv4ReversePathFilter/later": "{target: default, mode: strict}",
        "IPv4ReversePathFilter/wan": "{target: interface, interface: wan, mode: loose}",
    }
    setting = "/proc/sys/net/ipv4/conf/wan0.7/rp_filter"
    assert place.apply(wanted).converged
    assert netns.run("cat", setting) == "2\n"
    assert netns.run("cat", "/proc/sys/net/ipv4/conf/default/rp_filter") == "1\n"
    assert place.plan(wanted).changes == ()
    netns.run("sh", "-c", f"echo 1 > {setting}")
    assert place.apply(wanted).converged
    assert netns.run("cat", setting) == "2\n"


def test_strict_reverse_path_filters_are_why_the_kind_exists(place: UplinkNetwork) -> None:
    """Answers that come over a link the main table does not know of are dropped by `strict`."""
    voice = {**LINKS, "IPv4PolicyRoute/voice": VOICE % "sourceCIDRs: [10.1.0.0/24]"}
    strict = "{target: interface, interface: lte, mode: strict}"
    place.apply({**voice, "IPv4ReversePathFilter/lte": strict})
    assert not place.client.reaches("198.51.100.1", PORT)
    place.apply({**voice, "IPv4ReversePathFilter/lte": strict.replace("strict", "disabled")})
    assert place.client.reaches("198.51.100.1", PORT)
