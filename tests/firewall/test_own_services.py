"""Services of the router itself, exposed under another port or address."""

from __future__ import annotations

from tests.firewall.home_network import NAT, POLICY, ROUTER, WAN, WAN6, ZONES, HomeNetwork

_EVERYWHERE = "0.0.0.0"  # noqa: S104


def _exposed(**fields: object) -> dict[str, str]:
    said = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return {"ExposeService/own": f"{{fromZone: uplink, protocol: tcp, {said}}}"}


def test_another_port_of_the_router(home: HomeNetwork) -> None:
    own = _exposed(externalPort=2222, internalAddress=ROUTER, internalPort=22)
    home.load(ZONES, POLICY, NAT, own)
    with home.router.listen(_EVERYWHERE, 22):
        assert home.isp.reaches(WAN, 2222)
        assert not home.isp.reaches(WAN, 22)
        assert not home.isp.reaches(ROUTER, 22)


def test_only_from_the_sources(home: HomeNetwork) -> None:
    home.isp.ip("addr add 198.51.100.7/24 dev isp0")
    own = _exposed(
        externalPort=2222, internalAddress=ROUTER, internalPort=22, sources="[198.51.100.7]"
    )
    home.load(ZONES, POLICY, own)
    with home.router.listen(_EVERYWHERE, 22):
        assert not home.isp.reaches(WAN, 2222)
        home.isp.connect(WAN, 2222, source=("198.51.100.7", 0)).close()


def test_hairpin_to_the_router(home: HomeNetwork) -> None:
    own = _exposed(externalPort=8443, internalAddress=ROUTER, internalPort=443, hairpin="true")
    home.load(ZONES, POLICY, NAT, own)
    with home.router.listen(_EVERYWHERE, 443):
        assert home.isp.reaches(WAN, 8443)
        assert home.client.reaches(WAN, 8443)
        assert not home.client.reaches(ROUTER, 443)


def test_ipv6(home: HomeNetwork) -> None:
    own = _exposed(family="ipv6", externalPort=443, internalAddress=f'"{WAN6}"')
    home.load(ZONES, POLICY, own)
    with home.router.listen("::", 443), home.router.listen("::", 444):
        assert home.isp.reaches(WAN6, 443)
        assert not home.isp.reaches(WAN6, 444)
        assert not home.isp.reaches("2001:db8:1::1", 443)
