"""The way that an operator's connection takes before and after a change: every change that would
lead it elsewhere is refused, and really does lead it elsewhere where it is allowed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.firewall.command import Router
from tests.firewall.home_network import CLIENT, ISP, ROUTER, WAN, WAN6
from tests.firewall.operator_scene import BEHIND, BEHIND6, Scene, scene
from tests.namespace import Namespace

REFUSED = 4
# Others may lose what they have on the links: here it is about the connection alone.
ANYHOW = "--allow-side-effects"
LINKS = {
    "Interface/wan": "{ifname: wan0, managed: false}",
    "Interface/lan": "{ifname: lan0, managed: false}",
}
MANAGED = LINKS | {"Interface/wan": "{ifname: wan0, adminUp: true}"}
NOW = f"answers go `{BEHIND} from {WAN} via {ISP} dev wan0` now, and "


@pytest.fixture
def network(netns: Namespace) -> Iterator[Scene]:
    with scene(netns) as made:
        yield made


@pytest.fixture
def router(tmp_path: Path) -> Router:
    return Router(tmp_path)


def rule(spec: str) -> dict[str, str]:
    return {"RoutingRule/r": f"{{priority: 100, {spec}}}"}


def route(spec: str) -> dict[str, str]:
    return {"IPv4Route/r": f"{{{spec}}}"}


NOT_ANY_MORE: dict[str, tuple[str, dict[str, str], str]] = {
    "prohibit from the router's own address": (
        BEHIND,
        rule(f"from: {WAN}/32, action: prohibit"),
        f"create rule 100: from {WAN}/32 prohibit (RoutingRule/r at router.yaml:14:7), and {NOW}"
        f"`prohibit {BEHIND} from {WAN}` then",
    ),
    "blackhole to the operator": (
        BEHIND,
        rule(f"to: {BEHIND}/32, action: blackhole"),
        f"{NOW}`blackhole {BEHIND} from {WAN}` then",
    ),
    "unreachable, for packets of the router's own": (
        ISP,
        rule("to: 198.51.100.0/24, action: unreachable"),
        f"answers go `{ISP} from {WAN} dev wan0` now, and `unreachable {ISP} from {WAN}` then",
    ),
    "a rule to a table whose default route leads nowhere": (
        BEHIND,
        rule("from: 198.51.100.0/24, table: 100")
        | route("destination: default, type: blackhole, table: 100"),
        f"{NOW}`blackhole {BEHIND} from {WAN}` then",
    ),
    "a rule to a table that leads over another link": (
        BEHIND,
        rule(f"from: {WAN}/32, table: 100")
        | route(f"destination: default, gateway: {CLIENT}, interface: lan, table: 100"),
        f"{NOW}`{BEHIND} from {WAN} via {CLIENT} dev lan0` then",
    ),
    "a host route over another link": (
        BEHIND,
        route(f"destination: {BEHIND}/32, interface: lan"),
        f"create route {BEHIND}/32 (IPv4Route/r at router.yaml:14:7), and {NOW}"
        f"`{BEHIND} from {WAN} dev lan0` then",
    ),
    "a host route over another link, to one who is on the wire": (
        ISP,
        route(f"destination: {ISP}/32, interface: lan"),
        f"`{ISP} from {WAN} dev lan0` then",
    ),
    "another gateway, which nobody is": (
        BEHIND,
        route(f"destination: {BEHIND}/32, gateway: 198.51.100.77"),
        f"`{BEHIND} from {WAN} via 198.51.100.77 dev wan0` then",
    ),
    "a wrong MAC for the gateway": (
        BEHIND,
        {"Neighbour/n": f'{{interface: wan, address: {ISP}, mac: "02:00:00:00:00:77"}}'},
        f"create neighbour {ISP} dev wan0 (Neighbour/n at",
    ),
    "a wrong MAC for the operator": (
        ISP,
        {"Neighbour/n": f'{{interface: wan, address: {ISP}, mac: "02:00:00:00:00:77"}}'},
        "and 02:00:00:00:00:77 then",
    ),
    "the operator's own address": (
        BEHIND,
        {"IPv4StaticAddress/a": f"{{interface: lan, address: {BEHIND}/32}}"},
        f"{NOW}`local {BEHIND} from {WAN}` then",
    ),
    "the operator's network on another link": (
        BEHIND,
        {"IPv4StaticAddress/a": "{interface: lan, address: 203.0.113.1/24}"},
        f"{NOW}`{BEHIND} from {WAN} dev lan0` then",
    ),
    "prohibit from the router's own IPv6 address": (
        BEHIND6,
        rule(f'from: "{WAN6}/128", action: prohibit'),
        f"`prohibit {BEHIND6} from {WAN6}` then",
    ),
    "an MTU that IPv6 does not go with": (
        BEHIND6,
        {"Interface/wan": "{ifname: wan0, adminUp: true, mtu: 1000}"},
        "update link wan0 (mtu 1000)",
    ),
    "no IPv6 on the link": (
        BEHIND6,
        {"Sysctl/s": '{key: net.ipv6.conf.wan0.disable_ipv6, value: "1"}'},
        "update sysctl net.ipv6.conf.wan0.disable_ipv6",
    ),
    "no IPv6 on any link": (
        BEHIND6,
        {"Sysctl/s": '{key: net.ipv6.conf.all.disable_ipv6, value: "1"}'},
        "update sysctl net.ipv6.conf.all.disable_ipv6",
    ),
}


@pytest.mark.parametrize("case", NOT_ANY_MORE)
def test_what_would_cut_the_connection(network: Scene, router: Router, case: str) -> None:
    remote, change, said = NOT_ANY_MORE[case]
    with network.session(remote, WAN6 if ":" in remote else WAN) as session:
        code, told = router.run("apply", LINKS | change, session.ssh, ANYHOW)
        assert (code, said in told) == (REFUSED, True), told
        assert "--allow-lockout" in told
        assert session.passes()
        code, told = router.run("apply", LINKS | change, session.ssh, ANYHOW, "--allow-lockout")
        assert code == 0, told
        assert session.is_cut()


HARMLESS: dict[str, dict[str, str]] = {
    # The kernel goes on with the next rule where a table has no route, or says `throw`.
    "a rule to an empty table": rule(f"from: {WAN}/32, table: 100"),
    "a rule to a table of routes elsewhere": rule(f"from: {WAN}/32, table: 100")
    | route("destination: 10.0.0.0/8, type: blackhole, table: 100"),
    "rules that come after the main table": {
        "RoutingRule/r": f"{{priority: 32765, from: {ROUTER}/32, action: prohibit}}"
    },
    "prohibit for what is marked": rule("fwmark: 7, action: prohibit"),
    "prohibit for what comes in": rule("iif: lan, action: prohibit"),
    "prohibit for sockets that are bound": rule("oif: lan, action: prohibit"),
    "the same way, said closer": route(f"destination: {BEHIND}/32, gateway: {ISP}"),
    "a worse way": route(f"destination: default, gateway: {CLIENT}, interface: lan, metric: 900"),
    "a table that leads the same way": rule(f"from: {WAN}/32, table: 100")
    | route(f"destination: default, gateway: {ISP}, table: 100"),
    "another address": {"IPv4StaticAddress/a": "{interface: wan, address: 198.51.100.3/24}"},
    "the router's address on another link, too": {
        "IPv4StaticAddress/a": f"{{interface: lan, address: {WAN}/32, allowOverlap: true,"
        " allowOverlapReason: anycast}"
    },
    "an MTU": {"Interface/wan": "{ifname: wan0, adminUp: true, mtu: 1400}"},
    "another link's end": {"Interface/lan": "{ifname: lan0, adminUp: false}"},
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_does_not_concern_it(network: Scene, router: Router, case: str) -> None:
    with network.session() as session:
        code, told = router.run("apply", LINKS | HARMLESS[case], session.ssh, ANYHOW)
        assert code == 0, told
        assert session.passes()


BY_MARK = """
table inet marks {
    chain arriving { type filter hook prerouting priority -150; iifname "wan0" ct mark set 7; }
    chain answers { type route hook output priority -150; meta mark set ct mark; }
}
"""


def test_answers_that_go_by_a_mark(network: Scene, router: Router, tmp_path: Path) -> None:
    """As on a router with two providers: the mark of a connection says which one it came by."""
    (tmp_path / "marks.nft").write_text(BY_MARK)
    network.netns.run("nft", "-f", str(tmp_path / "marks.nft"))
    network.netns.ip("rule add priority 50 fwmark 7 lookup 77")
    network.netns.ip(f"route add default via {ISP} table 77")
    network.netns.ip(f"route replace default via {CLIENT}")
    with network.session() as session:
        # What is not marked is not the operator's.
        host = route(f"destination: {BEHIND}/32, interface: lan")
        code, told = router.run("apply", LINKS | host, session.ssh, ANYHOW)
        assert code == 0, told
        assert session.passes()
        ends = {"RoutingRule/r": "{priority: 10, fwmark: 7, action: prohibit}"}
        code, told = router.run("apply", LINKS | host | ends, session.ssh, ANYHOW)
        assert (code, f"{NOW}`prohibit {BEHIND}" in told) == (REFUSED, True), told
        assert session.passes()
        code, told = router.run(
            "apply", LINKS | host | ends, session.ssh, ANYHOW, "--allow-lockout"
        )
        assert code == 0, told
        assert session.is_cut()


def test_the_port_of_a_bridge(netns: Namespace, router: Router) -> None:
    """The one that the operator was last heard on."""
    with scene(netns) as network:
        for command in (
            "link add br0 type bridge",
            "link set wan0 master br0",
            "link set br0 up",
            f"addr del {WAN}/24 dev wan0",
            f"addr add {WAN}/24 dev br0",
            f"route replace default via {ISP} dev br0",
            "link set lan0 master br0",
        ):
            netns.ip(command)
        bridge = {"Interface/br": "{ifname: br0, managed: false}"}
        with network.session() as session:
            down = {"Interface/wan": "{ifname: wan0, adminUp: false}"}
            code, told = router.run("apply", bridge | down, session.ssh, ANYHOW)
            assert (code, "wan0 is down then" in told) == (REFUSED, True), told
            away = {
                "Interface/other": "{ifname: br1, type: bridge}",
                "Interface/wan": "{ifname: wan0, master: other}",
            }
            code, told = router.run("apply", bridge | away, session.ssh, ANYHOW)
            assert (code, "wan0 is no port of br0 then" in told) == (REFUSED, True), told
            other = {"Interface/lan": "{ifname: lan0, adminUp: false}"}
            code, told = router.run("apply", bridge | other, session.ssh, ANYHOW)
            assert code == 0, told
            assert session.passes()
            code, told = router.run("apply", bridge | down, session.ssh, ANYHOW, "--allow-lockout")
            assert code == 0, told
            assert session.is_cut()


TWO = "198.51.101.2"
SECOND = LINKS | {"Interface/two": "{ifname: wan1, managed: false}"}


@pytest.fixture
def two_providers(network: Scene) -> Scene:
    """What is sent to the second provider's address comes in there, and answers leave by the
    first's."""
    there = f"/proc/{os.getpid()}/fd/{network.far.namespace}"
    network.netns.ip(f"link add wan1 type veth peer name isp1 netns {there}")
    network.netns.ip("link set wan1 up")
    network.far.ip("link set isp1 up", "addr add 198.51.101.1/24 dev isp1")
    network.netns.ip(f"addr add {TWO}/24 dev wan1")
    network.netns.ip("route add default via 198.51.101.1 dev wan1 metric 500")
    for name in ("all", "wan0", "wan1"):
        Path(f"/proc/sys/net/ipv4/conf/{name}/rp_filter").write_text("0")
    return network


def filtered(link: str, how: int) -> dict[str, str]:
    return {"Sysctl/filter": f"{{key: net.ipv4.conf.{link}.rp_filter, value: '{how}'}}"}


IN_BY_ANOTHER: dict[str, tuple[dict[str, str], str]] = {
    "the link goes down": (
        {"Interface/two": "{ifname: wan1, adminUp: false}"},
        f"set link wan1 down (Interface/two at router.yaml:14:7), and what is sent to {TWO} may"
        " come in by wan1: wan1 is down then",
    ),
    "the link joins a bridge": (
        {
            "Interface/br": "{ifname: br1, type: bridge}",
            "Interface/two": "{ifname: wan1, master: br}",
        },
        f"what is sent to {TWO} may come in by wan1: what comes in by wan1 is br1's then",
    ),
    "a strict filter on the link": (
        filtered("wan1", 1),
        "wan1, which packets may come in by, drops them then (rp_filter 1)",
    ),
    "a strict filter on all links": (
        filtered("all", 1),
        "wan1, which packets may come in by, drops them then (rp_filter 1)",
    ),
}


@pytest.mark.parametrize("case", IN_BY_ANOTHER)
def test_a_link_that_packets_may_come_in_by(
    two_providers: Scene, router: Router, case: str
) -> None:
    change, said = IN_BY_ANOTHER[case]
    with two_providers.session(local=TWO) as session:
        code, told = router.run("apply", SECOND | change, session.ssh, ANYHOW)
        assert (code, said in told) == (REFUSED, True), told
        assert "this may cut" in told, "nobody can know before"
        assert session.passes()
        code, told = router.run("apply", SECOND | change, session.ssh, ANYHOW, "--allow-lockout")
        assert code == 0, told
        # The kernel keeps the way in of a connection until any route changes.
        two_providers.netns.ip("route flush cache")
        assert session.is_cut()


NOT_IN_BY_ANOTHER: dict[str, tuple[str, dict[str, str]]] = {
    "a loose filter": (TWO, filtered("all", 2)),
    "a strict filter where answers leave": (TWO, filtered("wan0", 1)),
    "a strict filter where packets come and answers leave": (WAN, filtered("all", 1)),
    "the second link, of who comes by the first": (
        WAN,
        {"Interface/two": "{ifname: wan1, adminUp: false}"},
    ),
    "a link that nothing leads to the operator by": (
        ROUTER,
        {"Interface/lan": "{ifname: lan0, adminUp: false}"},
    ),
}


@pytest.mark.parametrize("case", NOT_IN_BY_ANOTHER)
def test_a_link_that_no_packets_come_in_by(two_providers: Scene, router: Router, case: str) -> None:
    local, change = NOT_IN_BY_ANOTHER[case]
    with two_providers.session(local=local) as session:
        code, told = router.run("apply", SECOND | change, session.ssh, ANYHOW)
        assert code == 0, told
        assert session.passes()
