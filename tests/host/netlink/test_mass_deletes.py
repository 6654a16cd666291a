"""Many addresses and rules deleted at once: few readings, and each of them of just before."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.driver import Result
from holdfast.engine.kinds.rule import rule
from holdfast.host.netlink.addresses.address_codec import RTM_DELADDR, RTM_GETADDR
from holdfast.host.netlink.addresses.driver import AddressDriver
from holdfast.host.netlink.links.link_names import read_names
from holdfast.host.netlink.rules import RuleDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import TAG, at, create, delete, run, see, stamped, succeed
from tests.host.netlink.interruption import Interrupted, socket_with
from tests.host.netlink.vanished import world
from tests.lanes import needs_link_type
from tests.namespace import Namespace

_RTM_NEWRULE, _RTM_DELRULE, _RTM_GETRULE = 32, 33, 34
ADDRESSES = [at(f"10.9.{number}.1/24", "lan") for number in range(100)]
ADDRESSES6 = [at(f"fd09:{number:x}::1/64", "lan") for number in range(100)]
Drivers = Callable[[Interrupted, Any], Any]
RULES = [
    rule(family, 1000 + number, source=source, table=100)
    for number in range(1, 51)
    for family, source in ((4, f"10.9.{number}.0/24"), (6, f"fd09:{number:x}::/64"))
]


@pytest.fixture
def addresses(between_two_links: AddressDriver) -> AddressDriver:
    return between_two_links


@pytest.fixture
def rules(netns: Namespace) -> Iterator[RuleDriver]:  # noqa: ARG001 - the rules are in it
    sock = NetlinkSocket()
    yield RuleDriver(sock, TAG)
    sock.close()


def made(driver: AddressDriver | RuleDriver, artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Created, and as they are then observed."""
    succeed(driver, *(create(artifact) for artifact in artifacts))
    seen = see(driver)
    return [seen[artifact.key].artifact for artifact in artifacts]


def delete_all(driver: AddressDriver | RuleDriver, seen: Sequence[Artifact]) -> list[Result]:
    return run(driver, *(delete(artifact) for artifact in seen))


def refused(results: Sequence[Result]) -> dict[str, str]:
    return {f.key.name: f.error for result in results for f in result.failures}


@pytest.fixture
def interrupted() -> Iterator[Drivers]:
    """Drivers on transports that are closed after the test."""
    sockets: list[NetlinkSocket] = []

    def driver(transport: Interrupted, kind: Any) -> Any:
        sockets.append(socket_with(transport))
        return kind(sockets[-1], TAG)

    yield driver
    for sock in sockets:
        sock.close()


def others(netns: Namespace, mine: Sequence[Artifact]) -> set[str]:
    """Everything others made."""
    return world(netns) - {
        f"address {one.fields['address']}/{one.fields['prefix_length']} dev {one.fields['dev']}"
        for one in mine
    }


def nobody() -> None:
    pass


@pytest.mark.parametrize("wanted", [ADDRESSES, ADDRESSES6, ADDRESSES[:50] + ADDRESSES6[:50]])
def test_addresses_are_read_once_for_many(
    addresses: AddressDriver, netns: Namespace, wanted: list[Artifact], interrupted: Drivers
) -> None:
    before = world(netns)
    seen = made(addresses, wanted)
    transport = Interrupted(RTM_DELADDR, nobody)
    assert refused(delete_all(interrupted(transport, AddressDriver), seen)) == {}
    assert transport.sent.count(RTM_DELADDR) == 100
    assert transport.sent.count(RTM_GETADDR) == 4, "one reading for 32"
    assert see(addresses) == {}
    assert world(netns) == before


@pytest.mark.parametrize("wanted", [ADDRESSES, ADDRESSES6])
def test_an_address_that_another_made_meanwhile_is_not_deleted(
    addresses: AddressDriver, netns: Namespace, wanted: list[Artifact], interrupted: Drivers
) -> None:
    """Ours goes, and another's comes in its place, between two readings."""
    seen = made(addresses, wanted)
    theirs = wanted[60]
    text = f"{theirs.fields['address']}/{theirs.fields['prefix_length']}"

    def act() -> None:
        netns.ip(f"addr del {text} dev lan")
        with_socket(lambda sock: stamped(sock, text, read_names(sock).indexes["lan"], 50))

    driver = interrupted(Interrupted(RTM_GETADDR, act, after=1), AddressDriver)
    results = delete_all(driver, seen)
    assert refused(results) == {
        theirs.key.name: "no longer what was planned for: protocol is 50, was 72"
    }
    assert sum(result.done for result in results) == 99
    assert see(addresses, theirs)[theirs.key].holder == "protocol 50"


def with_socket(use: Callable[[NetlinkSocket], None]) -> None:
    sock = NetlinkSocket()
    use(sock)
    sock.close()


@pytest.mark.parametrize(
    ("wanted", "command", "loss"),
    [
        (
            ADDRESSES,
            "route add 10.20.0.0/24 via 10.1.0.9 src 10.9.60.1 proto static",
            "route 10.20.0.0/24 (protocol static)",
        ),
        (
            ADDRESSES6,
            "-6 route add fd09:3c::/64 dev lan proto static metric 10",
            "route fd09:3c::/64 metric 10 (protocol static)",
        ),
    ],
)
def test_what_others_make_meanwhile_is_not_lost(
    addresses: AddressDriver,
    netns: Namespace,
    wanted: list[Artifact],
    command: str,
    loss: str,
    interrupted: Drivers,
) -> None:
    seen = made(addresses, wanted)
    worlds: list[set[str]] = []

    def act() -> None:
        netns.ip(command)
        worlds.append(others(netns, wanted))

    driver = interrupted(Interrupted(RTM_GETADDR, act, after=1), AddressDriver)
    results = delete_all(driver, seen)
    assert refused(results) == {wanted[60].key.name: f"would take what others made: {loss}"}
    assert set(see(addresses)) == {wanted[60].key}
    assert [others(netns, wanted)] == worlds


def test_a_secondary_that_others_make_meanwhile_is_put_back(
    addresses: AddressDriver, netns: Namespace, interrupted: Drivers
) -> None:
    """The kernel deletes it with its primary: no loss where it comes back in the same step."""
    seen = made(addresses, ADDRESSES)
    act = lambda: netns.ip("addr add 10.9.60.2/24 dev lan")  # noqa: E731 (it is handed on)
    driver = interrupted(Interrupted(RTM_GETADDR, act, after=1), AddressDriver)
    assert refused(delete_all(driver, seen)) == {}
    assert "10.9.60.2/24" in netns.ip("-4 addr show dev lan")


def test_the_last_address_of_a_link_stays_for_anothers_route(
    addresses: AddressDriver, netns: Namespace
) -> None:
    seen = made(addresses, ADDRESSES)
    netns.ip("route add 10.21.0.0/24 dev lan proto static")
    before = others(netns, seen)
    results = delete_all(addresses, seen)
    assert refused(results) == {
        ADDRESSES[-1].key.name: "would take what others made: route 10.21.0.0/24 (protocol static)"
    }
    assert set(see(addresses)) == {ADDRESSES[-1].key}
    assert others(netns, seen) == before


def test_the_last_of_two_equal_addresses_stays_for_anothers_route(
    addresses: AddressDriver, netns: Namespace
) -> None:
    """Each alone could go; both together would take the route that names them."""
    twins = [at("10.9.0.1/24", "lan"), at("10.9.0.1/16", "lan")]
    seen = made(addresses, [*ADDRESSES[1:5], *twins])
    netns.ip("route add 10.20.0.0/24 via 10.1.0.9 src 10.9.0.1 proto static")
    before = others(netns, seen)
    results = delete_all(addresses, seen)
    assert list(refused(results)) == [twins[1].key.name]
    assert others(netns, seen) == before


def test_the_last_of_a_prefix_stays_for_anothers_prefix_route(
    addresses: AddressDriver, netns: Namespace
) -> None:
    """An address without a prefix route in front does not hide the one that has it."""
    bare = at("fd05::1/64", "lan", no_prefix_route=True)
    usual = at("fd05::2/64", "lan")
    seen = made(addresses, [bare, usual, *ADDRESSES6[:5]])
    netns.ip("-6 route add fd05::/64 dev lan proto static metric 10")
    before = others(netns, seen)
    results = delete_all(addresses, seen)
    assert list(refused(results)) == [usual.key.name]
    assert others(netns, seen) == before


@pytest.mark.uml
@pytest.mark.parametrize(
    ("number", "route"),
    [
        (0, "10.21.0.0/24 via 10.9.0.9 src 10.9.0.1 table 500"),
        (1, "10.20.0.0/24 via 10.1.0.9 src 10.9.0.1"),
    ],
)
def test_equal_addresses_in_two_vrfs_are_told_apart(
    addresses: AddressDriver, netns: Namespace, number: int, route: str
) -> None:
    needs_link_type(netns, "vrf")
    for command in (
        "link add blue type vrf table 500",
        "link set blue up",
        "link set lan master blue",
        "addr add 10.5.0.1/24 dev lan",
    ):
        netns.ip(command)
    twins = [at("10.9.0.1/24", "lan"), at("10.9.0.1/24", "wan")]
    seen = made(addresses, twins)
    netns.ip(f"route add {route} proto static")
    before = others(netns, seen)
    assert list(refused(delete_all(addresses, seen))) == [twins[number].key.name]
    assert others(netns, seen) == before


def test_a_primary_takes_its_secondaries_and_what_stays_comes_back(
    addresses: AddressDriver, netns: Namespace
) -> None:
    before = world(netns)
    same = [at(f"10.9.0.{number}/24", "lan") for number in range(1, 81)]
    seen = made(addresses, same)
    kept = seen.pop(40)
    results = delete_all(addresses, seen)
    assert refused(results) == {}
    assert results[0].notes == (f"{kept.key} went with it and was put back",)
    assert {key: one.artifact for key, one in see(addresses).items()} == {kept.key: kept}
    assert delete_all(addresses, [kept])[0].ok
    assert world(netns) == before


def test_an_unreadable_kernel_deletes_no_address(
    addresses: AddressDriver, interrupted: Drivers
) -> None:
    seen = made(addresses, ADDRESSES[:40])

    def fail() -> None:
        raise PermissionError(1, "Operation not permitted")

    class Failing(Interrupted):
        def send(self, data: bytes, /) -> int:
            if data[4] == RTM_GETADDR:
                fail()
            return super().send(data)

    transport = Failing(RTM_DELADDR, nobody)
    results = delete_all(interrupted(transport, AddressDriver), seen)
    assert set(refused(results).values()) == {"cannot read addresses: Operation not permitted"}
    assert len(refused(results)) == 40
    assert RTM_DELADDR not in transport.sent


def everything(netns: Namespace) -> list[str]:
    return [line for f in ("-4", "-6") for line in netns.ip(f"{f} -N rule show").splitlines()]


def test_rules_are_read_once_for_many(
    rules: RuleDriver, netns: Namespace, interrupted: Drivers
) -> None:
    before = everything(netns)
    seen = made(rules, RULES)
    transport = Interrupted(_RTM_DELRULE, nobody)
    assert refused(delete_all(interrupted(transport, RuleDriver), seen)) == {}
    assert transport.sent.count(_RTM_DELRULE) == 100
    assert transport.sent.count(_RTM_GETRULE) == 8, "one reading of both families for 32"
    assert everything(netns) == before


@pytest.mark.parametrize("kind", [_RTM_GETRULE, _RTM_DELRULE])
@pytest.mark.parametrize("number", [20, 80])
def test_anothers_rule_that_comes_meanwhile_is_not_hit(
    rules: RuleDriver, netns: Namespace, kind: int, number: int, interrupted: Drivers
) -> None:
    """Beside ours, in the place of ours, and narrower than ours: before and after the reading."""
    seen = made(rules, RULES)
    mine = RULES[number]
    words = f"from {mine.fields['source']} table 100 pref {mine.fields['priority']}"
    gone = f"from {RULES[number + 2].fields['source']} table 100"
    gone += f" pref {RULES[number + 2].fields['priority']}"
    narrow = f"from {mine.fields['source']} iif lan table 100 pref {mine.fields['priority']}"
    worlds: list[list[str]] = []

    def act() -> None:
        netns.ip(f"rule add {words} proto static")
        netns.ip(f"rule del {gone} proto 72")
        netns.ip(f"rule add {gone} proto static")
        netns.ip(f"rule add {narrow} proto static")
        netns.ip(f"rule add {narrow}")
        worlds.append([line for line in everything(netns) if f"proto {TAG}" not in line])

    driver = interrupted(Interrupted(kind, act), RuleDriver)
    assert refused(delete_all(driver, seen)) == {}
    assert [everything(netns)] == worlds
    assert len(worlds[0]) == 4 + 3 + 2


def test_a_wide_rule_among_many_costs_no_narrow_one(rules: RuleDriver, netns: Namespace) -> None:
    """The kernel would take the narrow one of ours, which stays, for the wide one that goes."""
    narrow = rule(4, 1020, source="10.9.200.0/24", table=100)
    wide = rule(4, 1020, table=100)
    others = [one for one in RULES if one.fields["priority"] != 1020]
    succeed(rules, create(narrow))
    kept = everything(netns)
    seen = made(rules, [*others[:20], wide, *others[20:]])
    results = delete_all(rules, seen)
    assert refused(results) == {}
    assert results[20].notes == (f"{narrow.key} was lifted for a moment and put back",)
    assert everything(netns) == kept


def test_an_adopted_rule_without_a_protocol_is_deleted_by_itself(
    rules: RuleDriver, netns: Namespace, interrupted: Drivers
) -> None:
    """Nothing guards its delete, so it is looked at just before, whatever goes with it."""
    seen = made(rules, RULES[:10])
    netns.ip("rule add from 10.7.0.0/16 table 100 pref 900")
    adopted = rule(4, 900, source="10.7.0.0/16", table=100)
    there = see(rules, claimed=[adopted])[adopted.key].artifact
    transport = Interrupted(_RTM_DELRULE, nobody)
    results = delete_all(interrupted(transport, RuleDriver), [*seen[:5], there, *seen[5:]])
    assert refused(results) == {}
    assert transport.sent.count(_RTM_GETRULE) > 11
    assert see(rules, adopted) == {}


def test_a_thousand_are_created_without_reading_any(
    addresses: AddressDriver, interrupted: Drivers
) -> None:
    """Creating is linear: one lookup of the link and one message for each."""
    transport = Interrupted(RTM_DELADDR, nobody)
    driver = interrupted(transport, AddressDriver)
    many = [
        at(str(ipaddress.ip_interface(f"10.{200 + number // 250}.{number % 250}.1/24")), "lan")
        for number in range(1000)
    ]
    succeed(driver, *(create(one) for one in many))
    assert RTM_GETADDR not in transport.sent
    assert len(transport.sent) == 2000
    assert len(see(addresses)) == 1000


def test_a_thousand_rules_are_created_without_reading_any(
    rules: RuleDriver, interrupted: Drivers
) -> None:
    transport = Interrupted(_RTM_DELRULE, nobody)
    driver = interrupted(transport, RuleDriver)
    succeed(driver, *(create(rule(4, 1000 + number, table=100)) for number in range(1000)))
    assert transport.sent == [_RTM_NEWRULE] * 1000
    assert len(see(rules)) == 1000
