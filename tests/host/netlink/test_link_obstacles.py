"""What keeps a link from being made is named, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.artifact import Value
from holdfast.engine.driver import Scope
from holdfast.engine.kinds.link import link
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import claims, create, delete, error, look, run, succeed
from tests.host.netlink.link_cases import first, make
from tests.lanes import needs_link_type
from tests.namespace import Namespace

# Type and fields of a link that is made under another name, and what the old one has of it.
IN_THE_WAY: dict[str, tuple[dict[str, Value], str]] = {
    "vxlan": ({"vni": 7, "port": 4789}, "link made0 has vni 7, port 4789"),
    "macvlan": ({"parent": "lan", "mode": "passthru"}, "link made0 is on lan, which passthru"),
    "veth": ({"peer": "made9"}, "link made9 has the name of its peer"),
    "vlan": ({"parent": "lan", "vlan_id": 42}, "link made0 has parent lan, vlan_id 42"),
    "ip6tnl": ({"local": "fd00::1", "remote": "fd00::2"}, "link made0 has local fd00::1"),
}


@pytest.fixture
def driver(netns: Namespace) -> Iterator[LinkDriver]:
    netns.veth("lan", "lanp")
    sock = NetlinkSocket()
    yield LinkDriver(sock)
    sock.close()


@pytest.mark.uml
@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_a_renamed_link_is_told_of_the_old_one(
    driver: LinkDriver, netns: Namespace, kind: str
) -> None:
    needs_link_type(netns, kind)
    fields, words = IN_THE_WAY[kind]
    old, new = link("made0", {"type": kind, **fields}), link("made1", {"type": kind, **fields})
    make(driver, old)
    foreign = error(driver, create(new))
    assert f"; {words}" in foreign
    assert foreign.endswith(": remove it by hand, or change the configuration")
    driver.observe(Scope(claims=claims(old)))
    ours = error(driver, create(new))
    assert f"; {words}" in ours
    assert "declare an Interface with `ifname: made0` and `state: absent`" in ours
    (result,) = run(driver, create(new))
    assert result.failures[0].obstructed, "else the old one would stay until this one is there"
    succeed(driver, delete(look(driver, old).artifact))
    succeed(driver, create(new))


def test_a_macvlan_beside_others_of_its_parent(driver: LinkDriver, netns: Namespace) -> None:
    netns.ip("link add theirs link lan type macvlan mode bridge")
    alone = link("made0", {"type": "macvlan", "parent": "lan", "mode": "passthru"})
    said = error(driver, create(alone))
    assert "link theirs is on lan, which passthru shares with no other: remove it" in said
    # EINVAL for another reason.
    assert "theirs" not in error(driver, create(first("macvlan", mtu=9000)))
