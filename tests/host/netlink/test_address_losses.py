"""What goes along with an IPv4 address: the prediction against what really vanished."""

from __future__ import annotations

import pytest

from holdfast.host.netlink.addresses.driver import AddressDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import TAG, at, create, delete, look, losses, see, succeed
from tests.host.netlink.vanished import foreign, gone_with, names
from tests.lanes import needs_link_type
from tests.namespace import Namespace

OURS = at("10.0.0.1/24", "lan")


@pytest.fixture
def driver(between_two_links: AddressDriver) -> AddressDriver:
    return between_two_links


@pytest.mark.uml
def test_nothing_goes_with_an_address_among_others(netns: Namespace, driver: AddressDriver) -> None:
    succeed(driver, create(OURS))
    foreign(
        netns,
        "addr add 10.5.0.1/24 dev lan",
        "route add 10.20.0.0/24 via 10.0.0.9 proto static",
        "route add 10.21.0.0/24 dev lan proto static",
        "neigh add 10.0.0.77 lladdr 02:00:00:00:00:77 dev lan nud permanent",
    )
    assert gone_with(netns, driver, OURS) == ([], set())


@pytest.mark.uml
@pytest.mark.parametrize("promote", ["none", "lan", "all"])
def test_secondaries(netns: Namespace, driver: AddressDriver, promote: str) -> None:
    succeed(driver, create(OURS))
    if promote != "none":
        netns.run("sysctl", "-qw", f"net.ipv4.conf.{promote}.promote_secondaries=1")
    foreign(
        netns,
        "addr add 10.0.0.2/24 dev lan",
        "addr add 10.0.0.3/24 dev lan",
        "addr add 10.0.0.4/16 dev lan",
        "route add 10.20.0.0/24 via 10.1.0.9 src 10.0.0.1 proto static",
        "route add 10.21.0.0/24 via 10.1.0.9 src 10.0.0.2 proto static",
        "route add 10.22.0.0/24 via 10.1.0.9 src 10.0.0.3 proto static table 300",
        "route add 10.23.0.0/24 via 10.1.0.9 src 10.0.0.4 proto static",
    )
    predicted, lost = gone_with(netns, driver, OURS)
    expected = ["route 10.20.0.0/24"]
    swept: list[str] = []
    if promote == "none":
        expected += ["route 10.21.0.0/24"]
        swept += ["address 10.0.0.2/24 dev lan", "address 10.0.0.3/24 dev lan"]
    assert names(predicted) == expected
    assert names(lost) == sorted(expected + swept)


@pytest.mark.uml
def test_secondaries_of_others_come_back(netns: Namespace, driver: AddressDriver) -> None:
    """They go with the primary and are put back at once: nobody loses them."""
    succeed(driver, create(OURS))
    foreign(netns, "addr add 10.0.0.2/24 dev lan label lan:two", "addr add 10.0.0.3/24 dev lan")
    foreign(netns, "addr add 10.5.0.1/24 dev lan", "route add 10.20.0.0/24 via 10.0.0.9")
    before = netns.ip("-4 addr show dev lan")
    assert OURS.key not in losses(driver)
    (done,) = succeed(driver, delete(see(driver)[OURS.key].artifact))
    assert done.notes == (
        "address 10.0.0.2/24 dev lan went with it and was put back",
        "address 10.0.0.3/24 dev lan went with it and was put back",
    )
    shown = netns.ip("-4 addr show dev lan")
    assert [one for one in before.split() if one not in shown.split()] == ["10.0.0.1/24"]
    assert "10.20.0.0/24 via 10.0.0.9" in netns.ip("route show")


@pytest.mark.uml
def test_preferred_sources_die_in_the_main_table_only(
    netns: Namespace, driver: AddressDriver
) -> None:
    succeed(driver, create(OURS))
    foreign(
        netns,
        "addr add 10.5.0.1/24 dev lan",
        "route add 10.20.0.0/24 via 10.1.0.9 src 10.0.0.1 proto static",
        "route add 10.20.0.0/24 via 10.1.0.9 src 10.0.0.1 proto bird metric 50",
        "route add 10.21.0.0/24 via 10.1.0.9 src 10.0.0.1 proto static table 300",
        "route add 10.22.0.0/24 via 10.1.0.9 proto static",
    )
    predicted, lost = gone_with(netns, driver, OURS)
    assert predicted == [
        "route 10.20.0.0/24 (protocol static)",
        "route 10.20.0.0/24 metric 50 (protocol bird)",
    ]
    assert names(predicted) == names(lost)


@pytest.mark.uml
@pytest.mark.parametrize("elsewhere", ["10.0.0.1/16 dev lan", "10.0.0.1/32 dev wan"])
def test_a_preferred_source_that_remains_elsewhere(
    netns: Namespace, driver: AddressDriver, elsewhere: str
) -> None:
    succeed(driver, create(OURS))
    foreign(
        netns,
        "addr add 10.5.0.1/24 dev lan",
        f"addr add {elsewhere}",
        "route add 10.20.0.0/24 via 10.1.0.9 src 10.0.0.1 proto static",
    )
    assert gone_with(netns, driver, OURS) == ([], set())


@pytest.mark.uml
def test_the_last_ipv4_address(netns: Namespace, driver: AddressDriver) -> None:
    succeed(driver, create(OURS))
    foreign(
        netns,
        "route add 10.20.0.0/24 via 10.0.0.9 proto static",
        "route add 10.21.0.0/24 via 10.0.0.9 proto static table 300",
        "route add 10.22.0.0/24 dev lan",
        "route add 10.23.0.0/24 proto static nexthop via 10.0.0.9 dev lan nexthop via 10.1.0.9",
        "route add 10.24.0.0/24 proto static nexthop via 10.0.0.9 dev lan"
        " nexthop via 10.0.0.8 dev lan",
        "nexthop add id 7 via 10.0.0.9 dev lan",
        "route add 10.25.0.0/24 nhid 7 proto static",
        "route add blackhole 10.26.0.0/24 proto static",
        "route add 10.27.0.0/24 via inet6 fe80::1 dev lan proto static",
        "route add 10.28.0.0/24 via 10.1.0.9 proto static",
        "route add 10.29.0.0/24 via 10.0.0.9 proto 72",
        "neigh add 10.0.0.77 lladdr 02:00:00:00:00:77 dev lan nud permanent",
        "neigh add 10.0.0.78 lladdr 02:00:00:00:00:78 dev lan nud noarp",
        "neigh add 10.0.0.79 lladdr 02:00:00:00:00:79 dev lan nud permanent proto 72",
        "neigh add fd00::77 lladdr 02:00:00:00:00:77 dev lan nud permanent",
        "neigh add 10.1.0.77 lladdr 02:00:00:00:00:77 dev wan nud permanent",
    )
    predicted, lost = gone_with(netns, driver, OURS)
    assert names(predicted) == names(lost)
    assert predicted == [
        "neighbour 10.0.0.77 dev lan (protocol 0 (made by hand or by a program that sets none))",
        "neighbour 10.0.0.78 dev lan (protocol 0 (made by hand or by a program that sets none))",
        "route 10.20.0.0/24 (protocol static)",
        "route 10.21.0.0/24 table 300 (protocol static)",
        "route 10.22.0.0/24 (protocol boot)",
        "route 10.24.0.0/24 (protocol static)",
        "route 10.27.0.0/24 (protocol static)",
        "the leg over lan of route 10.23.0.0/24 (protocol static)",
    ]


@pytest.mark.uml
def test_of_several_last_addresses_one_stays(netns: Namespace, driver: AddressDriver) -> None:
    others = [at("10.6.0.1/24", "lan"), at("10.0.0.2/24", "lan")]
    succeed(driver, create(OURS), *(create(other) for other in others))
    foreign(netns, "route add 10.20.0.0/24 via 10.0.0.9 proto static")
    seen = see(driver)
    assert list(losses(driver)) == [OURS.key]
    succeed(driver, *(delete(seen[other.key].artifact) for other in others))
    assert "10.20.0.0/24" in netns.ip("route show")
    assert set(see(driver)) == {OURS.key}


@pytest.mark.uml
def test_the_last_of_several_is_refused_even_if_all_were_planned(
    netns: Namespace, driver: AddressDriver
) -> None:
    """The route came after the plan was made."""
    other = at("10.6.0.1/24", "lan")
    succeed(driver, create(OURS), create(other))
    seen = see(driver)
    assert not losses(driver)
    foreign(netns, "route add 10.20.0.0/24 via 10.0.0.9 proto static")
    results = driver.apply(
        [delete(seen[OURS.key].artifact), delete(seen[other.key].artifact)], lambda _done: None
    )
    assert [result.ok for result in results] == [True, False]
    assert "10.20.0.0/24" in netns.ip("route show")


@pytest.mark.uml
def test_secondaries_of_ours_come_back(driver: AddressDriver) -> None:
    """A declared secondary goes with an orphaned primary, and is put back at once."""
    kept, leaving = at("10.0.0.2/24", "lan"), at("10.0.0.3/24", "lan")
    succeed(driver, create(OURS), create(kept), create(leaving))
    seen = see(driver, kept)
    assert OURS.key not in losses(driver, kept)
    first, second = succeed(
        driver, delete(seen[OURS.key].artifact), delete(seen[leaving.key].artifact)
    )
    assert first.notes == ("address 10.0.0.2/24 dev lan went with it and was put back",)
    assert second.notes == ()
    assert {key: one.artifact for key, one in see(driver).items()} == {
        kept.key: seen[kept.key].artifact
    }


@pytest.mark.uml
def test_claimed_secondaries_come_back(netns: Namespace, driver: AddressDriver) -> None:
    adopted = at("10.0.0.2/24", "lan")
    succeed(driver, create(OURS))
    foreign(netns, "addr add 10.0.0.2/24 dev lan label lan:two")
    seen = see(driver, adopted, claimed=[adopted])
    assert OURS.key not in losses(driver, adopted, claimed=[adopted])
    succeed(driver, delete(seen[OURS.key].artifact))
    assert look(driver, adopted).artifact == seen[adopted.key].artifact
    assert "lan:two" in netns.ip("addr show dev lan")


@pytest.mark.uml
def test_what_is_wanted_is_not_asked_about(netns: Namespace, driver: AddressDriver) -> None:
    succeed(driver, create(OURS))
    foreign(netns, "route add 10.20.0.0/24 via 10.0.0.9 proto static")
    assert OURS.key not in losses(driver, OURS)
    assert OURS.key in losses(driver)


@pytest.mark.uml
def test_a_vrf_keeps_its_sources_to_itself(netns: Namespace, driver: AddressDriver) -> None:
    needs_link_type(netns, "vrf")
    foreign(
        netns, "link add blue type vrf table 500", "link set blue up", "link set lan master blue"
    )
    succeed(driver, create(OURS))
    foreign(
        netns,
        "addr add 10.5.0.1/24 dev lan",
        "addr add 10.0.0.1/32 dev wan",
        "route add 10.20.0.0/24 via 10.1.0.9 src 10.0.0.1 proto static",
        "route add 10.21.0.0/24 via 10.0.0.9 src 10.0.0.1 table 500 proto static",
        "route add 10.22.0.0/24 via 10.0.0.9 table 500 proto static",
    )
    predicted, lost = gone_with(netns, driver, OURS)
    assert names(predicted) == names(lost) == ["route 10.21.0.0/24 table 500"]


def test_routes_are_read_only_when_something_of_ours_is_to_go(driver: AddressDriver) -> None:
    succeed(driver, create(OURS))
    sock = CountingSocket()
    counted = AddressDriver(sock, TAG)
    look(counted, OURS)
    assert _RTM_GETROUTE not in sock.dumped
    see(counted)
    assert _RTM_GETROUTE in sock.dumped
    sock.close()


_RTM_GETROUTE = 26


class CountingSocket(NetlinkSocket):
    def __init__(self) -> None:
        super().__init__()
        self.dumped: list[int] = []

    def dump(self, kind: int, header: bytes, what: str) -> list[bytes]:
        self.dumped.append(kind)
        return super().dump(kind, header, what)
