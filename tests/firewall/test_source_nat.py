"""Which address and port the far side sees."""

from __future__ import annotations

import pytest

from tests.firewall.home_network import CLIENT, ISP, SERVER, WAN, HomeNetwork
from tests.firewall.hosts import SHORT

POOL = ["203.0.113.10", "203.0.113.20", "203.0.113.30"]


def nat(translation: str) -> dict[str, str]:
    return {
        "IPv4SourceNAT/home": "{outboundInterface: wan, sourceCIDRs: [192.168.160.0/24],"
        f" translation: {translation}}}"
    }


def seen(home: HomeNetwork, source: str, port: int) -> tuple[str, int]:
    """How a connection from there looks to the ISP."""
    host = home.server if source == SERVER else home.client
    with (
        home.isp.listen(ISP, 80) as listening,
        host.connect(ISP, 80, source=(source, port)),
    ):
        accepted, peer = listening.accept()
        accepted.close()
        return peer[0], peer[1]


def test_a_pool_of_any_size_is_used_evenly_and_a_client_keeps_its_address(
    home: HomeNetwork,
) -> None:
    home.load(nat(f"{{type: pool, addresses: {POOL}}}"))
    sources = [f"192.168.160.{last}" for last in range(100, 160)]
    home.client.ip(*(f"addr add {source}/24 dev eth0" for source in sources))
    first = {source: seen(home, source, 0)[0] for source in sources}
    used = [list(first.values()).count(address) for address in POOL]
    assert sum(used) == len(sources)
    assert min(used) >= 10
    home.load(nat(f"{{type: pool, addresses: {POOL}}}"))
    assert {source: seen(home, source, 0)[0] for source in sources[:9]} == {
        source: first[source] for source in sources[:9]
    }


def test_an_address(home: HomeNetwork) -> None:
    home.load(nat("{type: address, address: 203.0.113.7}"))
    assert seen(home, CLIENT, 4321) == ("203.0.113.7", 4321)


@pytest.mark.parametrize(
    ("translation", "addresses"),
    [
        ("{type: interfaceAddress, portMapping: %s}", [WAN]),
        ("{type: address, address: 203.0.113.7, portMapping: %s}", ["203.0.113.7"]),
        (f"{{type: pool, addresses: {POOL}, portMapping: %s}}", POOL),
    ],
)
def test_a_range_of_ports(home: HomeNetwork, translation: str, addresses: list[str]) -> None:
    home.load(nat(translation % "{type: range, start: 3000, end: 3009}"))
    for port in (40001, 40002):
        address, seen_port = seen(home, CLIENT, port)
        assert address in addresses
        assert 3000 <= seen_port <= 3009


@pytest.mark.parametrize(
    "translation",
    [
        "{type: interfaceAddress, portMapping: %s}",
        "{type: address, address: 203.0.113.7, portMapping: %s}",
        "{type: pool, addresses: [203.0.113.7], portMapping: %s}",
    ],
)
def test_a_port_is_kept_where_it_is_free_and_with_preserve_always(
    home: HomeNetwork, translation: str
) -> None:
    home.load(nat(translation % "{type: auto}"))
    first, second = _ports_of_two(home, 5060)
    assert first == 5060
    assert second not in (5060, None)
    home.load(nat(translation % "{type: preserve}"))
    assert _ports_of_two(home, 5061) == (5060, None)


def _ports_of_two(home: HomeNetwork, far_port: int) -> tuple[int, int | None]:
    """How the ports of two clients look that send from the same one; None: nothing came."""
    with (
        home.isp.datagrams(ISP, far_port) as far,
        home.client.datagrams(CLIENT, 5060) as one,
        home.server.datagrams(SERVER, 5060) as two,
    ):
        one.sendto(b"one", (ISP, far_port))
        data, first = far.recvfrom(64)
        assert data == b"one"
        two.sendto(b"two", (ISP, far_port))
        far.settimeout(SHORT)
        try:
            data, second = far.recvfrom(64)
        except TimeoutError:
            return first[1], None
        assert data == b"two"
        return first[1], second[1]


def test_the_longer_prefix_prevails(home: HomeNetwork) -> None:
    one = {
        "IPv4SourceNAT/one": f"{{outboundInterface: wan, sourceCIDRs: [{CLIENT}],"
        " translation: {type: address, address: 203.0.113.9}}"
    }
    home.load(nat("{type: interfaceAddress}"), one)
    assert seen(home, CLIENT, 0)[0] == "203.0.113.9"
    assert seen(home, SERVER, 0)[0] == WAN
