"""Facts that a real kernel has."""

from __future__ import annotations

import fcntl
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from pathlib import Path

import pytest

from holdfast.errors import DriverError
from holdfast.host.facts import kernel
from holdfast.host.facts.read import read_facts
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.resources.facts import Lease
from tests.namespace import Namespace

_TUNSETIFF, _TUNSETLINK = 0x400454CA, 0x400454CD
_IFF_TUN_NO_PI = 0x1001
_ARPHRD_PPP = 512


@pytest.fixture
def paths(root: Path) -> Paths:
    root.mkdir()
    return Paths(root)


@pytest.fixture
def ppp(netns: Namespace) -> Iterator[str]:
    """A link that says it is PPP, which is all that the kernel has to tell of one."""
    del netns  # where it is made
    device = os.open("/dev/net/tun", os.O_RDWR)
    try:
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH14x", b"ppp7", _IFF_TUN_NO_PI))
        fcntl.ioctl(device, _TUNSETLINK, _ARPHRD_PPP)
        yield "ppp7"
    finally:
        os.close(device)


def test_addresses_mtus_and_hardware_addresses(netns: Namespace, paths: Paths) -> None:
    netns.veth("wan0", "isp0", "192.0.2.1/24", "192.0.2.2/24", "2001:db8::1/64")
    netns.ip("link set wan0 mtu 1400 address 02:00:5e:10:00:01 addrgenmode none")
    facts = read_facts(paths, ())
    assert set(facts.addresses["wan0"]) >= {
        IPv4Interface("192.0.2.1/24"),
        IPv4Interface("192.0.2.2/24"),
        IPv6Interface("2001:db8::1/64"),
    }
    assert facts.mtus["wan0"] == 1400
    assert facts.macs["wan0"] == "02:00:5e:10:00:01"
    assert "lo" not in facts.macs
    assert facts.addresses["lo"][0] == IPv4Interface("127.0.0.1/8")
    assert facts.troubles == ()
    assert facts.sessions == {}


def test_default_gateways(netns: Namespace, paths: Paths) -> None:
    netns.veth("wan0", "isp0", "192.0.2.1/24", "2001:db8::1/64")
    netns.veth("wan1", "isp1", "198.51.100.1/24")
    for route in (
        "default via 192.0.2.254 dev wan0 proto dhcp metric 100",
        "default via 192.0.2.253 dev wan0 proto static metric 50",
        "default via 198.51.100.254 dev wan1 proto ra metric 10",
        # Not the main table, not a default, not over a gateway, of a routing daemon.
        "default via 198.51.100.253 dev wan1 table 100 metric 1",
        "10.0.0.0/8 via 192.0.2.252 dev wan0",
        "default dev wan0 metric 5",
        "default via 198.51.100.252 dev wan1 proto bgp metric 1",
    ):
        netns.ip(f"route add {route}")
    netns.ip("-6 route add default via fe80::1 dev wan0 proto ra")
    assert read_facts(paths, ()).gateways == {
        ("wan0", 4): IPv4Address("192.0.2.253"),
        ("wan1", 4): IPv4Address("198.51.100.254"),
        ("wan0", 6): IPv6Address("fe80::1"),
    }
    sock = NetlinkSocket()
    try:
        found = kernel.read_gateways(sock, 4)
    finally:
        sock.close()
    assert {key: route.protocol for key, route in found.items()} == {
        ("wan0", 4): "static",
        ("wan1", 4): "ra",
    }


def test_a_gateway_of_several_nexthops(netns: Namespace, paths: Paths) -> None:
    netns.veth("wan0", "isp0", "192.0.2.1/24")
    netns.veth("wan1", "isp1", "198.51.100.1/24")
    netns.ip(
        "route add default nexthop via 192.0.2.254 dev wan0 nexthop via 198.51.100.254 dev wan1"
    )
    assert read_facts(paths, ()).gateways == {
        ("wan0", 4): IPv4Address("192.0.2.254"),
        ("wan1", 4): IPv4Address("198.51.100.254"),
    }


def test_a_ppp_session(netns: Namespace, paths: Paths, ppp: str) -> None:
    assert read_facts(paths, ()).sessions == {}
    netns.ip(f"addr add 203.0.113.7 peer 203.0.113.1 dev {ppp}")
    servers = paths.under("/etc/ppp/resolv.conf")
    servers.parent.mkdir(parents=True)
    servers.write_text("nameserver 203.0.113.53\nnameserver 127.0.0.1\nnameserver x\nsearch y\n")
    lease = Lease(
        (IPv4Interface("203.0.113.7/32"),),
        IPv4Address("203.0.113.1"),
        (IPv4Address("203.0.113.53"),),
    )
    assert read_facts(paths, ()).sessions == {ppp: lease}
    # What was said of this very session comes first.
    own = paths.under(f"/run/holdfast/ppp/{ppp}.servers")
    own.parent.mkdir(parents=True)
    own.write_text("nameserver 203.0.113.54\nnameserver \n")
    dns = (IPv4Address("203.0.113.54"),)
    assert read_facts(paths, ()).sessions == {ppp: replace(lease, dns=dns)}


def test_what_cannot_be_read_is_unknown(
    netns: Namespace, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    netns.veth("wan0", "isp0", "192.0.2.1/24")

    def fail(*_arguments: object, **_named: object) -> None:
        raise DriverError("cannot read IPv4 routes: No buffer space available (ENOBUFS)")

    monkeypatch.setattr(kernel, "dump_runs", fail)
    facts = read_facts(paths, ())
    assert IPv4Interface("192.0.2.1/24") in facts.addresses["wan0"]
    assert facts.gateways == {}
    assert facts.troubles == ("cannot read IPv4 routes: No buffer space available (ENOBUFS)",)


def test_verdicts(netns: Namespace, paths: Paths) -> None:
    del netns
    path = paths.under("/run/holdfast/verdicts.json")
    path.parent.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    verdict = {"a": {"healthy": True, "reason": "3 of 3"}}
    path.write_text(json.dumps({"boot_id": boot, "verdicts": verdict}))
    assert read_facts(paths, ()).verdicts["a"].healthy
    path.write_text(json.dumps({"boot_id": "another", "verdicts": verdict}))
    assert read_facts(paths, ()).verdicts == {}
    for bad in ("", "[]", "{}", json.dumps({"boot_id": boot, "verdicts": {"a": 1}})):
        path.write_text(bad)
        facts = read_facts(paths, ())
        assert facts.verdicts == {}
        assert facts.troubles == (f"{path} is not a list of verdicts",)
