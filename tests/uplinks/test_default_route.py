"""Default route policies, with real connections over two providers."""

from __future__ import annotations

import socket
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv6Address

from holdfast.resources.facts import GONE, Facts, Lease
from tests.firewall.hosts import LONG
from tests.namespace import Namespace
from tests.uplinks.uplink_network import (
    HASHED,
    HEALTH,
    LINKS,
    LTE,
    PORT,
    SERVER,
    SERVER6,
    TARGETS,
    WAN,
    Flow,
    UplinkNetwork,
    facts,
    policy,
)

ROUTER = {**LINKS, **HEALTH, "IPv4DefaultRoutePolicy/default": policy(WAN, LTE)}


def test_lowest_priority_is_taken_and_a_second_pass_has_nothing_to_do(place: UplinkNetwork) -> None:
    assert place.apply(ROUTER).converged
    assert place.way() == "first"
    assert place.plan(ROUTER).changes == ()
    assert place.plan(ROUTER, facts(wan=True, lte=True)).changes == ()


def test_new_flows_move_and_established_ones_stay(place: UplinkNetwork) -> None:
    """What is established stays as long as its own candidate is healthy."""
    place.apply(ROUTER, facts(wan=False, lte=True))
    with Flow.open(place) as flow:
        assert flow.provider == "second"
        report = place.apply(ROUTER, facts(wan=True, lte=True))
        assert {op.kind for op in report.before.changes} == {"nft", "rule"}
        assert place.way() == "first"
        flow.talk()
        assert place.way() == "first"
        place.apply(ROUTER, facts(wan=False, lte=True))
        flow.talk()
        assert place.way() == "second"


def test_flows_of_a_candidate_that_is_down_move(place: UplinkNetwork) -> None:
    place.apply(ROUTER)
    servers = [host.datagrams(SERVER, PORT) for host in place.providers.values()]
    sender = place.client.datagrams("10.1.0.2", 5000)
    first, second = servers
    try:
        sender.sendto(b"one", (SERVER, PORT))
        assert first.recvfrom(64) == (b"one", ("10.1.0.2", 5000))
        first.sendto(b"yes", ("10.1.0.2", 5000))
        assert sender.recv(64) == b"yes"
        place.apply(ROUTER, facts(wan=False, lte=True))
        sender.sendto(b"two", (SERVER, PORT))
        assert second.recvfrom(64) == (b"two", ("10.1.0.2", 5000))
        # It has moved: it does not go back by itself.
        place.apply(ROUTER, facts(wan=True, lte=True))
        sender.sendto(b"three", (SERVER, PORT))
        assert second.recv(64) == b"three"
    finally:
        for one in (*servers, sender):
            one.close()


def test_flows_behind_nat(place: UplinkNetwork) -> None:
    """One that moves gets the address of its new link: the kernel drops a masqueraded connection
    that leaves by another link, and the packet after that begins a new one."""
    nat = (
        "{outboundInterface: %s, sourceCIDRs: [10.0.0.0/8], translation: {type: interfaceAddress}}"
    )
    router = {**ROUTER, "IPv4SourceNAT/wan": nat % "wan", "IPv4SourceNAT/lte": nat % "lte"}
    place.apply(router)
    servers = [host.datagrams(SERVER, PORT) for host in place.providers.values()]
    sender = place.client.datagrams("10.1.0.2", 5000)
    try:
        sender.sendto(b"one", (SERVER, PORT))
        assert servers[0].recvfrom(64)[1][0] == "192.0.2.1"
        with Flow.open(place) as flow:
            place.apply(router, facts(lte=False))
            flow.talk()
        place.apply(router, facts(wan=False))
        sender.sendto(b"lost", (SERVER, PORT))
        sender.sendto(b"two", (SERVER, PORT))
        assert servers[1].recvfrom(64) == (b"two", ("203.0.113.1", 5000))
        with Flow.open(place) as flow:
            assert flow.far.getpeername()[0] == "203.0.113.1"
            place.apply(router, facts(wan=True))
            flow.talk()
    finally:
        for one in (*servers, sender):
            one.close()


def test_unknown_verdicts_count_as_healthy_and_none_healthy_keeps_the_first(
    place: UplinkNetwork,
) -> None:
    place.apply(ROUTER, facts(lte=False))
    assert place.way() == "first"
    report = place.apply(ROUTER, facts(wan=False, lte=False))
    assert report.converged
    assert place.way() == "first"
    held = {one.owner: one.reason for one in report.after.pending}
    assert held.pop("IPv4DefaultRoutePolicy/default") == (
        "no candidate is healthy, wan is kept as the last resort (wan: HealthCheck/wan says: as the"
        " test says; lte: HealthCheck/lte says: as the test says)"
    )
    # What `status` says of the checks themselves.
    assert held == dict.fromkeys(
        ("HealthCheck/wan", "HealthCheck/lte"), "next-hop unhealthy: as the test says"
    )


def test_lans_reach_each_other_and_the_router(place: UplinkNetwork) -> None:
    place.apply(ROUTER)
    with (
        place.neighbour.listen("10.2.0.2", PORT) as listener,
        place.client.connect("10.2.0.2", PORT) as near,
    ):
        far, source = listener.accept()
        assert source[0] == "10.1.0.2"
        near.sendall(b"hello")
        assert far.recv(64) == b"hello"
        far.sendall(b"hello")
        assert near.recv(64) == b"hello"
        far.close()
    with socket.create_server(("10.1.0.1", PORT)), place.client.connect("10.1.0.1", PORT):
        pass
    # And what is on a provider's own network, whichever is the default.
    with place.client.connect("203.0.113.254", PORT):
        provider, far = place.accept()
        far.close()
        assert provider == "second"


def test_the_router_itself_follows(place: UplinkNetwork, netns: Namespace) -> None:
    assert netns.ip("route show default") == ""  # it has no default route but the policy's
    place.apply(ROUTER)
    assert place.router_way() == ("first", "192.0.2.1")
    with socket.socket() as own:
        own.settimeout(LONG)
        own.connect((SERVER, PORT))
        _, far = place.accept()
        far.settimeout(LONG)
        place.apply(ROUTER, facts(wan=True, lte=True))
        down = {**ROUTER, "IPv4DefaultRoutePolicy/default": policy(
            WAN.replace("priority: 10", "priority: 30"), LTE)}  # fmt: skip
        place.apply(down)
        assert place.router_way() == ("second", "203.0.113.1")
        own.sendall(b"still here?")
        assert far.recv(64) == b"still here?"
        far.sendall(b"yes")
        assert own.recv(64) == b"yes"
        far.close()


def test_router_traffic_can_be_left_out(place: UplinkNetwork) -> None:
    left_out = policy(WAN, LTE, more="routerTraffic: false, ")
    place.apply({**ROUTER, "IPv4DefaultRoutePolicy/default": left_out})
    assert place.way() == "first"
    with socket.socket() as own:
        try:
            own.connect((SERVER, PORT))
        except OSError as error:
            assert error.strerror == "Network is unreachable"
        else:
            raise AssertionError("the router has no default route of its own")


def test_connections_from_outside_are_answered_the_way_they_came(place: UplinkNetwork) -> None:
    place.apply(ROUTER)
    second = place.providers["second"]
    for address, listening in (
        ("10.1.0.2", place.client.listen("10.1.0.2", PORT)),
        ("203.0.113.1", socket.create_server(("203.0.113.1", PORT))),
    ):
        with (
            listening as listener,
            second.connect(address, PORT, source=(SERVER, 0)) as outside,
        ):
            far, _ = listener.accept()
            far.sendall(b"hello")
            assert outside.recv(64) == b"hello"
            far.close()


def test_marks_of_others_are_left_alone(place: UplinkNetwork, netns: Namespace) -> None:
    netns.run(
        "nft",
        "add table ip foreign { chain c { type filter hook prerouting priority -160;"
        " ip daddr 198.51.100.9 meta mark set 0x7;"
        " ip daddr 198.51.100.8 ct mark set 0x70; }; }",
    )
    netns.ip("route add default via 203.0.113.254 table 7")
    netns.ip("rule add fwmark 7 lookup 7 priority 5")
    place.apply(ROUTER)
    assert place.way("198.51.100.9") == "second"
    assert place.way("198.51.100.8") == "first"
    place.apply(ROUTER, facts(wan=False))
    assert place.way("198.51.100.8") == "second"


def test_sources_and_destinations(place: UplinkNetwork) -> None:
    policies = {
        "IPv4DefaultRoutePolicy/guests": policy(
            LTE, more="sourceCIDRs: [10.2.0.0/25, 10.2.0.2, 10.2.0.128/25], "
        ),
        "IPv4DefaultRoutePolicy/all": policy(WAN, more="destinationCIDRs: [198.51.100.0/25], "),
    }
    place.apply({**LINKS, **HEALTH, **policies})
    assert place.way(source=place.neighbour) == "second"
    assert place.way() == "first"
    try:
        place.client.connect("198.51.100.200", PORT, wait=LONG)
    except OSError as error:
        assert error.strerror == "Network is unreachable"
    else:
        raise AssertionError("198.51.100.200 is in no policy")


def test_dhcp_gateway(place: UplinkNetwork, netns: Namespace) -> None:
    """Only the candidate that lacks its lease waits; what it had stays until the lease is over."""
    dhcp = WAN.replace("static, gateway: 192.0.2.254", "dhcp4")
    router = {**LINKS, **HEALTH, "IPv4DefaultRoutePolicy/default": policy(dhcp, LTE)}
    report = place.apply(router)
    assert report.converged
    assert [held.reason for held in report.after.pending] == [
        "candidate wan: waits for a DHCP lease on wan0"
    ]
    assert place.way() == "second"
    lease = Lease((IPv4Interface("192.0.2.1/24"),), IPv4Address("192.0.2.254"))
    leased = Facts(leases4={"wan0": lease})
    place.apply(router, leased)
    assert place.way() == "first"
    assert place.plan(router, leased).changes == ()
    with Flow.open(place) as flow:
        assert flow.provider == "first"
        place.apply(router)  # a daemon that has just started knows of no lease
        assert "via 192.0.2.254" in netns.ip("route show table 111")
        flow.talk()
        place.apply(router, Facts(leases4={"wan0": GONE}))
        assert netns.ip("route show table 111") == ""
        assert place.way() == "second"


def test_the_last_resort_is_a_candidate_that_leads_somewhere(
    place: UplinkNetwork, netns: Namespace
) -> None:
    """The second is said to be down and has a gateway; the first lost its own. Flows go there, too:
    on the first they could only end."""
    dhcp = WAN.replace("static, gateway: 192.0.2.254", "dhcp4")
    router = {**LINKS, **HEALTH, "IPv4DefaultRoutePolicy/default": policy(dhcp, LTE)}
    lease = Lease((IPv4Interface("192.0.2.1/24"),), IPv4Address("192.0.2.254"))
    servers = [host.datagrams(SERVER, PORT) for host in place.providers.values()]
    sender = place.client.datagrams("10.1.0.2", 5000)
    try:
        place.apply(router, replace(facts(lte=False), leases4={"wan0": lease}))
        sender.sendto(b"one", (SERVER, PORT))
        assert servers[0].recv(64) == b"one"
        report = place.apply(router, replace(facts(lte=False), leases4={"wan0": GONE}))
        sender.sendto(b"two", (SERVER, PORT))
        assert servers[1].recv(64) == b"two"
    finally:
        for one in (*servers, sender):
            one.close()
    assert netns.ip("route show table 111") == ""
    assert place.way() == "second"
    assert place.router_way() == ("second", "203.0.113.1")
    held = {one.owner: one.reason for one in report.after.pending}
    assert held["IPv4DefaultRoutePolicy/default"].startswith(
        "no candidate is healthy, lte is kept as the last resort (lte: HealthCheck/lte says:"
    )


def test_the_router_follows_while_another_candidate_waits(place: UplinkNetwork) -> None:
    """What waits keeps its own routes, and not the rule of a candidate that went down."""
    waiting = (
        "name: dhcp, interface: lan2, gatewaySource: dhcp4, priority: 30, table: 113, mark: 0x113"
    )
    router = {**ROUTER, "IPv4DefaultRoutePolicy/default": policy(WAN, LTE, waiting)}
    place.apply(router)
    assert place.router_way() == ("first", "192.0.2.1")
    place.apply(router, facts(wan=False))
    assert place.router_way() == ("second", "203.0.113.1")


def test_a_link_that_is_not_there_yet(place: UplinkNetwork, netns: Namespace) -> None:
    missing = "name: ppp, interface: ppp, priority: 5, table: 105, mark: 0x105, healthCheck: wan"
    router = {
        **LINKS, **HEALTH, "Interface/ppp": "{ifname: ppp7, managed: false}",
        "IPv4DefaultRoutePolicy/default": policy(missing, LTE),
    }  # fmt: skip
    report = place.apply(router, facts(wan=False))
    assert place.way() == "second"
    assert any("ppp7" in held.reason for held in report.after.pending)
    assert "via 203.0.113.254" in netns.ip("route show table 112")


def test_ipv6(place: UplinkNetwork) -> None:
    ra = (
        "name: wan, interface: wan, gatewaySource: ra, priority: 10, table: 111, mark: 0x111,"
        " healthCheck: wan"
    )
    lte = LTE.replace("203.0.113.254", '"2001:db8:b::254"')
    router = {**LINKS, **HEALTH, "IPv6DefaultRoutePolicy/default": policy(ra, lte)}
    place.apply(router)
    assert place.way(SERVER6) == "second"
    learned = {("wan0", 6): IPv6Address("2001:db8:a::254")}
    place.apply(router, Facts(gateways=learned))
    with Flow.open(place, SERVER6) as flow:
        assert flow.provider == "first"
        assert place.router_way(SERVER6) == ("first", "2001:db8:a::1")
        after = Facts(gateways=learned, verdicts=facts(wan=False).verdicts)
        assert place.apply(router, after).converged
        assert place.plan(router, after).changes == ()
        assert place.way(SERVER6) == "second"
        assert place.router_way(SERVER6) == ("second", "2001:db8:b::1")
    with (
        place.neighbour.listen("2001:db8:2::2", PORT) as listener,
        place.client.connect("2001:db8:2::2", PORT),
    ):
        listener.accept()[0].close()


def test_a_set_as_a_candidate(place: UplinkNetwork) -> None:
    """While the set is the default its targets share the flows; a candidate after it takes all."""
    spare = LTE.replace("112", "113").replace("priority: 20", "priority: 40")
    balance = f"{{{HASHED}, sourceCIDRs: [0.0.0.0/0], targets: {TARGETS}}}"
    chosen = policy("name: both, routeSet: both, priority: 10, healthCheck: both", spare)
    router = {
        **LINKS, **HEALTH,
        "HealthCheck/both": "{target: 192.0.2.254}",
        "IPv4PolicyRouteSet/both": balance,
        "IPv4DefaultRoutePolicy/default": chosen,
    }  # fmt: skip
    place.apply(router)
    seen = {n: place.way(f"198.51.100.{n}") for n in range(1, 25)}
    assert set(seen.values()) == {"first", "second"}
    over_wan = next(f"198.51.100.{n}" for n, way in seen.items() if way == "first")
    with Flow.open(place, over_wan) as flow:
        assert flow.provider == "first"
        place.apply(router, facts(both=False))
        assert {place.way(f"198.51.100.{n}") for n in range(1, 25)} == {"second"}
        place.apply(router, facts(both=True))
        flow.talk()
    assert {n: place.way(f"198.51.100.{n}") for n in seen} == seen
    assert place.router_way()[0] == "first"
