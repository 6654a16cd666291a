"""Changes of a link that need care: masters, and what works only while the link is down."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator

import pytest

from holdfast.engine.kinds.link import link
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request
from tests.host.netlink.drive import create, error, look, succeed, update
from tests.host.netlink.link_cases import MAC, first, make
from tests.namespace import Namespace


@pytest.fixture
def driver(netns: Namespace) -> Iterator[LinkDriver]:
    netns.veth("lan", "lanp")
    sock = NetlinkSocket()
    yield LinkDriver(sock)
    sock.close()


def test_a_link_joins_changes_and_leaves_a_master(driver: LinkDriver, netns: Namespace) -> None:
    for name in ("br0", "br1"):
        make(driver, link(name, {"type": "bridge", "up": True}))
    for master in ("br0", "br1", ""):
        before = look(driver, link("lan", {})).artifact
        succeed(driver, update(link("lan", {"master": master}), before))
        assert look(driver, link("lan", {})).artifact.fields == {**before.fields, "master": master}
    assert "master" not in netns.ip_json("link show lan")[0]


def test_created_into_a_master(driver: LinkDriver) -> None:
    make(driver, link("br0", {"type": "bridge"}))
    wanted = link("made0", {"type": "veth", "peer": "made1", "master": "br0", "up": True})
    make(driver, wanted)
    seen = look(driver, wanted).artifact.fields
    assert (seen["master"], seen["up"]) == ("br0", True)


def test_a_master_or_parent_that_is_missing_is_named(driver: LinkDriver) -> None:
    before = look(driver, link("lan", {})).artifact
    changed = update(link("lan", {"master": "br9", "mtu": 1400}), before)
    assert error(driver, changed) == "master br9: link br9 does not exist"
    assert look(driver, link("lan", {})).artifact.fields["mtu"] == 1400, "the rest goes on"
    orphan = link("mv0", {"type": "macvlan", "parent": "eth9", "mode": "bridge"})
    assert error(driver, create(orphan)) == "link eth9 does not exist"


@pytest.mark.uml
@pytest.mark.parametrize("up", [True, False])
def test_a_bond_takes_a_link_that_is_up(driver: LinkDriver, up: bool) -> None:
    make(driver, link("made0", {"type": "bond", "mode": "active-backup", "up": True}))
    before = look(driver, link("lan", {})).artifact
    assert before.fields["up"] is True
    succeed(driver, update(link("lan", {"master": "made0", "up": up}), before))
    seen = look(driver, link("lan", {})).artifact.fields
    assert (seen["master"], seen["up"]) == ("made0", up)


@pytest.mark.uml
@pytest.mark.parametrize("kind", ["bond", "vrf"])
def test_joining_is_refused_where_others_would_lose_what_they_made(
    driver: LinkDriver, netns: Namespace, kind: str
) -> None:
    make(driver, first(kind))
    netns.ip("addr add 10.0.0.1/24 dev lan")
    netns.ip("addr add fd00::1/64 dev lan nodad")
    netns.ip("route add 10.9.0.0/16 via 10.0.0.9 proto static")
    netns.ip("-6 route add fd09::/64 via fd00::9 proto static")
    netns.ip("neigh add 10.0.0.77 lladdr 02:00:00:00:00:77 dev lan nud permanent")
    before = look(driver, link("lan", {})).artifact
    said = error(driver, update(link("lan", {"master": "made0"}), before))
    for lost in ("route 10.9.0.0/16", "route fd09::/64", "address fd00::1", "10.0.0.77 dev lan"):
        assert lost in said
    assert look(driver, link("lan", {})).artifact == before
    assert "10.9.0.0/16" in netns.ip("route show")


class StubbornSocket(NetlinkSocket):
    """A kernel whose driver for `lan` changes the MAC only while the link is down."""

    def transact(
        self, requests: Iterable[Request], progress: Callable[[int], None] = lambda _done: None
    ) -> dict[int, NetlinkError]:
        requests = list(requests)
        (request,) = requests
        found = attributes.parse(request.body, 16)
        if 1 in found and "UP" in Namespace().ip_json("link show lan")[0]["flags"]:
            return {0: NetlinkError(errno.EBUSY, "Device or resource busy (EBUSY)")}
        return super().transact(requests, progress)


@pytest.fixture
def stubborn(netns: Namespace) -> Iterator[LinkDriver]:
    netns.veth("lan", "lanp")
    sock = StubbornSocket()
    yield LinkDriver(sock, tag=72)
    sock.close()


def test_a_mac_that_changes_only_while_down(stubborn: LinkDriver, netns: Namespace) -> None:
    netns.ip("route add 10.9.0.0/16 dev lan proto 72")  # ours: the next pass puts it back
    before = look(stubborn, link("lan", {})).artifact
    succeed(stubborn, update(link("lan", {"mac": MAC}), before))
    assert look(stubborn, link("lan", {})).artifact.fields == {**before.fields, "mac": MAC}


def test_a_mac_is_not_worth_what_others_made(stubborn: LinkDriver, netns: Namespace) -> None:
    netns.ip("route add 10.9.0.0/16 dev lan proto static")
    before = look(stubborn, link("lan", {})).artifact
    said = error(stubborn, update(link("lan", {"mac": MAC}), before))
    assert said == (
        f"mac {MAC}: the link must go down for that, which would take what others made:"
        " route 10.9.0.0/16 (protocol static); set it down first"
    )
    assert look(stubborn, link("lan", {})).artifact == before
    assert "10.9.0.0/16" in netns.ip("route show")
