"""Addresses on the running kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from holdfast.engine import diff
from holdfast.engine.artifact import Artifact
from holdfast.engine.driver import Scope
from holdfast.engine.kinds.address import ADDRESS
from holdfast.host.netlink import attributes
from holdfast.host.netlink.addresses.address_codec import RTM_GETADDR
from holdfast.host.netlink.addresses.driver import AddressDriver
from holdfast.host.netlink.links.link_names import read_names
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import (
    TAG,
    at,
    create,
    delete,
    error,
    exists,
    look,
    replace,
    see,
    stamped,
    succeed,
    update,
)
from tests.namespace import Namespace


@pytest.fixture
def sock(netns: Namespace) -> Iterator[NetlinkSocket]:
    netns.veth("lan", "lanp")
    netns.veth("wan", "wanp")
    sock = NetlinkSocket()
    yield sock
    sock.close()


@pytest.fixture
def driver(sock: NetlinkSocket) -> AddressDriver:
    return AddressDriver(sock, TAG)


ADDRESSES = [
    at("192.0.2.1/24", "lan"),
    at("192.0.2.1/32", "lan"),
    at("192.0.2.0/31", "lan"),
    at("10.0.0.1/8", "lan", scope="link"),
    at("127.0.0.5/8", "lo"),
    at("127.0.0.6/32", "lo", scope="global"),
    at("169.254.1.1/16", "lan"),
    at("192.0.2.1/24", "lan", no_prefix_route=True),
    at("2001:db8::1/64", "lan"),
    at("2001:db8::1/128", "lan"),
    at("fe80::42/64", "lan"),
    at("fd00::1/64", "lan", no_prefix_route=True),
    at("fd00::1/48", "lo"),
]


@pytest.mark.uml
@pytest.mark.parametrize("artifact", ADDRESSES, ids=lambda artifact: artifact.key.name)
def test_round_trip(driver: AddressDriver, artifact: Artifact) -> None:
    assert artifact.key not in see(driver, artifact)
    succeed(driver, create(artifact))
    # Not asked for: the tag alone brings it into view.
    seen = see(driver)[artifact.key]
    assert seen.artifact.fields == {**artifact.fields, "protocol": TAG}
    assert (seen.tag, seen.holder) == ("protocol 72", "")
    succeed(driver, delete(seen.artifact))
    assert artifact.key not in see(driver, artifact)
    succeed(driver, delete(seen.artifact))


def test_duplicate_address_detection_stays_on(driver: AddressDriver, netns: Namespace) -> None:
    netns.run("sysctl", "-qw", "net.ipv6.conf.lan.dad_transmits=60")  # each takes a second
    succeed(driver, create(at("fd00::1/64", "lan")))
    (shown,) = netns.ip_json("addr show dev lan to fd00::1")
    assert "nodad" not in shown["addr_info"][0]
    assert shown["addr_info"][0].get("tentative")


@pytest.mark.parametrize("text", ["192.0.2.1/24", "2001:db8::1/64"])
def test_create_never_takes_over(driver: AddressDriver, netns: Namespace, text: str) -> None:
    netns.ip(f"addr add {text} dev lan" + (" nodad" if ":" in text else ""))
    before = netns.ip(f"addr show dev lan to {text}")
    assert exists(driver, create(at(text, "lan")))
    assert netns.ip(f"addr show dev lan to {text}") == before
    seen = look(driver, at(text, "lan"))
    assert seen.tag == ""
    assert seen.holder == "protocol 0 (made by hand or by a program that sets none)"


def test_ipv4_prefix_lengths_are_objects_of_their_own(driver: AddressDriver) -> None:
    wide, narrow = at("10.0.0.1/16", "lan"), at("10.0.0.1/24", "lan")
    succeed(driver, create(wide), create(narrow))
    succeed(driver, delete(look(driver, narrow).artifact))
    assert set(see(driver)) == {wide.key}


def test_ipv6_prefix_length_is_replaced(driver: AddressDriver) -> None:
    old, new = at("fd00::1/64", "lan"), at("fd00::1/48", "lan")
    succeed(driver, create(old))
    assert old.key == new.key
    assert exists(driver, create(new))
    succeed(driver, replace(new, look(driver, old).artifact))
    assert look(driver, new).artifact.fields == {**new.fields, "protocol": TAG}


def test_a_failed_replace_puts_the_old_one_back(driver: AddressDriver) -> None:
    old = at("fd00::1/64", "lan")
    succeed(driver, create(old))
    before = look(driver, old).artifact
    impossible = Artifact(old.key, {**old.fields, "prefix_length": 129})
    assert error(driver, replace(impossible, before)).endswith("; the old one was put back")
    assert look(driver, old).artifact == before


@pytest.mark.parametrize("text", ["192.0.2.1/24", "fd00::1/64"])
@pytest.mark.parametrize("before", [True, False])
def test_drift_of_the_prefix_route_flag_is_repaired(
    driver: AddressDriver, netns: Namespace, text: str, before: bool
) -> None:
    succeed(driver, create(at(text, "lan", no_prefix_route=before)))
    seen = look(driver, at(text, "lan")).artifact
    wanted = at(text, "lan", no_prefix_route=not before)
    succeed(driver, update(wanted, seen))
    assert look(driver, wanted).artifact.fields == {**wanted.fields, "protocol": TAG}
    family = "-6" if ":" in text else "-4"
    made = "fd00::/64" if ":" in text else "192.0.2.0/24"
    assert (made in netns.ip(f"{family} route show dev lan proto kernel")) is before


def test_drift_of_the_scope_is_repaired_and_all_else_kept(
    driver: AddressDriver, netns: Namespace
) -> None:
    """An adopted address keeps its label and broadcast address."""
    netns.ip("addr add 192.0.2.1/24 brd + dev lan label lan:x scope link")
    wanted = at("192.0.2.1/24", "lan")
    see(driver, wanted, claimed=[wanted])
    succeed(driver, update(wanted, look(driver, wanted).artifact))
    (shown,) = netns.ip_json("-4 addr show dev lan")
    (info,) = shown["addr_info"]
    assert (info["scope"], info["label"], info["broadcast"]) == ("global", "lan:x", "192.0.2.255")


@pytest.mark.parametrize("text", ["192.0.2.1/24", "fd00::1/64"])
def test_what_another_made_since_is_not_deleted(
    driver: AddressDriver, sock: NetlinkSocket, netns: Namespace, text: str
) -> None:
    """The kernel deletes an address whatever its protocol; so this must not ask it to."""
    artifact = at(text, "lan")
    succeed(driver, create(artifact))
    planned_for = look(driver, artifact).artifact
    netns.ip(f"addr del {text} dev lan")
    stamped(sock, text, read_names(sock).indexes["lan"], 50)
    for operation in (delete(planned_for), replace(artifact, planned_for)):
        assert error(driver, operation) == (
            "no longer what was planned for: protocol is 50, was 72"
        )
    assert look(driver, artifact).holder == "protocol 50"


def test_a_delete_planned_from_a_claim_alone_needs_the_tag(
    driver: AddressDriver, netns: Namespace
) -> None:
    netns.ip("addr add 192.0.2.1/24 dev lan")
    assert "protocol is 0, was 72" in error(driver, delete(at("192.0.2.1/24", "lan")))


def test_an_adopted_address_is_deleted_as_observed(driver: AddressDriver, netns: Namespace) -> None:
    netns.ip("addr add 192.0.2.1/24 dev lan")
    artifact = at("192.0.2.1/24", "lan")
    seen = see(driver, claimed=[artifact])[artifact.key]
    succeed(driver, delete(seen.artifact))
    assert see(driver, artifact) == {}


def test_a_prefix_length_changed_by_others_is_not_deleted(
    driver: AddressDriver, sock: NetlinkSocket, netns: Namespace
) -> None:
    artifact = at("fd00::1/64", "lan")
    succeed(driver, create(artifact))
    planned_for = look(driver, artifact).artifact
    netns.ip("addr del fd00::1/64 dev lan")
    stamped(sock, "fd00::1/48", read_names(sock).indexes["lan"], TAG)
    assert "prefix_length is 48, was 64" in error(driver, delete(planned_for))


def test_a_point_to_point_address_is_another_object(
    driver: AddressDriver, netns: Namespace
) -> None:
    netns.ip("addr add 10.0.0.1 peer 10.0.0.2/32 dev lan")
    plain = at("10.0.0.1/32", "lan")
    assert see(driver, plain) == {}
    succeed(driver, create(plain))
    succeed(driver, delete(look(driver, plain).artifact))
    assert "peer 10.0.0.2" in netns.ip("addr show dev lan")


def test_a_missing_link_is_named_on_create_and_fine_on_delete(driver: AddressDriver) -> None:
    nowhere = at("192.0.2.1/24", "eth9")
    assert error(driver, create(nowhere)) == "link eth9 does not exist"
    succeed(driver, delete(nowhere))


def test_one_failure_does_not_stop_the_rest(driver: AddressDriver, netns: Namespace) -> None:
    netns.ip("addr add 192.0.2.1/24 dev lan")
    first, second = at("192.0.2.1/24", "lan"), at("192.0.2.2/24", "lan")
    done = driver.apply([create(first), create(second)], lambda _done: None)
    assert [result.ok for result in done] == [False, True]


def test_the_kernels_own_words(driver: AddressDriver, netns: Namespace) -> None:
    netns.run("sysctl", "-qw", "net.ipv6.conf.lan.disable_ipv6=1")
    said = error(driver, create(at("fd00::1/64", "lan")))
    assert said == "Permission denied (EACCES): ipv6: IPv6 is disabled on this device"


def test_foreign_addresses_are_reported_where_they_may_object(
    driver: AddressDriver, netns: Namespace
) -> None:
    netns.ip("addr add 192.0.2.3/24 dev lan")
    netns.ip("addr add 169.254.0.3/16 dev lan scope link")
    found = driver.observe(Scope()).sightings
    assert at("192.0.2.3/24", "lan").key in found
    assert at("169.254.0.3/16", "lan").key not in found
    assert at("127.0.0.1/8", "lo").key not in found


def test_the_kernels_own_addresses_are_named_as_such(driver: AddressDriver) -> None:
    assert look(driver, at("::1/128", "lo")).holder == "protocol kernel_lo"


class Strange(NetlinkSocket):
    """On a machine with addresses of a family that is not IP."""

    def dump(self, kind: int, header: bytes, what: str) -> list[bytes]:
        bodies = super().dump(kind, header, what)
        mctp = bytes((45, 0, 0, 0)) + attributes.u32(0, 1)[4:] + attributes.u8(2, 8)
        return [mctp, *bodies] if kind == RTM_GETADDR else bodies


def test_addresses_that_are_not_ip_are_passed_over(netns: Namespace) -> None:
    netns.veth("lan", "lanp")
    sock = Strange()
    try:
        driver = AddressDriver(sock, TAG)
        succeed(driver, create(at("192.0.2.1/24", "lan")))
        assert list(see(driver)) == [at("192.0.2.1/24", "lan").key]
    finally:
        sock.close()


def test_a_duplicate_is_no_address_and_is_tried_again(
    driver: AddressDriver, netns: Namespace
) -> None:
    netns.ip("addr add fd00::1/64 dev lanp nodad")
    mine = at("fd00::1/64", "lan")
    succeed(driver, create(mine))

    def state() -> str:
        (shown,) = netns.ip_json("addr show dev lan to fd00::1")
        info = shown["addr_info"][0]
        return next((name for name in ("dadfailed", "tentative") if info.get(name)), "good")

    _until(lambda: state() == "dadfailed")
    seen = look(driver, mine).artifact
    (change,) = diff.changes(ADDRESS, mine.fields, seen.fields)
    assert (change.field, change.after) == ("duplicate", None)
    netns.ip("addr del fd00::1/64 dev lanp")
    succeed(driver, update(mine, seen))
    _until(lambda: state() == "good")
    assert diff.changes(ADDRESS, mine.fields, look(driver, mine).artifact.fields) == ()


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.05)
