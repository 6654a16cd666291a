"""The name of an interface mistyped: what hangs on the old one does not leave it for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.confirm_scene import document
from tests.cli.conftest import Holdfast
from tests.lanes import needs_programs
from tests.namespace import Namespace

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
REFUSED = 4
LAN = ("Interface", "lan", "{ifname: lan0, adminUp: true}")
TYPO = ("Interface", "lan", "{ifname: lan9, adminUp: true}")
OBSERVED = ("Interface", "lan", "{ifname: lan9, managed: false}")
ADDRESS = ("IPv4StaticAddress", "lan", "{interface: lan, address: 192.0.2.1/24}")
OTHER = ("IPv4StaticAddress", "lan", "{interface: lan, address: 192.0.2.2/24}")


@pytest.fixture
def lan(holdfast: Holdfast, netns: Namespace) -> Namespace:
    netns.veth("lan0", "far0")
    netns.veth("lan1", "far1")
    holdfast.declare(LAN, ADDRESS)
    holdfast.set_up("apply", "router.yaml", "--yes")
    return netns


@pytest.mark.parametrize("interface", [TYPO, OBSERVED], ids=["managed", "observed"])
def test_refused_with_the_names_that_are_near(
    holdfast: Holdfast, lan: Namespace, interface: tuple[str, str, str]
) -> None:
    holdfast.declare(interface, OTHER)
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == REFUSED
    assert "link lan9 is declared (Interface/lan, " in done.err
    assert "address 192.0.2.1/24 dev lan0 of IPv4StaticAddress/lan would be deleted" in done.err
    assert "did you mean 'lan1' or 'lan0'?" in done.err
    assert "say --allow-mass-delete" in done.err
    assert "192.0.2.1/24" in lan.ip("addr show dev lan0")
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    assert plan["refusal"].startswith("link lan9 is declared")
    assert holdfast.run("apply", "router.yaml", "--dry-run").code == REFUSED
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert "192.0.2.1/24" not in lan.ip("addr show dev lan0")


def test_refused_only_until_it_is_meant(holdfast: Holdfast, lan: Namespace) -> None:
    """An address that only moves stays while what shall take its place waits; what is in force is
    asked for no more, whatever else changes in the file."""
    holdfast.declare(TYPO, ADDRESS)
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == REFUSED
    assert "while IPv4StaticAddress/lan would leave lan0 for it" in done.err
    assert "did you mean 'lan1' or 'lan0'?" in done.err
    assert holdfast.ok("plan", "router.yaml", "-o", "json").json["refusal"]
    holdfast.set_up("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert "192.0.2.1/24" in lan.ip("addr show dev lan0")
    holdfast.set_up("apply", "router.yaml", "--yes")
    holdfast.declare(TYPO, ADDRESS, ("Interface", "second", "{ifname: lan1, adminUp: true}"))
    holdfast.set_up("apply", "router.yaml", "--yes")


# Each on an interface called `it`, with what it needs beside it.
HANGING = {
    "address": "net IPv4StaticAddress a {interface: it, address: 192.0.2.1/24}",
    "route": "net IPv4Route a {destination: 10.7.0.0/16, interface: it}",
    "neighbour": "net Neighbour a {interface: it, address: 192.0.2.9, mac: '02:00:5e:10:00:09'}",
    "zone": "firewall Zone a {interfaces: [it, beside]}",
    "nat": "net IPv4SourceNAT a {outboundInterface: it, sourceCIDRs: [10.7.0.0/16],"
    " translation: {type: interfaceAddress}}",
    "scope": "net IPv4DHCPScope a"
    " {server: a, interface: it, rangeStart: 192.0.2.100, rangeEnd: 192.0.2.199,"
    " dnsSource: none}",
}
BESIDE = {
    "zone": ("firewall FirewallPolicy a {input: {default: accept}}",),
    "scope": (
        "net IPv4StaticAddress b {interface: it, address: 192.0.2.1/24}",
        "net IPv4DHCPServer a {listenInterfaces: [it], dns: {enabled: false}}",
    ),
}
# One that others look after is never claimed, and one that is up before it is declared neither.
MANAGED = {"set": "adminUp: true", "observed": "managed: false"}


@pytest.fixture
def put(holdfast: Holdfast, netns: Namespace) -> Iterator[Callable[..., tuple[int, str]]]:
    """Applies a file in which the interface called `it` has a name of the kernel's."""
    for near, far in (("lan0", "far0"), ("lan1", "far1")):
        netns.veth(near, far)
        netns.ip(f"link set {near} up")
    file = holdfast.folder / "router.yaml"

    def apply(name: str, managed: str, *resources: str) -> tuple[int, str]:
        links = (
            f"net Interface it {{ifname: {name}, {managed}}}",
            "net Interface beside {ifname: lan1, managed: false}",
        )
        file.write_text(document((*links, *resources)))
        return holdfast.forked("apply", "router.yaml", "--yes")

    yield apply
    holdfast.set_up("cleanup", "router.yaml", "--yes")


@pytest.mark.parametrize("managed", MANAGED.values(), ids=MANAGED)
@pytest.mark.parametrize("what", HANGING)
def test_whatever_hangs_on_it(
    put: Callable[..., tuple[int, str]], netns: Namespace, what: str, managed: str
) -> None:
    if what == "scope":
        needs_programs("dnsmasq")
    resources = (HANGING[what], *BESIDE.get(what, ()))
    code, said = put("lan0", managed, *resources)
    assert code == 0, said
    code, said = put("lan9", managed, *resources)
    assert code == REFUSED, said
    assert "link lan9 is declared (Interface/it, " in said
    assert "did you mean 'lan1' or 'lan0'?" in said
    # The old one is gone, too: nothing that is there is left for it.
    netns.ip("link del lan0")
    code, said = put("lan9", managed, *resources)
    assert code == 0, said


def test_a_resource_that_changes_over_to_another_interface(
    put: Callable[..., tuple[int, str]],
) -> None:
    new = "net Interface new {ifname: lan9, adminUp: true}"
    address = "net IPv4StaticAddress a {interface: %s, address: 192.0.2.1/24}"
    assert put("lan0", "adminUp: true", new, address % "it")[0] == 0
    assert put("lan0", "adminUp: true", new, address % "new")[0] == REFUSED


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("lan0", "adminUp: true"), ("lan9", "adminUp: true")),
        (("lan9", "adminUp: true"), ("lan8", "adminUp: true", HANGING["address"])),
        (("lan9", "adminUp: true", HANGING["address"]), ("lan8", "mtu: 1400", HANGING["address"])),
        (
            ("lan0", "adminUp: true", HANGING["address"]),
            ("br0", "type: bridge", HANGING["address"]),
        ),
        (
            ("lan0", "adminUp: true", HANGING["address"]),
            ("lan0", "adminUp: true", HANGING["address"], "net Interface new {ifname: lan9}"),
        ),
    ],
    ids=["nothing-on-it", "new-on-it", "none-was-there", "made-by-this-plan", "one-more"],
)
def test_not_refused(
    put: Callable[..., tuple[int, str]], first: tuple[str, ...], then: tuple[str, ...]
) -> None:
    for each in (first, then):
        code, said = put(*each)
        assert code == 0, said


def test_unplugged_while_the_file_changes_elsewhere(
    put: Callable[..., tuple[int, str]], netns: Namespace
) -> None:
    on_it = (HANGING["address"], HANGING["zone"], *BESIDE["zone"])
    assert put("lan0", "adminUp: true", *on_it)[0] == 0
    netns.ip("link set lan0 down")
    netns.ip("link set lan0 name foo0")
    code, said = put("lan0", "adminUp: true, mtu: 1400", *on_it)
    assert code == 0, said
    assert "192.0.2.1/24" in netns.ip("addr show dev foo0")


def test_the_first_apply(put: Callable[..., tuple[int, str]]) -> None:
    code, said = put("lan9", "adminUp: true", HANGING["address"])
    assert code == 0, said


def test_the_example_of_a_home(holdfast: Holdfast, netns: Namespace) -> None:
    """What is changed would cut its LAN off, not what is deleted: the filter, the DHCP server."""
    needs_programs("dnsmasq", "dhcpcd")
    netns.veth("eth0", "far0")
    netns.veth("eth1", "far1")
    text = (EXAMPLES / "home.yaml").read_text()
    file = holdfast.folder / "home.yaml"
    file.write_text(text)
    try:
        holdfast.set_up("apply", "home.yaml", "--yes")
        before = netns.run("nft", "list", "ruleset")
        assert '"eth1"' in before
        file.write_text(text.replace("ifname: eth1", "ifname: etn1"))
        done = holdfast.run("apply", "home.yaml", "--yes")
        assert done.code == REFUSED
        assert "link etn1 is declared (Interface/lan, home.yaml:" in done.err
        assert " would leave eth1 for it" in done.err
        assert "did you mean 'eth1' or 'eth0'?" in done.err
        assert netns.run("nft", "list", "ruleset") == before
        file.write_text(text)
        holdfast.set_up("apply", "home.yaml", "--yes")
    finally:
        holdfast.set_up("cleanup", "home.yaml", "--yes")


def test_what_others_delete_is_not_kept_for_a_nic_that_was_unplugged(
    holdfast: Holdfast, lan: Namespace
) -> None:
    """The resource that goes has nothing to do with the NIC that is gone."""
    second = ("Interface", "second", "{ifname: lan1}")
    beside = ("IPv4StaticAddress", "second", "{interface: second, address: 198.51.100.1/24}")
    holdfast.declare(LAN, ADDRESS, second, beside)
    holdfast.ok("apply", "router.yaml", "--yes")
    lan.ip("link del lan0")
    holdfast.declare(LAN, OTHER, second)
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "198.51.100.1/24" not in lan.ip("addr show dev lan1")


HOME = ("Interface", "home", "{ifname: lna0, adminUp: true}")
ELSEWHERE = ("Interface", "home", "{ifname: usb9, adminUp: true}")
STAYS = ("Interface", "lan", "{ifname: lan0}")


@pytest.mark.parametrize(
    "resources",
    [
        (HOME, ("IPv4StaticAddress", "home", "{interface: home, address: 192.0.2.1/24}")),
        (HOME, ("IPv4StaticAddress", "home", "{interface: home, address: 192.0.2.2/24}")),
        (HOME, ("IPv4DHCPAddress", "home", "{interface: home}")),
        (ELSEWHERE, ("IPv4StaticAddress", "home", "{interface: home, address: 192.0.2.1/24}")),
        (
            STAYS,
            ELSEWHERE,
            ("IPv4StaticAddress", "home", "{interface: home, address: 192.0.2.1/24}"),
        ),
    ],
    ids=["all-renamed", "and-another-address", "and-another-kind", "same-address", "link-stays"],
)
def test_everything_that_refers_to_it_is_renamed_too(
    holdfast: Holdfast, lan: Namespace, resources: tuple[tuple[str, str, str], ...]
) -> None:
    holdfast.declare(*resources)
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == REFUSED
    name = "lna0" if HOME in resources else "usb9"
    assert f"link {name} is declared (Interface/home, " in done.err
    assert "/home would leave lan0 for it" in done.err
    assert ("did you mean 'lan0'" in done.err) == (name == "lna0")
    assert "say --allow-mass-delete" in done.err
    assert "192.0.2.1/24" in lan.ip("addr show dev lan0")
    assert holdfast.run("apply", "router.yaml", "--yes", "--allow-mass-delete").code != REFUSED
    assert holdfast.run("apply", "router.yaml", "--yes").code != REFUSED


@pytest.mark.usefixtures("lan")
@pytest.mark.parametrize(
    "resources",
    [
        (ELSEWHERE, ("IPv4StaticAddress", "home", "{interface: home, address: 198.51.100.1/24}")),
        (
            STAYS,
            HOME,
            ("IPv4StaticAddress", "home", "{interface: home, address: 198.51.100.1/24}"),
            ADDRESS,
        ),
        (STAYS, HOME, ("IPv4StaticAddress", "home", "{interface: home, address: 192.0.2.2/24}")),
        (HOME,),
        (
            ("Interface", "home", "{ifname: lan0, adminUp: true}"),
            ("Interface", "new", "{ifname: usb9, adminUp: true}"),
            ("IPv4StaticAddress", "home", "{interface: home, address: 192.0.2.1/24}"),
            ("IPv4StaticAddress", "new", "{interface: new, address: 198.51.100.1/24}"),
        ),
    ],
    ids=["new-and-elsewhere", "one-more", "the-old-one-stays", "nothing-on-it", "one-of-two"],
)
def test_renamed_and_not_refused(
    holdfast: Holdfast, resources: tuple[tuple[str, str, str], ...]
) -> None:
    holdfast.declare(*resources)
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code != REFUSED, done.err


def test_a_pair_that_is_made_under_other_names(holdfast: Holdfast, netns: Namespace) -> None:
    """Its second end comes with the first, in the same pass."""

    def declare(near: str, far: str, address: str) -> None:
        holdfast.declare(
            ("Interface", "near", f"{{ifname: {near}, type: veth, veth: {{peer: {far}}}}}"),
            ("Interface", "far", f"{{ifname: {far}, adminUp: true}}"),
            ("IPv4StaticAddress", "far", f"{{interface: far, address: {address}}}"),
        )

    declare("a0", "b0", "192.0.2.1/24")
    holdfast.ok("apply", "router.yaml", "--yes")
    declare("a1", "b1", "192.0.2.2/24")
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "192.0.2.2/24" in netns.ip("addr show dev b1")
