"""What tunnels over IPv6 do that other links don't. No kernel but that of the uml lane may have
them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact, Key, Value
from holdfast.engine.claim import Provenance
from holdfast.engine.decide import settling
from holdfast.engine.diff import changes
from holdfast.engine.driver import Scope
from holdfast.engine.intent import Desired
from holdfast.engine.kinds.link import LINK, TYPES, link
from holdfast.engine.plan import Verb
from holdfast.engine.reconcile import scope
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.state.ledger import Ledger
from tests.host.netlink.drive import (
    claims,
    create,
    delete,
    error,
    exists,
    look,
    see,
    succeed,
    update,
)
from tests.host.netlink.link_cases import NONCE, first, make
from tests.lanes import needs_link_type
from tests.namespace import Namespace
from tests.safety import router_scene

pytestmark = pytest.mark.uml


@pytest.fixture
def driver(netns: Namespace) -> Iterator[LinkDriver]:
    needs_link_type(netns, "ip6tnl")
    netns.veth("lan", "lanp")
    sock = NetlinkSocket()
    yield LinkDriver(sock)
    sock.close()


def tunnel(**more: Value) -> Artifact:
    return first("ip6tnl", **more)


def test_the_same_as_ip_makes_for_ds_lite(driver: LinkDriver, netns: Namespace) -> None:
    make(driver, tunnel(), nonce="")
    ours = _parameters(netns)
    seen = look(driver, tunnel()).artifact
    netns.ip("link del made0")
    ends = "remote 2001:db8::2 local 2001:db8::1"
    netns.ip(f"-6 tunnel add made0 mode ipip6 {ends} dev lan encaplimit none")
    assert _parameters(netns) == ours
    theirs = look(driver, tunnel()).artifact
    names = {"type", "mtu", *TYPES["ip6tnl"]}
    assert {name: theirs.fields[name] for name in names} == {
        name: seen.fields[name] for name in names
    }


def test_a_change_keeps_what_nobody_declared(driver: LinkDriver, netns: Namespace) -> None:
    """To the kernel a change is a whole new set of parameters, and a reason for a new MTU."""
    netns.ip(
        "link add made0 mtu 1333 type ip6tnl mode ipip6 remote 2001:db8::2 local 2001:db8::1"
        " dev lan encaplimit 4 hoplimit 64 flowlabel 0x12345 tclass 0x28 dscp inherit fwmark 0x77"
    )
    netns.ip("link set made0 up")
    before, parameters = look(driver, tunnel()).artifact, _parameters(netns)
    wanted: dict[str, Value] = {"encap_limit": "none", "hop_limit": 9}
    succeed(driver, update(link("made0", wanted), before))
    assert look(driver, tunnel()).artifact.fields == {**before.fields, **wanted}
    del parameters["encap_limit"]
    assert _parameters(netns) == {**parameters, "ip6_tnl_f_ign_encap_limit": True, "ttl": 9}
    assert (parameters["flowlabel"], parameters["fwmark"]) == ("0x12345", "0x77")


def test_a_change_leaves_addresses_and_routes(driver: LinkDriver, netns: Namespace) -> None:
    make(driver, tunnel(up=True), nonce="")
    netns.ip("addr add 192.0.0.2/29 dev made0")
    netns.ip("route add default dev made0")
    before = look(driver, tunnel()).artifact
    succeed(driver, update(link("made0", {"encap_limit": "4"}), before))
    assert [route["dst"] for route in netns.ip_json("-4 route show dev made0")] == [
        "default",
        "192.0.0.0/29",
    ]


def test_all_its_ends_change_at_once_and_what_others_made_stays(
    driver: LinkDriver, netns: Namespace
) -> None:
    """Field by field, its ends would be those of `other` for a moment, which the kernel refuses."""
    make(driver, tunnel(up=True), nonce="")
    make(driver, link("other", {**tunnel().fields, "remote": "2001:db8::9"}), nonce="")
    netns.ip("addr add 192.0.0.2/29 dev made0")
    netns.ip("route add default dev made0 proto static")
    before = look(driver, tunnel()).artifact
    wanted: dict[str, Value] = {"remote": "2001:db8::9", "local": "2001:db8::7", "mode": "any"}
    succeed(driver, update(link("made0", wanted), before))
    after = look(driver, tunnel()).artifact.fields
    assert after == {**before.fields, **wanted, "mac": after["mac"]}
    assert len(netns.ip_json("-4 route show dev made0")) == 2


def test_ends_of_another_tunnel_are_refused(driver: LinkDriver) -> None:
    make(driver, tunnel(), nonce="")
    make(driver, link("other", {**tunnel().fields, "remote": "2001:db8::9"}), nonce="")
    before = look(driver, tunnel()).artifact
    said = error(driver, update(link("made0", {"remote": "2001:db8::9", "mtu": 1300}), before))
    assert said.startswith("remote 2001:db8::9: File exists (EEXIST)")
    after = look(driver, tunnel()).artifact.fields
    assert after == {**before.fields, "mtu": 1300}, "the rest goes on"


def test_an_update_is_planned_and_not_a_replace(driver: LinkDriver) -> None:
    make(driver, tunnel(), nonce="")
    seen = look(driver, tunnel()).artifact.fields
    others: dict[str, Value] = {
        "local": "2001:db8::7", "remote": "2001:db8::9", "parent": "", "mode": "any",
        "encap_limit": "4", "hop_limit": 1,
    }  # fmt: skip
    assert set(others) == set(TYPES["ip6tnl"])
    for field, value in others.items():
        assert settling(LINK, changes(LINK, {field: value}, seen), seen)[0] is Verb.UPDATE
    assert settling(LINK, changes(LINK, {"type": "bridge"}, seen), seen)[0] is Verb.REPLACE


def test_taken_ends_are_not_the_links_own_name(driver: LinkDriver) -> None:
    make(driver, tunnel(), nonce="")
    other = link("made1", {**tunnel().fields, "mode": "any"})
    assert not exists(driver, create(other))
    assert see(driver, other) == {}
    # Over another link the same ends make another tunnel.
    make(driver, link("made1", {**other.fields, "parent": "lanp"}))


def test_the_kernels_own_tunnel_is_not_taken_over(driver: LinkDriver, netns: Namespace) -> None:
    make(driver, tunnel())  # the first tunnel in a namespace brings ip6tnl0 along
    before = netns.ip_json("-d link show ip6tnl0")
    assert exists(driver, create(link("ip6tnl0", {**tunnel().fields, "parent": "lanp"}), NONCE))
    assert netns.ip_json("-d link show ip6tnl0") == before
    fields = look(driver, link("ip6tnl0", {})).artifact.fields
    assert (fields["local"], fields["remote"], fields["parent"]) == ("", "", "")


@pytest.mark.parametrize(("mode", "mtu"), [("ip6ip6", 1279), ("ipip6", 65535)])
def test_an_mtu_the_kernel_would_ignore_is_an_error(
    driver: LinkDriver, mode: str, mtu: int
) -> None:
    wanted = tunnel(mode=mode, mtu=mtu)
    said = error(driver, create(wanted, NONCE))
    assert said.startswith(f"created, but mtu {mtu}: Invalid argument (EINVAL)")
    assert look(driver, wanted).nonce == NONCE


def test_a_parent_that_is_gone_is_not_no_parent(driver: LinkDriver, netns: Namespace) -> None:
    make(driver, tunnel(), nonce="")
    netns.ip("link del lan")
    cut_off = look(driver, tunnel()).artifact
    assert re.fullmatch(r"if\d+", str(cut_off.fields["parent"]))
    netns.veth("lan", "lanp")
    succeed(driver, update(link("made0", {"parent": "lan"}), cut_off))
    assert look(driver, tunnel()).artifact.fields == {**cut_off.fields, "parent": "lan"}


def test_a_tunnel_of_others_keeps_its_parent(driver: LinkDriver, netns: Namespace) -> None:
    make(driver, link("below", {"type": "bridge"}))
    make(driver, tunnel(parent="below"), nonce="")
    netns.ip("addr add 192.0.0.2/29 dev made0")
    below, above = (look(driver, link(name, {})).artifact for name in ("below", "made0"))
    lost = "would take what others made: link made0, which stands on below"
    assert error(driver, delete(below)) == lost
    # The tunnel is not deleted with its parent, so an address on it is not lost.
    driver.observe(Scope(claims=claims(above)))
    succeed(driver, delete(below))
    assert netns.ip_json("-4 addr show made0")[0]["addr_info"]


_ENDS = "ip6tnl: {local: '2001:db8::1', remote: '2001:db8::2'}"
TUNNEL = {"Interface/t": f"{{ifname: t0, type: ip6tnl, {_ENDS}}}"}
NIC = {"Interface/nic": "{ifname: nic0, mtu: 1400}"}


@pytest.mark.programs
def test_it_goes_with_what_declared_it_unless_others_need_it() -> None:
    with router_scene.scene() as scene:
        needs_link_type(Namespace(), "ip6tnl")
        scene.apply({**NIC, **TUNNEL})
        router_scene.ip("addr add 192.0.0.2/29 dev t0\nlink set t0 up\n")
        report = scene.apply(NIC)
        (orphan,) = report.after.orphans
        assert (str(getattr(orphan.subject, "key", "")), orphan.removed) == ("link t0", False)
        assert "others would lose address 192.0.0.2/29" in orphan.reason
        assert not report.before.changes
        router_scene.ip("addr del 192.0.0.2/29 dev t0\n")
        report = scene.apply(NIC)
        assert [str(one.verb) for one in report.before.changes] == ["delete"]
        assert not report.failures
        assert not Path("/sys/class/net/t0").exists()
        with Ledger.read(scene.paths) as ledger:
            assert Key("link", "t0") not in ledger.claims()


def test_what_others_would_lose_is_asked_only_of_our_own() -> None:
    (adopted,) = claims(tunnel()).values()
    created = replace(adopted, provenance=Provenance.CREATED)
    assert scope(Desired(()), {created.key: created}).coming(tunnel()).ends
    assert not scope(Desired(()), {adopted.key: adopted}).coming(tunnel()).ends


def _parameters(netns: Namespace) -> dict[str, object]:
    (shown,) = netns.ip_json("-d link show made0")
    found: dict[str, object] = shown["linkinfo"]["info_data"]
    return found
