"""Neighbours on the running kernel."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

import pytest

from holdfast.engine import diff
from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.neighbour import NEIGHBOUR, neighbour
from holdfast.engine.plan import Change
from holdfast.host.netlink.neighbours import NeighbourDriver
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request
from tests.host.netlink.drive import (
    TAG,
    create,
    delete,
    error,
    exists,
    look,
    see,
    succeed,
    update,
)
from tests.namespace import Namespace

MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
IPS = ["10.0.0.9", "fd00::9", "fe80::9"]
each_family = pytest.mark.parametrize("ip", IPS)


def at(ip: str, mac: str = MAC, dev: str = "lan") -> Artifact:
    return neighbour(ipaddress.ip_address(ip), dev, mac)


@pytest.fixture
def driver(netns: Namespace) -> Iterator[NeighbourDriver]:
    netns.veth("lan", "lanp")
    sock = NetlinkSocket()
    yield NeighbourDriver(sock, TAG)
    sock.close()


def shown(netns: Namespace) -> str:
    """Every entry but those the kernel makes of itself for multicast."""
    lines = [
        line
        for family in ("-4", "-6")
        for line in netns.ip(f"{family} -N neigh show nud all dev lan").splitlines()
        if not line.startswith("ff02:")
    ]
    return "\n".join(sorted(lines))


@pytest.mark.uml
@each_family
def test_round_trip(driver: NeighbourDriver, netns: Namespace, ip: str) -> None:
    artifact = at(ip)
    succeed(driver, create(artifact))
    seen = see(driver)[artifact.key]
    assert seen.artifact.fields == {**artifact.fields, "protocol": TAG}
    assert (seen.tag, seen.holder, seen.transient) == ("protocol 72", "", False)
    assert f"{ip} lladdr {MAC} PERMANENT proto 72" in shown(netns)
    assert exists(driver, create(artifact))
    succeed(driver, delete(seen.artifact))
    assert see(driver) == {}
    succeed(driver, delete(seen.artifact))


@each_family
@pytest.mark.parametrize("state", ["permanent", "noarp"])
def test_create_never_takes_over(
    driver: NeighbourDriver, netns: Namespace, ip: str, state: str
) -> None:
    netns.ip(f"neigh add {ip} lladdr {OTHER} dev lan nud {state} proto static")
    before = shown(netns)
    assert exists(driver, create(at(ip)))
    assert shown(netns) == before
    seen = look(driver, at(ip))
    assert (seen.tag, seen.holder, seen.transient) == ("", "protocol static", False)


@each_family
@pytest.mark.parametrize("state", ["reachable", "stale", "delay", "probe", "failed", "incomplete"])
def test_what_the_kernel_learned_gives_way(
    driver: NeighbourDriver, netns: Namespace, ip: str, state: str
) -> None:
    mac = "" if state in ("failed", "incomplete") else f"lladdr {OTHER}"
    netns.ip(f"neigh add {ip} {mac} dev lan nud {state}")
    seen = look(driver, at(ip))
    assert (seen.transient, seen.tag, seen.holder) == (True, "", "learned by the kernel")
    succeed(driver, create(at(ip)))
    assert look(driver, at(ip)).artifact.fields == {**at(ip).fields, "protocol": TAG}
    assert f"{ip} lladdr {MAC} PERMANENT proto 72" in shown(netns)


class BetweenSocket(NetlinkSocket):
    """Another program acts at the one moment between our two looks."""

    def get(self, request: Request) -> bytes | NetlinkError:
        Namespace().ip("neigh del 10.0.0.9 dev lan")
        answer = super().get(request)
        Namespace().ip(f"neigh add 10.0.0.9 lladdr {OTHER} dev lan nud permanent proto static")
        return answer


def test_a_foreign_entry_that_comes_at_the_last_moment_stays(netns: Namespace) -> None:
    netns.veth("lan", "lanp")
    netns.ip(f"neigh add 10.0.0.9 lladdr {MAC} dev lan nud stale")
    sock = BetweenSocket()
    assert exists(NeighbourDriver(sock, TAG), create(at("10.0.0.9")))
    sock.close()
    assert f"10.0.0.9 lladdr {OTHER} PERMANENT proto 4" in shown(netns)


def test_a_routing_daemons_entry_is_no_cache_entry(
    driver: NeighbourDriver, netns: Namespace
) -> None:
    netns.ip(f"neigh add 10.0.0.9 lladdr {OTHER} dev lan nud reachable extern_learn proto zebra")
    seen = look(driver, at("10.0.0.9"))
    assert (seen.transient, seen.holder) == (False, "protocol zebra")
    assert exists(driver, create(at("10.0.0.9")))


def test_our_entry_made_dynamic_by_others_is_created_anew(
    driver: NeighbourDriver, netns: Namespace
) -> None:
    """The kernel keeps the tag through that; the entry would age out all the same."""
    succeed(driver, create(at("10.0.0.9")))
    netns.ip(f"neigh change 10.0.0.9 lladdr {MAC} dev lan nud reachable")
    assert "proto 72" in shown(netns)
    assert look(driver, at("10.0.0.9")).transient
    succeed(driver, create(at("10.0.0.9")))
    assert not look(driver, at("10.0.0.9")).transient


@each_family
def test_drift_of_the_mac_is_repaired(driver: NeighbourDriver, netns: Namespace, ip: str) -> None:
    succeed(driver, create(at(ip)))
    netns.ip(f"neigh replace {ip} lladdr {OTHER} dev lan nud permanent")
    drifted = look(driver, at(ip))
    assert (drifted.artifact.fields["mac"], drifted.tag) == (OTHER, "protocol 72")
    succeed(driver, update(at(ip), drifted.artifact))
    assert look(driver, at(ip)).artifact.fields == {**at(ip).fields, "protocol": TAG}


@each_family
def test_drift_of_the_state_is_repaired(driver: NeighbourDriver, netns: Namespace, ip: str) -> None:
    wanted = at(ip)
    succeed(driver, create(wanted))
    assert diff.changes(NEIGHBOUR, wanted.fields, look(driver, wanted).artifact.fields) == ()
    netns.ip(f"neigh change {ip} lladdr {MAC} dev lan nud noarp")
    seen = look(driver, wanted)
    assert seen.tag
    changes = diff.changes(NEIGHBOUR, wanted.fields, seen.artifact.fields)
    assert changes == (Change("state", "noarp", None),)
    succeed(driver, update(wanted, seen.artifact))
    assert f"{ip} lladdr {MAC} PERMANENT proto 72" in shown(netns)


@each_family
def test_what_another_made_since_is_neither_changed_nor_deleted(
    driver: NeighbourDriver, netns: Namespace, ip: str
) -> None:
    """The kernel's delete ignores the protocol it is given, as shown first."""
    netns.ip(f"neigh add {ip} lladdr {MAC} dev lan nud permanent proto static")
    netns.ip(f"neigh del {ip} dev lan proto 72")
    assert "static" not in shown(netns)
    succeed(driver, create(at(ip)))
    planned_for = look(driver, at(ip)).artifact
    netns.ip(f"neigh del {ip} dev lan")
    netns.ip(f"neigh add {ip} lladdr {MAC} dev lan nud permanent proto static")
    before = shown(netns)
    said = "no longer what was planned for: protocol is 4, was 72"
    assert error(driver, delete(planned_for)) == said
    assert error(driver, update(at(ip, OTHER), planned_for)) == said
    assert shown(netns) == before


def test_a_mac_changed_since_is_not_deleted(driver: NeighbourDriver, netns: Namespace) -> None:
    succeed(driver, create(at("10.0.0.9")))
    planned_for = look(driver, at("10.0.0.9")).artifact
    netns.ip(f"neigh replace 10.0.0.9 lladdr {OTHER} dev lan nud permanent")
    assert f"mac is '{OTHER}', was '{MAC}'" in error(driver, delete(planned_for))
    assert OTHER in shown(netns)


def test_a_delete_leaves_alone_what_the_kernel_learned_since(
    driver: NeighbourDriver, netns: Namespace
) -> None:
    succeed(driver, create(at("10.0.0.9")))
    planned_for = look(driver, at("10.0.0.9")).artifact
    netns.ip(f"neigh change 10.0.0.9 lladdr {OTHER} dev lan nud reachable")
    succeed(driver, delete(planned_for))
    assert OTHER in shown(netns)


def test_an_update_of_what_is_gone_creates_it(driver: NeighbourDriver, netns: Namespace) -> None:
    succeed(driver, create(at("10.0.0.9", OTHER)))
    drifted = look(driver, at("10.0.0.9")).artifact
    netns.ip("neigh del 10.0.0.9 dev lan")
    succeed(driver, update(at("10.0.0.9"), drifted))
    assert look(driver, at("10.0.0.9")).artifact.fields["mac"] == MAC


def test_an_adopted_entry_is_changed_and_deleted_as_observed(
    driver: NeighbourDriver, netns: Namespace
) -> None:
    netns.ip(f"neigh add 10.0.0.9 lladdr {OTHER} dev lan nud permanent")
    artifact = at("10.0.0.9")
    seen = see(driver, claimed=[artifact])[artifact.key]
    succeed(driver, update(artifact, seen.artifact))
    tagged = look(driver, artifact)
    assert tagged.tag == "protocol 72"
    succeed(driver, delete(tagged.artifact))
    assert see(driver, artifact) == {}


def test_proxy_entries_are_another_matter(driver: NeighbourDriver, netns: Namespace) -> None:
    netns.ip("neigh add proxy 10.0.0.9 dev lan")
    assert see(driver, at("10.0.0.9")) == {}
    succeed(driver, create(at("10.0.0.9")))
    succeed(driver, delete(look(driver, at("10.0.0.9")).artifact))
    assert "10.0.0.9 dev lan" in netns.ip("neigh show proxy")


def test_a_missing_link_is_named_on_create_and_fine_on_delete(driver: NeighbourDriver) -> None:
    assert error(driver, create(at("10.0.0.9", dev="eth9"))) == "link eth9 does not exist"
    succeed(driver, delete(at("10.0.0.9", dev="eth9")))


def test_foreign_entries_are_reported_only_where_they_matter(
    driver: NeighbourDriver, netns: Namespace
) -> None:
    for last in (1, 2, 3):
        netns.ip(f"neigh add 10.0.0.{last} lladdr {MAC} dev lan nud permanent")
    wanted, claimed = at("10.0.0.1"), at("10.0.0.2")
    assert set(see(driver, wanted, claimed=[claimed])) == {wanted.key, claimed.key}
