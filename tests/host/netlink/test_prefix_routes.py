"""The kernel's own routes to the prefixes of addresses, which anybody can delete alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.engine import diff, risk
from holdfast.engine.artifact import Artifact
from holdfast.engine.driver import Scope
from holdfast.engine.kinds.address import ADDRESS, LOST, matches
from holdfast.engine.plan import Operation, Risk, Verb
from holdfast.host.netlink.addresses.driver import AddressDriver
from holdfast.host.netlink.links.link_names import read_names
from holdfast.host.netlink.routes.route_probe import FEW
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import TAG, at, create, delete, look, see, stamped, succeed
from tests.lanes import needs_link_type
from tests.namespace import Namespace

_RTM_GETROUTE = 26


class Counting(NetlinkSocket):
    """Knows what was dumped."""

    def __init__(self) -> None:
        super().__init__()
        self.dumped: list[int] = []

    def dump_runs(self, kind: int, header: bytes, what: str) -> Any:
        self.dumped.append(kind)
        return super().dump_runs(kind, header, what)


@pytest.fixture
def sock(netns: Namespace) -> Iterator[Counting]:
    for which in ("all", "default"):
        netns.run("sysctl", "-qw", f"net.ipv6.conf.{which}.accept_dad=0")
    netns.veth("lan", "lanp")
    netns.veth("wan", "wanp")
    # The kernel gives links their own addresses when it gets to it.
    deadline = time.monotonic() + 30
    while len(netns.ip("-6 route show fe80::/64").splitlines()) < 4:
        assert time.monotonic() < deadline, netns.ip("addr")
        time.sleep(0.01)
    sock = Counting()
    yield sock
    sock.close()


@pytest.fixture
def driver(sock: Counting) -> AddressDriver:
    return AddressDriver(sock, TAG)


def routes(netns: Namespace) -> list[str]:
    """All that lead anywhere; those to the machine itself come when the kernel gets to it."""
    told = (netns.ip(f"-d {family} route show table all") for family in ("-4", "-6"))
    lines = (line for text in told for line in text.splitlines())
    # What is said of the moment is another matter.
    return sorted(line.replace(" linkdown", "").strip() for line in lines if line[0] == "u")


def drifted(driver: AddressDriver, *wanted: Artifact) -> list[Operation]:
    """What a pass would do about addresses that are there."""
    seen = driver.observe(Scope(frozenset(one.key for one in wanted))).sightings
    found = [repair(one, seen[one.key][0].artifact) for one in wanted]
    return [op for op in found if op.changes]


def repair(wanted: Artifact, seen: Artifact) -> Operation:
    changes = diff.changes(ADDRESS, wanted.fields, seen.fields)
    return Operation(Verb.UPDATE, wanted, ("Test/it",), "drifted", changes=changes, observed=seen)


def changed(operations: list[Operation]) -> list[tuple[str, Any, Any]]:
    return [(one.field, one.before, one.after) for op in operations for one in op.changes]


CUT_OFF = [("no_prefix_route", LOST, False)]


@pytest.mark.uml
@pytest.mark.parametrize(
    "text", ["192.0.2.1/24", "192.0.2.0/31", "10.1.2.3/8", "2001:db8::1/64", "fe80::42/64"]
)
def test_a_deleted_prefix_route_is_put_back_as_it_was(
    driver: AddressDriver, netns: Namespace, text: str
) -> None:
    mine = at(text, "lan")
    clean = routes(netns)
    succeed(driver, create(mine))
    before = routes(netns)
    assert drifted(driver, mine) == []
    version = "-6" if ":" in text else "-4"
    netns.ip(f"{version} route flush table main dev lan")
    found = drifted(driver, mine)
    assert changed(found) == CUT_OFF
    assert risk.assess(Verb.UPDATE, mine, found[0].changes)[0] is Risk.LOW
    succeed(driver, *found)
    assert routes(netns) == before
    assert drifted(driver, mine) == []
    # The kernel takes it for its own: nothing of it stays behind.
    succeed(driver, delete(look(driver, mine).artifact))
    assert [one for one in routes(netns) if one not in clean] == []


def test_in_ipv6_neighbours_have_link_local_addresses_too(
    driver: AddressDriver, netns: Namespace
) -> None:
    mine = at("fd00::1/64", "lan")
    succeed(driver, create(mine))
    before = routes(netns)
    netns.ip("-6 route del fe80::/64 dev lan")
    found = drifted(driver, mine)
    assert changed(found) == CUT_OFF
    succeed(driver, *found)
    assert routes(netns) == before


def test_of_several_in_one_prefix_one_route_leads_to_it(
    driver: AddressDriver, netns: Namespace
) -> None:
    mine = [
        at(text, "lan") for text in ("192.0.2.1/24", "192.0.2.2/24", "fd00::1/64", "fd00::2/64")
    ]
    for one in mine:
        succeed(driver, create(one))
    before = routes(netns)
    netns.ip("route del 192.0.2.0/24")
    netns.ip("-6 route del fd00::/64 dev lan")
    found = drifted(driver, *mine)
    assert changed(found) == CUT_OFF * 4
    succeed(driver, *found)
    assert routes(netns) == before


def test_the_route_of_others_primary_is_as_they_made_it(
    driver: AddressDriver, netns: Namespace
) -> None:
    netns.ip("addr add 192.0.2.1/24 dev lan metric 77")
    mine = at("192.0.2.2/24", "lan")
    succeed(driver, create(mine))
    before = routes(netns)
    netns.ip("route del 192.0.2.0/24")
    succeed(driver, *drifted(driver, mine))
    assert routes(netns) == before


def test_metrics_of_addresses_are_kept(driver: AddressDriver, netns: Namespace) -> None:
    mine = [at("192.0.2.1/24", "lan"), at("fd00::1/64", "lan")]
    for one in mine:
        succeed(driver, create(one))
    netns.ip("addr change 192.0.2.1/24 dev lan metric 5")
    netns.ip("addr change fd00::1/64 dev lan metric 6")
    # An older `ip` cannot say whose they are, and takes our tag off one of them.
    claimed = {one.key: look(driver, one) for one in mine}
    assert claimed.keys() == {one.key for one in mine}
    before = routes(netns)
    netns.ip("route del 192.0.2.0/24 metric 5")
    netns.ip("-6 route del fd00::/64 dev lan metric 6")
    for one in mine:
        seen = claimed[one.key].artifact
        cut = Artifact(one.key, {**seen.fields, "no_prefix_route": LOST})
        succeed(driver, repair(one, cut))
    assert routes(netns) == before


def test_what_has_none_lacks_none(driver: AddressDriver, netns: Namespace) -> None:
    mine = [
        at("192.0.2.1/24", "lan", no_prefix_route=True),
        at("fd00::1/64", "lan", no_prefix_route=True),
        at("198.51.100.1/32", "lan"),
        at("fd01::1/128", "wan"),
        at("10.1.0.1/24", "lo"),
        at("fd02::1/64", "lo"),
        at("127.0.0.2/8", "lo"),
    ]
    for one in mine:
        succeed(driver, create(one))
    netns.ip("route flush table main")
    netns.ip("-6 route flush table main dev lan")
    netns.ip("-6 route flush table main dev lo")
    netns.ip("-6 route del fd01::1 dev wan")
    assert drifted(driver, *mine) == []


@pytest.mark.uml
def test_a_link_that_is_down_leads_nowhere_and_comes_back(
    driver: AddressDriver, netns: Namespace
) -> None:
    mine = [at("192.0.2.1/24", "lan"), at("fd00::1/64", "lan")]
    for order in ("before", "after"):
        netns.ip("link set lan down")
        if order == "before":
            for one in mine:
                succeed(driver, create(one))
        there = [one for one in mine if one.key in see(driver, *mine)]
        assert drifted(driver, *there) == []
        netns.ip("link set lan up")
        there = [one for one in mine if one.key in see(driver, *mine)]
        assert drifted(driver, *there) == []


@pytest.mark.uml
def test_a_link_without_a_carrier_lacks_nothing(driver: AddressDriver, netns: Namespace) -> None:
    netns.ip("link add bridge0 type bridge")
    netns.ip("link set bridge0 up")
    netns.ip("link set lanp down")
    mine = [at("192.0.2.1/24", "lan"), at("fd00::1/64", "lan")]
    mine += [at("198.51.100.1/24", "bridge0"), at("fd01::1/64", "bridge0")]
    for one in mine:
        succeed(driver, create(one))
    assert drifted(driver, *mine) == []
    for family in ("-4", "-6"):
        netns.ip(f"{family} route flush table main")
    found = drifted(driver, *mine)
    assert changed(found) == CUT_OFF * 4
    succeed(driver, *found)
    assert drifted(driver, *mine) == []


@pytest.mark.uml
def test_the_table_is_that_of_the_vrf(driver: AddressDriver, netns: Namespace) -> None:
    needs_link_type(netns, "vrf")
    netns.ip("link add blue type vrf table 10")
    netns.ip("link set blue up")
    netns.ip("link set lan master blue")
    mine = [at("192.0.2.1/24", "lan"), at("fd00::1/64", "lan")]
    mine += [at("198.51.100.1/24", "blue"), at("fd01::1/64", "blue")]
    for one in mine:
        succeed(driver, create(one))
    before = routes(netns)
    assert drifted(driver, *mine) == []
    netns.ip("route del 192.0.2.0/24 table 10")
    netns.ip("-6 route del fd00::/64 dev lan table 10")
    netns.ip("route del 198.51.100.0/24 table 10")
    netns.ip("-6 route del fd01::/64 dev blue table 10")
    found = drifted(driver, *mine)
    assert changed(found) == CUT_OFF * 4
    succeed(driver, *found)
    assert routes(netns) == before


def test_another_route_over_the_link_will_do(driver: AddressDriver, netns: Namespace) -> None:
    mine = [at("192.0.2.1/24", "lan"), at("fd00::1/64", "lan")]
    for one in mine:
        succeed(driver, create(one))
    netns.ip("route del 192.0.2.0/24")
    netns.ip("route add 192.0.2.0/24 dev lan metric 100")
    netns.ip("-6 route del fd00::/64 dev lan")
    netns.ip("-6 route add fd00::/64 dev lan metric 100")
    assert drifted(driver, *mine) == []


def test_what_hides_one_is_looked_behind(driver: AddressDriver, netns: Namespace) -> None:
    mine = [at("192.0.2.1/24", "lan"), at("fd00::1/64", "lan")]
    for one in mine:
        succeed(driver, create(one))
    for half in ("192.0.2.0/25", "192.0.2.128/25", "fd00::/65", "fd00::8000:0:0:0/65"):
        netns.ip(f"route add {half} dev wan")
    assert drifted(driver, *mine) == []
    netns.ip("route del 192.0.2.0/24")
    netns.ip("-6 route del fd00::/64 dev lan")
    assert changed(drifted(driver, *mine)) == CUT_OFF * 2


def test_the_same_prefix_on_another_link_is_another_route(
    driver: AddressDriver, netns: Namespace
) -> None:
    mine = [
        *(at(f"192.0.2.{number}/24", dev) for number, dev in ((1, "wan"), (2, "lan"))),
        *(at(f"fd00::{number}/64", dev) for number, dev in ((1, "wan"), (2, "lan"))),
    ]
    for one in mine:
        succeed(driver, create(one))
    before = routes(netns)
    assert drifted(driver, *mine) == []
    netns.ip("route del 192.0.2.0/24 dev lan")
    netns.ip("-6 route del fd00::/64 dev lan")
    found = drifted(driver, *mine)
    assert changed(found) == CUT_OFF * 2
    succeed(driver, *found)
    assert routes(netns) == before


def test_others_addresses_are_theirs_to_repair(
    driver: AddressDriver, sock: Counting, netns: Namespace
) -> None:
    stamped(sock, "192.0.2.1/24", read_names(sock).indexes["lan"], 50)
    wanted = at("192.0.2.1/24", "lan")
    netns.ip("route del 192.0.2.0/24")
    assert look(driver, wanted).artifact.fields["no_prefix_route"] is False


def test_an_address_that_changed_meanwhile_is_left_alone(
    driver: AddressDriver, netns: Namespace
) -> None:
    mine = at("192.0.2.1/24", "lan")
    succeed(driver, create(mine))
    netns.ip("route del 192.0.2.0/24")
    (found,) = drifted(driver, mine)
    netns.ip("addr del 192.0.2.1/24 dev lan")
    netns.ip("addr add 192.0.2.1/24 dev lan")
    before = routes(netns)
    (result,) = driver.apply([found], lambda _count: None)
    assert "no longer what was planned for" in result.failures[0].error
    assert routes(netns) == before


@pytest.mark.parametrize("number", [1, FEW])
def test_a_look_costs_no_dump_while_all_is_there(
    driver: AddressDriver, sock: Counting, number: int
) -> None:
    mine = [at(f"10.{at_}.0.1/24", "lan") for at_ in range(number)]
    mine += [at(f"fd00:{at_}::1/64", "lan") for at_ in range(1, number)]  # and fe80::/64
    for one in mine:
        succeed(driver, create(one))
    sock.dumped.clear()
    assert drifted(driver, *mine) == []
    assert _RTM_GETROUTE not in sock.dumped


def test_many_are_read_at_once(driver: AddressDriver, sock: Counting, netns: Namespace) -> None:
    mine = [at(f"10.{at_}.0.1/24", "lan") for at_ in range(FEW + 1)]
    for one in mine:
        succeed(driver, create(one))
    netns.ip("route del 10.7.0.0/24")
    sock.dumped.clear()
    found = drifted(driver, *mine)
    assert [op.subject.key for op in found if isinstance(op.subject, Artifact)] == [mine[7].key]
    assert sock.dumped.count(_RTM_GETROUTE) == 1


def test_a_way_back_never_takes_a_route_away() -> None:
    assert matches("no_prefix_route", LOST, False)
    assert not matches("no_prefix_route", False, LOST)
    assert not matches("no_prefix_route", True, LOST)
    assert not matches("no_prefix_route", LOST, True)
