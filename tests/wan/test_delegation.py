"""A delegated prefix on the networks inside, by the real command with its real services."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from ipaddress import IPv6Network
from pathlib import Path

import pytest

from holdfast.host.facts.read import read_facts
from holdfast.paths import Paths
from holdfast.resources.facts import GONE, Lease
from tests.cli.conftest import Holdfast
from tests.host.services.service_passes import ServicePasses
from tests.namespace import Namespace
from tests.wan.isp import Provider, wait_for

Declared = tuple[str, str, str]

INTERFACES: tuple[Declared, ...] = (
    ("Interface", "wan", "{ifname: wan0, managed: false}"),
    ("Interface", "lan", "{ifname: lan0, managed: false}"),
)
PREFIX: Declared = ("IPv6PrefixDelegation", "wan", "{interface: wan, required: true}")
LAN: Declared = (
    "IPv6DelegatedAddress",
    "lan",
    "{prefixDelegation: wan, interface: lan, subnetID: 0x2, addressSuffix: '::1'}",
)
ALL = (*INTERFACES, PREFIX, LAN)
FIRST, SECOND = "2001:db8:1000:2::1/64", "2001:db8:2000:2::1/64"


@pytest.fixture
def holdfast(isp: Provider, netns: Namespace, tmp_path: Path, root: Path) -> Iterator[Holdfast]:
    del isp  # which makes the link wan0
    netns.veth("lan0", "lan1")
    folder = tmp_path / "work"
    folder.mkdir()
    try:
        yield Holdfast(folder, root)
    finally:
        ServicePasses(root).end()


def addresses(netns: Namespace, dev: str = "lan0") -> set[str]:
    return {
        f"{one['local']}/{one['prefixlen']}"
        for link in netns.ip_json(f"-6 addr show dev {dev}")
        for one in link["addr_info"]
        if one["scope"] == "global"
    }


def nowhere(netns: Namespace) -> set[str]:
    """The unreachable prefixes of ours."""
    return {route["dst"] for route in netns.ip_json("-6 route show type unreachable proto 72")}


def known(holdfast: Holdfast) -> object:
    return read_facts(Paths(holdfast.root), ()).delegations.get("wan0")


def bring_up(holdfast: Holdfast, isp: Provider) -> None:
    """Until the address in the first prefix is there."""
    isp.serve6()
    holdfast.declare(*ALL)
    holdfast.run("apply", "--yes", "router.yaml")
    wait_for(lambda: isinstance(known(holdfast), tuple), "a prefix")
    holdfast.ok("apply", "--yes", "router.yaml")


def test_from_nothing_to_an_address_and_back(
    holdfast: Holdfast, isp: Provider, netns: Namespace
) -> None:
    holdfast.declare(*ALL)
    first = holdfast.run("apply", "--yes", "router.yaml")
    assert first.code == 1, first.out + first.err
    assert "IPv6PrefixDelegation/wan" in first.out
    assert "waits for a delegated prefix on wan0" in first.out
    assert "Not converged: 2 pending" in first.out

    isp.serve6()
    wait_for(lambda: isinstance(known(holdfast), tuple), "a prefix")
    holdfast.ok("apply", "--yes", "router.yaml")
    assert addresses(netns) == {FIRST}
    assert nowhere(netns) == {"2001:db8:1000::/61", "2001:db8:1000:8::/61"}
    assert "nothing to do" in holdfast.ok("plan", "router.yaml").out

    netns.ip(f"addr del {FIRST} dev lan0")
    netns.ip("route del unreachable 2001:db8:1000:8::/61 proto 72")
    holdfast.ok("apply", "--yes", "router.yaml")
    assert addresses(netns) == {FIRST}
    assert nowhere(netns) == {"2001:db8:1000::/61", "2001:db8:1000:8::/61"}

    holdfast.declare(*INTERFACES)
    holdfast.ok("apply", "--yes", "router.yaml", "--allow-mass-delete")
    assert addresses(netns) == set()
    assert nowhere(netns) == set()
    assert not list((holdfast.root / "etc/holdfast").glob("dhcpcd*"))
    assert ServicePasses(holdfast.root).running("dhcpcd6-wan0") is None
    # dhcpcd took its own along.
    assert netns.ip_json("-6 route show type unreachable") == []


def test_another_prefix_takes_the_place_of_the_first(
    holdfast: Holdfast, isp: Provider, netns: Namespace
) -> None:
    bring_up(holdfast, isp)
    isp.stop("kea-dhcp6")
    # The client asks again, and learns that what it has is not to be had any more.
    isp.run("ip", "link", "set", "isp0", "down")
    wait_for(
        lambda: "carrier lost" in ServicePasses(holdfast.root).log("dhcpcd6-wan0"), "no carrier"
    )
    isp.run("ip", "link", "set", "isp0", "up")
    isp.serve6(prefixes="2001:db8:2000::/60")
    wait_for(lambda: "2001:db8:2000::" in str(known(holdfast)), "the new prefix")
    holdfast.ok("apply", "--yes", "router.yaml")
    assert addresses(netns) == {SECOND}
    assert nowhere(netns) == {"2001:db8:2000::/61", "2001:db8:2000:8::/61"}


def test_what_a_lost_prefix_led_to_is_removed(
    holdfast: Holdfast, isp: Provider, netns: Namespace
) -> None:
    isp.serve6(lifetime=12)
    holdfast.declare(*ALL)
    holdfast.run("apply", "--yes", "router.yaml")
    wait_for(lambda: isinstance(known(holdfast), tuple), "a prefix")
    holdfast.ok("apply", "--yes", "router.yaml")
    assert addresses(netns) == {FIRST}
    isp.stop("kea-dhcp6")
    wait_for(lambda: known(holdfast) is GONE, "the end of the prefix")
    lost = holdfast.run("apply", "--yes", "router.yaml", "--allow-mass-delete")
    assert lost.code == 1, lost.out + lost.err
    assert "none is given at present" in lost.out
    assert addresses(netns) == set()
    assert nowhere(netns) == set()


def test_what_is_unknown_stays(holdfast: Holdfast, isp: Provider, netns: Namespace) -> None:
    bring_up(holdfast, isp)
    for lease in (holdfast.root / "run/holdfast/leases").iterdir():
        lease.unlink()
    again = holdfast.run("apply", "--yes", "router.yaml")
    assert "waits for a delegated prefix on wan0" in again.out
    assert addresses(netns) == {FIRST}
    assert nowhere(netns) == {"2001:db8:1000::/61", "2001:db8:1000:8::/61"}


def test_a_client_that_is_killed_is_back_with_the_same_prefix(
    holdfast: Holdfast, isp: Provider, netns: Namespace
) -> None:
    bring_up(holdfast, isp)
    stage = ServicePasses(holdfast.root)
    killed = stage.pid("dhcpcd6-wan0")
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: not stage.runs_as("dhcpcd6-wan0", killed), "its end")
    holdfast.ok("apply", "--yes", "router.yaml")
    assert addresses(netns) == {FIRST}
    wait_for(lambda: stage.running("dhcpcd6-wan0"), "another one")
    log = stage.log("dhcpcd6-wan0")
    wait_for(lambda: stage.log("dhcpcd6-wan0").count("delegated prefix") > 1, log)
    assert known(holdfast) == (IPv6Network("2001:db8:1000::/60"),)
    assert "nothing to do" in holdfast.ok("plan", "router.yaml").out


def test_a_prefix_asked_for_later(holdfast: Holdfast, isp: Provider) -> None:
    isp.serve6()
    address = ("IPv6DHCPAddress", "wan", "{interface: wan, required: true}")
    holdfast.declare(*INTERFACES, address)
    holdfast.run("apply", "--yes", "router.yaml")
    wait_for(lambda: read_facts(Paths(holdfast.root), ()).leases6, "an address")
    stage = ServicePasses(holdfast.root)
    client = stage.pid("dhcpcd6-wan0")
    holdfast.declare(*INTERFACES, address, PREFIX)
    plan = holdfast.ok("plan", "router.yaml").out
    assert "~ service dhcpcd6-wan0" in plan
    holdfast.run("apply", "--yes", "router.yaml")
    wait_for(lambda: isinstance(known(holdfast), tuple), "a prefix")
    # It has read its configuration again, and was not restarted for it.
    assert stage.pid("dhcpcd6-wan0") == client
    holdfast.ok("apply", "--yes", "router.yaml")


def test_a_subnet_outside_of_the_prefix(
    holdfast: Holdfast, isp: Provider, netns: Namespace
) -> None:
    bring_up(holdfast, isp)
    holdfast.declare(*INTERFACES, PREFIX, (LAN[0], LAN[1], LAN[2].replace("0x2", "0x1f")))
    done = holdfast.ok("apply", "--yes", "router.yaml", "--allow-mass-delete")
    said = "subnet 0x1f is outside of the delegated prefix 2001:db8:1000::/60"
    assert f"{said}, which has subnets 0 to 0xf" in done.out
    assert addresses(netns) == set()


def test_a_required_address(holdfast: Holdfast, isp: Provider) -> None:
    required = ("IPv4DHCPAddress", "wan", "{interface: wan, required: true}")
    wanted = ("IPv4DHCPAddress", "wan", "{interface: wan}")
    holdfast.declare(*INTERFACES, wanted)
    done = holdfast.ok("apply", "--yes", "router.yaml")
    assert "waits for an IPv4 address on wan0" in done.out
    holdfast.declare(*INTERFACES, required)
    assert holdfast.run("apply", "--yes", "router.yaml").code == 1
    isp.serve4()
    wait_for(lambda: _leased(holdfast), "a lease")
    assert "Converged" in holdfast.ok("apply", "--yes", "router.yaml").out
    assert "nothing to do" in holdfast.ok("plan", "router.yaml").out
    # What dhcpcd has set is nobody's to delete.
    holdfast.declare(*INTERFACES)
    plan = holdfast.ok("plan", "router.yaml").out
    assert "203.0.113" not in plan


def _leased(holdfast: Holdfast) -> bool:
    return isinstance(read_facts(Paths(holdfast.root), ()).leases4.get("wan0"), Lease)


def test_packets_to_unused_subnets_do_not_go_back(
    holdfast: Holdfast, isp: Provider, netns: Namespace
) -> None:
    bring_up(holdfast, isp)
    netns.ip("-6 route add default via fe80::1 dev wan0")
    # dhcpcd's own goes whenever it is stopped.
    netns.ip("-6 route del unreachable 2001:db8:1000::/60 proto dhcp")
    unused = ["ip", "-6", "route", "get", "2001:db8:1000:7::1"]
    assert b"No route to host" in subprocess.run(unused, capture_output=True, check=False).stderr
    netns.ip("-6 route del unreachable 2001:db8:1000::/61 proto 72")
    assert "dev wan0" in netns.run(*unused)
