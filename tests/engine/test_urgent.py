"""What is put back at once however often others undo it, and what can wait."""

from __future__ import annotations

from ipaddress import ip_address, ip_interface

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds import KINDS, nft, route
from holdfast.engine.kinds.address import LOST, address
from holdfast.engine.kinds.file import file
from holdfast.engine.kinds.hostname import hostname
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.neighbour import neighbour
from holdfast.engine.kinds.nft import nft_table
from holdfast.engine.kinds.route import Nexthop, pack_key
from holdfast.engine.kinds.rule import rule
from holdfast.engine.kinds.service import Unit, dhcp_client, service
from holdfast.engine.kinds.sysctl import sysctl
from holdfast.engine.kinds.wireguard import wireguard
from holdfast.engine.plan import Change, Operation, Verb

LAN = address(ip_interface("192.0.2.1/24"), "lan0")
BRIDGE = link("br0", {"type": "bridge", "up": True})
DEFAULT, OTHER = pack_key(bytes(4), 0), pack_key(bytes((10, 1, 0, 0)), 16)


def to(key: bytes, kind: str = "unicast") -> Artifact:
    legs = (Nexthop(dev="wan0"),) if kind == "unicast" else ()
    return route.expand(route.template(4, nexthops=legs, kind=kind), key)


def deleted(artifact: Artifact) -> str:
    return KINDS[artifact.key.kind].urgent(artifact, Operation(Verb.CREATE, artifact, ("X/x",), ""))


def changed(artifact: Artifact, *changes: Change) -> str:
    operation = Operation(Verb.UPDATE, artifact, ("X/x",), "", changes=changes)
    return KINDS[artifact.key.kind].urgent(artifact, operation)


@pytest.mark.parametrize(
    ("artifact", "suffers"),
    [
        (LAN, "IPv4 on lan0"),
        (BRIDGE, "what is behind br0"),
        (neighbour(ip_address("192.0.2.254"), "wan0", ""), "what goes to 192.0.2.254 dev wan0"),
        (nft_table(*nft.FILTER, ""), "the firewall"),
        (nft_table("ip", "holdfast_policy", ""), "what ip holdfast_policy does"),
        (to(DEFAULT), "the IPv4 way out"),
        (to(DEFAULT, "blackhole"), "what is to be held back"),
        (rule(4, 100, table=100), "the way by table 100"),
        (rule(6, 100, action="prohibit"), "what is to be held back"),
        (sysctl("net.ipv4.ip_forward", "1"), "forwarding"),
        (sysctl("net.ipv6.conf.eth0/10.forwarding", "1"), "forwarding"),
        (sysctl("net.ipv4.conf.all.rp_filter", "1"), "which packets are let in"),
        (sysctl("net.ipv6.conf.wan0.accept_ra", "2"), "IPv6"),
        (sysctl("net.ipv6.conf.wan0.disable_ipv6", "0"), "IPv6"),
        (wireguard("wg0", "", "", ()), "the tunnel wg0"),
    ],
    ids=lambda value: str(value.key) if isinstance(value, Artifact) else "",
)
def test_what_cannot_wait(artifact: Artifact, suffers: str) -> None:
    assert deleted(artifact) == suffers


@pytest.mark.parametrize(
    "artifact",
    [
        to(OTHER),
        sysctl("net.core.somaxconn", "9"),
        sysctl("kernel.forwarding", "1"),
        file("/etc/x", b""),
        hostname("x"),
        service(Unit(dhcp_client(4, "wan0"), "", ("/bin/true",))),
    ],
    ids=lambda artifact: str(artifact.key),
)
def test_what_can_wait(artifact: Artifact) -> None:
    assert deleted(artifact) == ""


@pytest.mark.parametrize("field", ["up", "master", "vlan_filtering"])
def test_a_link_that_leads_nowhere(field: str) -> None:
    assert changed(BRIDGE, Change(field, False, True), Change("mtu", 1400, 1500))


@pytest.mark.parametrize("field", ["mtu", "mac", "alias"])
def test_a_link_that_carries_on(field: str) -> None:
    assert changed(BRIDGE, Change(field, "a", "b")) == ""


def test_an_address_that_is_there() -> None:
    assert changed(LAN, Change("no_prefix_route", LOST, False)) == "IPv4 on lan0"
    assert changed(LAN, Change("duplicate", True, None)) == ""
