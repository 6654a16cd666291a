"""MACs that follow other links', and what others lose with them: told beforehand, and compared
with what the kernel really drops."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Scope
from holdfast.engine.kinds.link import link
from holdfast.host.netlink.links import link_losses
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import claims, create, delete, error, look, succeed, update
from tests.lanes import needs_link_type
from tests.namespace import Namespace

LOW, MIDDLE, HIGH = "02:00:00:00:00:01", "02:00:00:00:00:05", "02:00:00:00:00:09"
LOST = "would take what others made: neighbour 10.0.0.7 dev br0 (protocol 0"


@pytest.fixture
def driver(netns: Namespace) -> Iterator[LinkDriver]:
    """A foreign bridge with a port, and two links to be ports."""
    for name, mac in (("low", LOW), ("middle", MIDDLE), ("high", HIGH)):
        netns.veth(name, f"{name}p")
        netns.ip(f"link set {name} address {mac}")
    netns.ip("link add br0 type bridge")
    netns.ip("link set br0 up")
    netns.ip("link set middle master br0")
    assert _mac(netns) == MIDDLE
    sock = NetlinkSocket()
    yield LinkDriver(sock)
    sock.close()


def _mac(netns: Namespace, name: str = "br0") -> str:
    return str(netns.ip_json(f"link show {name}")[0]["address"])


def _neighbour(netns: Namespace, dev: str = "br0") -> None:
    netns.ip(f"neigh add 10.0.0.7 lladdr 02:00:00:00:00:77 dev {dev} nud permanent")


def _kept(netns: Namespace, dev: str = "br0") -> bool:
    return bool(netns.ip_json(f"neigh show dev {dev} nud permanent"))


def _join(driver: LinkDriver, name: str, master: str = "br0") -> str:
    """The words of a refusal, "" where it joined."""
    before = look(driver, link(name, {})).artifact
    (result,) = driver.apply([update(link(name, {"master": master}), before)], lambda _count: None)
    assert (look(driver, link(name, {})).artifact.fields["master"] == master) is result.ok
    return "; ".join(failure.error for failure in result.failures)


def test_a_port_that_would_move_the_mac_is_kept_out(driver: LinkDriver, netns: Namespace) -> None:
    _neighbour(netns)
    assert _join(driver, "low").startswith(f"master br0: {LOST}")
    assert (_mac(netns), _kept(netns)) == (MIDDLE, True)
    netns.ip("neigh del 10.0.0.7 dev br0")
    assert _join(driver, "low") == ""
    assert _mac(netns) == LOW


def test_it_is_so_that_the_kernel_would_have_dropped_it(netns: Namespace) -> None:
    netns.veth("port", "portp")
    netns.ip("link add br0 type bridge")
    netns.ip("link set br0 up")
    netns.ip("addr add 10.0.0.1/24 dev br0")
    netns.ip("route add 10.9.0.0/16 via 10.0.0.9 proto static")
    _neighbour(netns)
    for command in ("link set port master br0", "link set port nomaster"):
        netns.ip(command)
        assert not _kept(netns)
        _neighbour(netns)
    assert _mac(netns) == "00:00:00:00:00:00"
    assert "10.9.0.0/16" in netns.ip("route show"), "addresses and routes stay"


def test_a_port_that_moves_nothing_joins_and_leaves(driver: LinkDriver, netns: Namespace) -> None:
    _neighbour(netns)
    assert _join(driver, "high") == ""
    assert _join(driver, "high", "") == ""
    assert (_mac(netns), _kept(netns)) == (MIDDLE, True)


def test_the_port_whose_mac_it_is_stays(driver: LinkDriver, netns: Namespace) -> None:
    netns.ip("link set high master br0")
    _neighbour(netns)
    assert LOST in _join(driver, "middle", "")
    before = look(driver, link("middle", {})).artifact
    changed = update(link("middle", {"mac": LOW}), before)
    assert LOST in error(driver, changed)
    assert LOST in error(driver, delete(before))
    assert (_mac(netns), _kept(netns)) == (MIDDLE, True)
    succeed(driver, delete(look(driver, link("high", {})).artifact))
    assert _kept(netns)


def test_a_new_link_does_not_join_either(driver: LinkDriver, netns: Namespace) -> None:
    _neighbour(netns)
    wanted = link("made0", {"type": "veth", "peer": "made1", "mac": LOW, "master": "br0"})
    assert LOST in error(driver, create(wanted))
    assert _kept(netns)


def test_our_own_neighbours_are_no_reason(driver: LinkDriver, netns: Namespace) -> None:
    """The next round of the pass puts them back."""
    _neighbour(netns)
    before = look(driver, link("low", {})).artifact
    ours = Artifact(Key("neighbour", "10.0.0.7 dev br0"), {})
    driver.observe(Scope(claims=claims(ours)))
    succeed(driver, update(link("low", {"master": "br0"}), before))
    assert not _kept(netns)


def test_a_bridge_with_a_mac_of_its_own_takes_any_port(
    driver: LinkDriver, netns: Namespace
) -> None:
    netns.ip(f"link set br0 address {HIGH}")
    _neighbour(netns)
    assert _join(driver, "low") == ""
    assert (_mac(netns), _kept(netns)) == (HIGH, True)


_ASK = """
from holdfast.host.netlink.links import following_macs, link_losses
from holdfast.host.netlink.socket import NetlinkSocket
links = link_losses.read_links(NetlinkSocket())
old, new = [links["middle"]["mac"]], [links["middle"]["mac"], links["low"]["mac"]]
print(following_macs.moves("br0", links["br0"], old, new))
"""


@pytest.mark.parametrize(
    ("command", "moves"), [("true", True), (f"ip link set br0 address {MIDDLE}", False)]
)
@pytest.mark.usefixtures("driver")
def test_sysfs_tells_a_mac_that_was_set_to_what_it_was(
    netns: Namespace, command: str, moves: bool
) -> None:
    """Where it is that of the namespace; the tests' own is not."""
    netns.run(*command.split())
    sock = NetlinkSocket()
    links = link_losses.read_links(sock)
    sock.close()
    assert links["br0"]["mac"] == links["middle"]["mac"]
    mounted = f"mount -t sysfs sysfs /sys && exec {sys.executable} -c '{_ASK}'"
    said = netns.run("unshare", "--mount", "--propagation", "private", "sh", "-c", mounted)
    assert said.strip() == str(moves)


@pytest.mark.uml
def test_vlans_take_over_the_mac_and_drop_their_neighbours(
    driver: LinkDriver, netns: Namespace
) -> None:
    needs_link_type(netns, "vlan")
    netns.ip("link add link br0 name v10 type vlan id 10")
    netns.ip("link add link v10 name v20 type vlan id 20")
    netns.ip(f"link add link br0 name own address {HIGH} type vlan id 30")
    for dev in ("v10", "v20", "own"):
        netns.ip(f"link set {dev} up")
    _neighbour(netns, "own")
    assert _join(driver, "low") == ""
    assert (_mac(netns, "v20"), _kept(netns, "own")) == (LOW, True)
    assert _join(driver, "low", "") == ""
    _neighbour(netns, "v20")
    assert "neighbour 10.0.0.7 dev v20" in _join(driver, "low")
    assert (_mac(netns, "v20"), _kept(netns, "v20")) == (MIDDLE, True)


@pytest.mark.uml
def test_vlans_of_a_nic_take_over_its_mac(driver: LinkDriver, netns: Namespace) -> None:
    needs_link_type(netns, "vlan")
    netns.ip("link add link high name v10 type vlan id 10")
    netns.ip("link set v10 up")
    _neighbour(netns, "v10")
    before = look(driver, link("high", {})).artifact
    assert "10.0.0.7 dev v10" in error(driver, update(link("high", {"mac": LOW}), before))
    assert _kept(netns, "v10")


@pytest.mark.uml
def test_a_bond_takes_the_mac_of_its_first_member(driver: LinkDriver, netns: Namespace) -> None:
    needs_link_type(netns, "bond")
    netns.ip("link add bond0 type bond mode active-backup")
    netns.ip("link set bond0 up")
    _neighbour(netns, "bond0")
    lost = "neighbour 10.0.0.7 dev bond0"
    assert lost in _join(driver, "low", "bond0")
    netns.ip("neigh del 10.0.0.7 dev bond0")
    assert _join(driver, "low", "bond0") == ""
    assert _mac(netns, "bond0") == LOW
    _neighbour(netns, "bond0")
    assert _join(driver, "high", "bond0") == ""
    assert _join(driver, "low", "") == ""
    assert (_mac(netns, "bond0"), _kept(netns, "bond0")) == (LOW, True)
    assert lost in _join(driver, "high", "")
    assert _kept(netns, "bond0")
