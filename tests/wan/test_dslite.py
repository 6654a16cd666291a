"""DS-Lite: IPv4 to a real AFTR through a real tunnel."""

from __future__ import annotations

import errno
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.facts.read import read_facts
from holdfast.resources.facts import GONE, Facts, Lookup
from holdfast.resources.questions import lookups
from holdfast.resources.router import load_router
from holdfast.resources.site import site_of
from holdfast.resources.uplinks import health_target
from holdfast.resources.uplinks.health_target import Target
from tests.lan.network import Host, Resources, Scene, document, scene, until
from tests.lanes import needs_link_type
from tests.namespace import Namespace

pytestmark = pytest.mark.uml

AFTRS = ("2001:db8:a::1", "2001:db8:a::2")
INSIDE = "198.51.100.1"  # behind the AFTR
NAME = "gw.example.net"
WAN: Resources = {
    "Interface/wan": {"ifname": "wan0"},
    "IPv6StaticAddress/wan": {"interface": "wan", "address": "2001:db8:1::1/64"},
    "IPv6Route/aftr": {
        "destination": "2001:db8:a::/64", "gateway": "2001:db8:1::fe", "interface": "wan",
    },
}  # fmt: skip
INNER: Resources = {"IPv4StaticAddress/ds": {"interface": "ds", "address": "192.0.0.2/29"}}


def tunnel(**more: Any) -> Resources:
    return {"DSLiteTunnel/ds": {"interface": "wan", "defaultRoute": True, **more}}


def by_name(**more: Any) -> Resources:
    return tunnel(aftrFQDN=NAME, aftrDNSServers=["2001:db8:1::fe"], **more)


@pytest.fixture
def router(netns: Namespace, tmp_path: Path) -> Iterator[Scene]:
    needs_link_type(netns, "ip6tnl")
    with scene(netns, tmp_path) as made:
        yield made


@pytest.fixture
def aftr(router: Scene) -> Host:
    made = router.host("aftr0", "wan0")
    for address in AFTRS:
        made.ip(f"addr add {address}/128 dev lo")
    made.ip("addr add 2001:db8:1::fe/64 dev aftr0 nodad")
    made.ip(f"addr add {INSIDE}/32 dev lo")
    return made


def serve(aftr: Host, address: str, customer: str) -> None:
    """The AFTR's end of one customer's tunnel. Without NAT: the answer goes to where it came
    from."""
    aftr.run("sh", "-c", "ip link del soft0 2>/dev/null; true")
    ends = f"local {address} remote {customer}"
    aftr.ip(f"link add soft0 type ip6tnl mode ipip6 {ends} encaplimit none")
    aftr.ip("link set soft0 up")
    aftr.ip("route add 192.0.0.0/29 dev soft0")


@contextmanager
def name_server(where: Host, *addresses: str) -> Iterator[None]:
    argv = where.command(
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
        "--user=root", "--pid-file=", "--log-facility=-",
        *(f"--host-record={NAME},{address}" for address in addresses),
    )  # fmt: skip
    running = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        until(lambda: where.dig("::1", NAME, "AAAA"), "the name server")
        yield
    finally:
        running.terminate()
        running.wait(20)


def reached() -> bool:
    """Nobody listens there, which it takes the far end to say."""
    with socket.socket() as asking:
        asking.settimeout(5)
        return asking.connect_ex((INSIDE, 9)) == errno.ECONNREFUSED


def learned(router: Scene, resources: Resources) -> Facts:
    return read_facts(router.paths, lookups(router.load(resources)))


def shown(netns: Namespace, name: str = "ds") -> dict[str, Any]:
    (link,) = netns.ip_json(f"-d link show {name}")
    ends: dict[str, Any] = link["linkinfo"]["info_data"]
    return {**ends, "mtu": link["mtu"], "ifindex": link["ifindex"]}


def links(netns: Namespace) -> set[str]:
    return {link["ifname"] for link in netns.ip_json("link show")}


def test_a_tunnel_from_its_start_to_its_end(router: Scene, aftr: Host, netns: Namespace) -> None:
    serve(aftr, AFTRS[0], "2001:db8:1::1")
    declared = {**WAN, **tunnel(remoteAddress=AFTRS[0]), **INNER}
    router.converge(declared)
    before = shown(netns)
    assert (before["local"], before["remote"], before["mtu"]) == ("2001:db8:1::1", AFTRS[0], 1454)
    (default,) = netns.ip_json("-4 route show default")
    assert (default["dev"], default["metric"], default["protocol"]) == ("ds", 50, "72")
    assert reached()

    # Another AFTR: the same link, and what stands on it stays.
    serve(aftr, AFTRS[1], "2001:db8:1::1")
    assert not reached()
    moved = {**WAN, **tunnel(remoteAddress=AFTRS[1]), **INNER}
    router.converge(moved)
    after = shown(netns)
    assert (after["remote"], after["ifindex"]) == (AFTRS[1], before["ifindex"])
    assert reached()

    # By hand.
    netns.ip(f"link set ds type ip6tnl remote {AFTRS[0]} local 2001:db8:1::1")
    netns.ip("link set ds mtu 1300")
    netns.ip("link set ds down")
    router.converge(moved)
    assert {**shown(netns), "flowinfo": ""} == {**after, "flowinfo": ""}
    assert reached()
    netns.ip("link del ds")
    router.converge(moved)
    assert reached()

    router.converge(WAN)
    assert "ds" not in links(netns)
    assert netns.ip_json("-4 route show default") == []


def test_what_others_have_on_it_keeps_the_tunnel(
    router: Scene, aftr: Host, netns: Namespace
) -> None:
    del aftr  # which makes the link wan0
    router.converge({**WAN, **tunnel(remoteAddress=AFTRS[0])})
    netns.ip("route add 203.0.113.0/24 dev ds proto static")
    report = router.converge(WAN)
    (kept,) = (one for one in report.after.orphans if not one.removed)
    assert kept.reason.startswith("kept: others would lose route 203.0.113.0/24")
    assert "ds" in links(netns)
    netns.ip("route del 203.0.113.0/24 dev ds")
    router.converge(WAN)
    assert "ds" not in links(netns)


def test_an_aftr_by_its_name(router: Scene, aftr: Host, netns: Namespace) -> None:
    declared = {**WAN, **by_name(aftrAddressOrdinal=2), **INNER}
    # Nobody answers, nor is there a way yet: everything else is made.
    report = router.apply(declared, learned(router, declared))
    assert not report.failures
    assert [f"{held.owner} {held.reason}" for held in report.after.pending] == [
        f"DSLiteTunnel/ds waits for the DNS to say where {NAME} is",
        "IPv4StaticAddress/ds waits for link ds: it is not there yet",
        "DSLiteTunnel/ds waits for link ds: it is not there yet",  # the default route
    ]
    assert netns.ip_json("-6 route show 2001:db8:a::/64")
    serve(aftr, AFTRS[1], "2001:db8:1::1")
    with name_server(aftr, *reversed(AFTRS)):
        facts = learned(router, declared)
        assert set(next(iter(facts.answers.values()))) == set(map(IPv6Address, AFTRS))
        router.converge(declared, facts)
    assert shown(netns)["remote"] == AFTRS[1]
    assert reached()
    # Nobody answers any more: the last answer stands.
    router.converge(declared, learned(router, declared))
    # And where there is none, what it made of the last one stays.
    report = router.converge(declared)
    assert "ds" in links(netns)
    assert [str(change) for change in report.before.changes] == []


LAN: Resources = {
    "Interface/lan": {"ifname": "lan0"},
    "IPv6PrefixDelegation/wan": {"interface": "wan"},
    "IPv6DelegatedAddress/lan": {
        "prefixDelegation": "wan", "interface": "lan", "subnetID": 1, "addressSuffix": "::1",
    },
}  # fmt: skip
DELEGATED = {
    "localAddressSource": "delegatedAddress",
    "localDelegatedAddress": "lan",
    "localAddressSuffix": "::100",
}


def test_a_local_end_of_a_delegated_prefix(router: Scene, aftr: Host, netns: Namespace) -> None:
    netns.veth("lan0", "lan0p")
    own, other = "2001:db8:1000:1::100", "2001:db8:2000:1::100"
    for prefix in ("2001:db8:1000::/56", "2001:db8:2000::/56"):
        aftr.ip(f"-6 route add {prefix} via 2001:db8:1::1")
    declared = {**WAN, **LAN, **tunnel(remoteAddress=AFTRS[0], **DELEGATED), **INNER}
    report = router.apply(declared)
    waits = {(held.owner, held.reason) for held in report.after.pending}
    assert ("DSLiteTunnel/ds", "waits for a delegated prefix on wan0") in waits
    serve(aftr, AFTRS[0], own)
    first = Facts(delegations={"wan0": (IPv6Network("2001:db8:1000::/56"),)})
    router.converge(declared, first)
    assert _addresses(netns) == {"2001:db8:1000:1::1/64", f"{own}/128"}
    before = shown(netns)
    assert before["local"] == own
    until(reached, "an answer")  # the address is tentative at first

    # Another prefix: the tunnel moves with its address.
    serve(aftr, AFTRS[0], other)
    second = Facts(delegations={"wan0": (IPv6Network("2001:db8:2000::/56"),)})
    router.converge(declared, second)
    assert _addresses(netns) == {"2001:db8:2000:1::1/64", f"{other}/128"}
    assert shown(netns)["ifindex"] == before["ifindex"]
    until(reached, "an answer")  # the address is tentative at first

    # None any more: what was made of it goes.
    router.converge(declared, Facts(delegations={"wan0": GONE}))
    assert _addresses(netns) == set()
    assert "ds" not in links(netns)

    router.converge(declared, second)
    until(reached, "an answer")  # the address is tentative at first
    router.converge({**WAN, **LAN}, second)
    assert _addresses(netns) == {"2001:db8:2000:1::1/64"}
    assert "ds" not in links(netns)


def _addresses(netns: Namespace) -> set[str]:
    (link,) = netns.ip_json("-6 addr show lan0")
    found = (f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"])
    return {one for one in found if not one.startswith("fe80")}


def test_two_tunnels(router: Scene, aftr: Host, netns: Namespace) -> None:
    del aftr  # which makes the link wan0
    declared = {
        **WAN,
        "DSLiteTunnel/a": {"interface": "wan", "remoteAddress": AFTRS[0], "defaultRoute": True},
        "DSLiteTunnel/b": {
            "interface": "wan", "tunnelName": "ds-b", "remoteAddress": AFTRS[1], "mtu": 1460,
            "defaultRoute": True, "routeMetric": 60, "encapsulationLimit": 4,
        },
    }  # fmt: skip
    router.converge(declared)
    assert shown(netns, "ds-b")["mtu"] == 1460
    defaults = netns.ip_json("-4 route show default")
    assert {(one["dev"], one["metric"]) for one in defaults} == {("a", 50), ("ds-b", 60)}
    # The ends of the two change places, by way of a third.
    declared["DSLiteTunnel/a"] = {**declared["DSLiteTunnel/a"], "remoteAddress": "2001:db8:a::3"}
    router.converge(declared)
    declared["DSLiteTunnel/b"] = {**declared["DSLiteTunnel/b"], "remoteAddress": AFTRS[0]}
    router.converge(declared)
    assert shown(netns, "ds-b")["remote"] == AFTRS[0]


LOOKUP = Lookup(NAME, 6, ("2001:db8:1::fe",))
CHECK: Resources = {"HealthCheck/ds": {"interface": "ds", "targetSource": "dsliteRemote"}}


@pytest.mark.parametrize(
    ("more", "facts", "wanted"),
    [
        ({"remoteAddress": AFTRS[0]}, Facts(), AFTRS[0]),
        ({"aftrFQDN": NAME, "aftrDNSServers": ["2001:db8:1::fe"]}, Facts(), None),
        (
            {"aftrFQDN": NAME, "aftrDNSServers": ["2001:db8:1::fe"], "aftrAddressOrdinal": 4,
             "aftrAddressSelection": "ordinalModulo"},
            Facts(answers={LOOKUP: tuple(map(IPv6Address, AFTRS))}),
            AFTRS[1],
        ),
        (
            {"aftrFQDN": NAME, "aftrDNSServers": ["2001:db8:1::fe"], "aftrAddressOrdinal": 4},
            Facts(answers={LOOKUP: tuple(map(IPv6Address, AFTRS))}),
            None,
        ),
    ],
)  # fmt: skip
def test_a_health_check_asks_the_aftr_beside_the_tunnel(
    tmp_path: Path, more: dict[str, Any], facts: Facts, wanted: str | None
) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(document({**WAN, **tunnel(**more), **CHECK}))
    router = load_router(path)
    (check,) = (one for one in router.resources if one.kind == "HealthCheck")
    found = health_target.target(check, site_of(router.resources, facts))
    if wanted is None:
        assert found == "the far end of ds is not known yet"
    else:
        assert found == Target("ping", IPv6Address(wanted))


def test_the_address_that_lasts_is_the_local_end(
    router: Scene, aftr: Host, netns: Namespace
) -> None:
    """A unique local one would not do, though it is listed first."""
    del aftr  # which makes the link wan0
    netns.ip("addr add fd00::1/64 dev wan0 nodad")
    netns.ip("addr add 2001:db8:9::9/64 dev wan0 nodad")
    declared = {"Interface/wan": {"ifname": "wan0"}, **tunnel(remoteAddress=AFTRS[0])}
    facts = learned(router, declared)
    assert IPv6Interface("fd00::1/64") in facts.addresses["wan0"]
    router.converge(declared, facts)
    assert shown(netns)["local"] == "2001:db8:9::9"
