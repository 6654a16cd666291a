"""Links on the running kernel; the types it lacks run in the uml lane."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.artifact import Key, Value
from holdfast.engine.decide import settling
from holdfast.engine.diff import changes
from holdfast.engine.driver import Scope
from holdfast.engine.kinds.link import LINK, TYPES, link
from holdfast.engine.plan import Verb
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import (
    claims,
    create,
    delete,
    error,
    exists,
    look,
    replace,
    see,
    succeed,
    update,
)
from tests.host.netlink.link_cases import (
    DECLARED,
    MAC,
    NONCE,
    first,
    make,
    needs_bridge_vlans,
)
from tests.namespace import Namespace

CASES = [(kind, fields) for kind, cases in DECLARED.items() for fields in cases]
# All but those that no lane has a kernel for.
each_type = pytest.mark.parametrize("kind", list(DECLARED))
each_case = pytest.mark.parametrize(
    ("kind", "fields"), CASES, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(CASES)]
)


@pytest.fixture
def driver(netns: Namespace) -> Iterator[LinkDriver]:
    netns.veth("lan", "lanp")
    sock = NetlinkSocket()
    yield LinkDriver(sock)
    sock.close()


@pytest.mark.uml
@each_case
def test_a_created_link_reads_back_as_declared(
    driver: LinkDriver, netns: Namespace, kind: str, fields: dict[str, Value]
) -> None:
    common: dict[str, Value] = {"type": kind, "up": True, "mtu": 1400, "alias": "ours: {x}"}
    if kind != "ip6tnl" and fields.get("mode") != "passthru":  # that one shares the parent's
        common["mac"] = MAC
    artifact = link("made0", {**common, **fields})
    make(driver, artifact)
    seen = look(driver, artifact)
    assert {name: seen.artifact.fields[name] for name in artifact.fields} == artifact.fields
    assert set(seen.artifact.fields) == {
        "type", "up", "mtu", "mac", "master", "alias", "ifindex", *TYPES[kind],
    }  # fmt: skip
    # `ip` agrees that it is such a link.
    (shown,) = netns.ip_json("-d link show made0")
    assert shown["linkinfo"]["info_kind"] == kind
    assert (shown["mtu"], shown["ifalias"]) == (1400, "ours: {x}")
    assert shown["ifindex"] == seen.artifact.fields["ifindex"]


@pytest.mark.uml
@each_type
def test_the_nonce_stands_from_creation_until_settled(driver: LinkDriver, kind: str) -> None:
    artifact = first(kind)
    make(driver, artifact)
    assert look(driver, artifact).nonce == NONCE
    driver.settle({artifact.key: "4711"})
    assert look(driver, artifact).nonce == NONCE
    driver.settle({artifact.key: NONCE, Key("link", "no-such-link"): NONCE})
    assert look(driver, artifact).nonce == ""


@pytest.mark.uml
@each_type
def test_only_declared_fields_are_set(driver: LinkDriver, netns: Namespace, kind: str) -> None:
    make(driver, first(kind), nonce="")
    (shown,) = netns.ip_json("link show made0")
    assert "UP" not in shown["flags"]
    assert shown["mtu"] in (1500, 1460, 1450, 1430, 65575, 65536)  # the type's own default
    assert "ifalias" not in shown and "master" not in shown
    assert shown["group"] == "default"


@pytest.mark.uml
@each_type
def test_create_never_takes_over_a_link(driver: LinkDriver, netns: Namespace, kind: str) -> None:
    """By message, not by a look beforehand: the name is taken by a link of any kind."""
    make(driver, first(kind), nonce="")
    before = netns.ip_json("-d link show made0")
    assert exists(driver, create(first(kind, mtu=1300, alias="mine"), NONCE))
    assert netns.ip_json("-d link show made0") == before


@pytest.mark.uml
@each_type
def test_deleted_and_already_gone(driver: LinkDriver, kind: str) -> None:
    artifact = first(kind)
    make(driver, artifact)
    seen = look(driver, artifact).artifact
    succeed(driver, delete(seen))
    assert see(driver, artifact) == {}
    succeed(driver, delete(seen))


@pytest.mark.uml
@each_type
def test_a_link_of_the_same_name_made_anew_is_not_deleted(
    driver: LinkDriver, netns: Namespace, kind: str
) -> None:
    artifact = first(kind)
    make(driver, artifact)
    planned_for = look(driver, artifact).artifact
    netns.ip("link del made0")
    make(driver, artifact)
    assert "no longer what was planned for: ifindex" in error(driver, delete(planned_for))
    assert artifact.key in see(driver, artifact)


@pytest.mark.uml
@each_type
def test_replaced_by_another_of_its_type(driver: LinkDriver, kind: str) -> None:
    artifact = first(kind)
    make(driver, artifact)
    before = look(driver, artifact).artifact
    fields = DECLARED[kind][-1]
    succeed(driver, replace(link("made0", {"type": kind, **fields}), before, nonce="77"))
    after = look(driver, artifact)
    assert {name: after.artifact.fields[name] for name in fields} == fields
    assert after.artifact.fields["ifindex"] != before.fields["ifindex"]
    assert after.nonce == "77"


DRIFT: list[tuple[str, str, Value, Value]] = [
    *((kind, "up", False, True) for kind in DECLARED),
    *((kind, "up", True, False) for kind in DECLARED),
    *((kind, "mtu", 1400, 1300) for kind in DECLARED if kind != "vrf"),
    *(
        (kind, "mac", MAC, "02:00:00:00:00:43")
        for kind in DECLARED
        if kind not in ("vrf", "ip6tnl")
    ),
    *((kind, "alias", "one", "two") for kind in DECLARED),
    *((kind, "alias", "one", "") for kind in DECLARED),
    *((kind, "alias", "", "two") for kind in DECLARED),
    ("bridge", "stp", False, True),
    ("bridge", "stp", True, False),
    ("bridge", "vlan_filtering", False, True),
    ("bridge", "vlan_filtering", True, False),
    ("vxlan", "learning", True, False),
    ("vxlan", "learning", False, True),
    ("vxlan", "remote", "10.0.0.2", "10.0.0.9"),
    ("vxlan", "local", "10.0.0.1", "10.0.0.9"),
    ("bond", "miimon", 100, 200),
    ("ip6tnl", "encap_limit", "none", "4"),
    ("ip6tnl", "encap_limit", "4", "none"),
    ("ip6tnl", "encap_limit", "4", "0"),
    ("ip6tnl", "hop_limit", 64, 0),
    ("ip6tnl", "hop_limit", 0, 255),
    ("ip6tnl", "remote", "2001:db8::2", "2001:db8::9"),
    ("ip6tnl", "local", "2001:db8::1", "2001:db8::9"),
    ("ip6tnl", "local", "2001:db8::1", ""),
    ("ip6tnl", "parent", "lan", "lanp"),
    ("ip6tnl", "parent", "lan", ""),
    ("ip6tnl", "mode", "ipip6", "any"),
]


@pytest.mark.uml
@pytest.mark.parametrize(("kind", "field", "before", "after"), DRIFT)
def test_drift_is_repaired_and_nothing_else_is_touched(
    driver: LinkDriver, kind: str, field: str, before: Value, after: Value
) -> None:
    common: dict[str, Value] = {"up": True, "mtu": 1400, "alias": "x"}
    if kind != "ip6tnl":
        common["mac"] = MAC
    artifact = first(kind, **{**common, field: before})
    if field == "vlan_filtering":
        needs_bridge_vlans(driver)
    make(driver, artifact, nonce="")
    drifted = look(driver, artifact).artifact
    wanted = link("made0", {**artifact.fields, field: after})
    succeed(driver, update(wanted, drifted))
    seen = look(driver, wanted).artifact.fields
    told = {"mac": seen["mac"]} if kind == "ip6tnl" else {}  # its local end, in the form of a MAC
    assert seen == {**drifted.fields, field: after, **told}


@pytest.mark.parametrize("field", ["up", "mtu", "mac", "alias"])
def test_a_nic_that_others_made_is_settled_too(driver: LinkDriver, field: str) -> None:
    values: dict[str, Value] = {"up": False, "mtu": 1400, "mac": MAC, "alias": "uplink"}
    wanted = link("lan", {field: values[field]})
    before = look(driver, wanted).artifact
    succeed(driver, update(wanted, before))
    assert look(driver, wanted).artifact.fields == {**before.fields, field: values[field]}


def test_update_goes_only_to_the_link_planned_for(driver: LinkDriver, netns: Namespace) -> None:
    before = look(driver, link("lan", {})).artifact
    netns.ip("link del lan")
    netns.veth("lan", "lanp")
    said = error(driver, update(link("lan", {"mtu": 1300}), before))
    assert said.startswith("no longer what was planned for: ifindex is")
    assert look(driver, link("lan", {})).artifact.fields["mtu"] == 1500


def test_update_of_a_link_that_is_gone(driver: LinkDriver, netns: Namespace) -> None:
    before = look(driver, link("lan", {})).artifact
    netns.ip("link del lan")
    assert error(driver, update(link("lan", {"mtu": 1300}), before)) == "the link is gone"


def test_an_immutable_field_is_not_changed_by_update(driver: LinkDriver) -> None:
    make(driver, first("macvlan"))
    before = look(driver, first("macvlan")).artifact
    changed = update(link("made0", {"mode": "bridge"}), before)
    assert error(driver, changed) == "cannot change mode of a link that exists"


@pytest.mark.parametrize(
    ("field", "value", "verb"),
    [
        ("remote", "10.0.0.9", Verb.UPDATE),
        ("local", "10.0.0.9", Verb.UPDATE),
        ("learning", False, Verb.UPDATE),
        ("remote", "", Verb.REPLACE),
        ("remote", "fd00::9", Verb.REPLACE),
        ("remote", "239.0.0.9", Verb.REPLACE),
        ("local", "", Verb.REPLACE),
        ("port", 4790, Verb.REPLACE),
        ("vni", 8, Verb.REPLACE),
        ("parent", "lanp", Verb.REPLACE),
    ],
)
def test_what_of_a_vxlan_needs_another_one(
    driver: LinkDriver, field: str, value: Value, verb: Verb
) -> None:
    make(driver, first("vxlan"))
    before = look(driver, first("vxlan")).artifact
    wanted = link("made0", {field: value})
    assert settling(LINK, changes(LINK, wanted.fields, before.fields), before.fields)[0] is verb
    if verb is Verb.REPLACE:
        assert "cannot change" in error(driver, update(wanted, before))


def test_a_value_the_kernel_refuses_leaves_no_half_made_link(driver: LinkDriver) -> None:
    wanted = first("macvlan", mtu=9000)  # more than the parent has
    assert "Invalid argument (EINVAL)" in error(driver, create(wanted))
    assert see(driver, wanted) == {}


def test_a_link_that_cannot_be_finished_stays_recognisable(driver: LinkDriver) -> None:
    wanted = first("veth", master="br9")
    assert error(driver, create(wanted, NONCE)).startswith("created, but master br9: link br9")
    assert look(driver, wanted).nonce == NONCE


def test_a_taken_peer_or_vni_is_not_the_links_own_name(driver: LinkDriver) -> None:
    """EEXIST that is not about the identity must not read as a conflict with a foreign link."""
    wanted = link("made0", {"type": "veth", "peer": "lanp"})
    assert not exists(driver, create(wanted))
    assert see(driver, wanted) == {}
    make(driver, link("vx0", {"type": "vxlan", "vni": 7, "port": 4789}))
    other = link("vx1", {"type": "vxlan", "vni": 7, "port": 4789})
    assert not exists(driver, create(other))


def test_a_pair_is_not_deleted_for_one_that_cannot_be_made(
    driver: LinkDriver, netns: Namespace
) -> None:
    """The name of the new peer is taken, which the kernel says only once the old pair is gone."""
    old = link("made0", {"type": "veth", "peer": "made1"})
    make(driver, old)
    seen = look(driver, old)
    new = link("made0", {"type": "veth", "peer": "lanp"})
    assert "there is a link lanp" in error(driver, replace(new, seen.artifact))
    assert look(driver, old) == seen
    assert netns.ip_json("link show made1")


def test_a_mac_is_not_changed_where_others_would_lose_neighbours(
    driver: LinkDriver, netns: Namespace
) -> None:
    """With the hardware address of a link, the kernel drops all of its neighbours."""
    nic = link("lan", {"mac": MAC})
    netns.ip("neigh add 10.0.0.9 dev lan lladdr 02:00:00:00:00:09 nud permanent")
    netns.ip("neigh add fd00::9 dev lan lladdr 02:00:00:00:00:09 nud permanent")
    words = error(driver, update(nic, look(driver, nic).artifact))
    assert "would take what others made: neighbour 10.0.0.9 dev lan" in words
    assert "neighbour fd00::9 dev lan" in words
    assert len(netns.ip_json("neigh show dev lan nud permanent")) == 2
    netns.ip("neigh flush dev lan nud permanent")
    succeed(driver, update(nic, look(driver, nic).artifact))
    assert look(driver, nic).artifact.fields["mac"] == MAC


def test_a_type_nobody_can_create(driver: LinkDriver) -> None:
    assert error(driver, create(link("eth9", {"type": ""}))) == (
        "links of type '' cannot be created"
    )


def test_an_alternative_name_is_no_identity(driver: LinkDriver, netns: Namespace) -> None:
    """The kernel finds links by alternative names as well: a delete by name would hit `lan`."""
    netns.ip("link property add dev lan altname made0")
    ghost = link("made0", {"type": "veth", "peer": "lanp"})
    assert see(driver, ghost) == {}
    succeed(driver, delete(ghost))
    assert netns.ip_json("link show lan")
    said = error(driver, create(ghost, NONCE))
    assert "(EEXIST)" in said


def test_a_renamed_link_is_left_alone(driver: LinkDriver, netns: Namespace) -> None:
    artifact = first("bridge")
    make(driver, artifact)
    seen = look(driver, artifact).artifact
    netns.ip("link set made0 name theirs")
    succeed(driver, delete(seen))
    assert netns.ip_json("link show theirs")


def test_a_bridge_is_deleted_although_its_mac_followed_its_ports(driver: LinkDriver) -> None:
    artifact = first("bridge")
    make(driver, artifact)
    port = look(driver, link("lan", {})).artifact
    seen = look(driver, artifact).artifact
    succeed(driver, update(link("lan", {"master": "made0"}), port))
    assert look(driver, artifact).artifact.fields["mac"] != seen.fields["mac"]
    driver.observe(Scope(claims=claims(port)))  # it was we who made it a port
    succeed(driver, delete(seen))
    assert see(driver, artifact) == {}


@pytest.mark.parametrize(
    ("command", "lost"),
    [
        ("addr add 192.0.2.9/24 dev made0", "address 192.0.2.9/24 dev made0"),
        ("addr add 2001:db8::9/64 dev made0 nodad", "address 2001:db8::9 dev made0"),
        ("route add 10.9.0.0/16 dev made0", "route 10.9.0.0/16"),
        ("neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev made0", "neighbour 192.0.2.9 dev made0"),
        ("link add top0 link made0 type macvlan", "link top0, which stands on made0"),
        ("link set wan master made0", "the place of link wan in made0"),
    ],
)
def test_a_link_that_others_built_on_is_not_deleted(
    driver: LinkDriver, netns: Namespace, command: str, lost: str
) -> None:
    artifact = first("bridge")
    make(driver, artifact)
    netns.ip("link set made0 up")
    if "link wan" in lost:
        netns.veth("wan", "isp")
    netns.ip(command)
    words = error(driver, delete(look(driver, artifact).artifact))
    assert words.startswith("would take what others made")
    assert lost in words
    assert see(driver, artifact) != {}


def test_a_peer_in_another_namespace_has_no_name_here(driver: LinkDriver, netns: Namespace) -> None:
    make(driver, first("veth"))
    holder = netns.run("sh", "-c", "unshare --net sleep 30 >/dev/null 2>&1 & echo $!").strip()
    try:
        _move_when_ready(netns, holder)
        assert look(driver, first("veth")).artifact.fields["peer"] == ""
    finally:
        netns.run("kill", holder)


def _move_when_ready(netns: Namespace, pid: str) -> None:
    own = netns.run("readlink", "/proc/self/ns/net")
    for _ in range(200):
        if netns.run("readlink", f"/proc/{pid}/ns/net") != own:
            netns.ip(f"link set made1 netns {pid}")
            return
        netns.run("sleep", "0.01")
    raise AssertionError("no other namespace")


def test_only_wanted_and_claimed_links_are_reported(driver: LinkDriver) -> None:
    lan, peer, lo = link("lan", {}), link("lanp", {}), link("lo", {})
    assert set(see(driver, lan, claimed=[peer])) == {lan.key, peer.key}
    assert look(driver, lo).artifact.fields["type"] == ""
    assert look(driver, lan).artifact.fields["type"] == "veth"
    assert see(driver, link("eth9", {})) == {}


def test_every_field_of_the_kind_is_read_by_some_type() -> None:
    assert {*DECLARED, "wireguard"} == set(TYPES)
    declared = {name for cases in DECLARED.values() for fields in cases for name in fields}
    assert declared | {"type", "up", "mtu", "mac", "master", "alias"} == set(LINK.fields)
