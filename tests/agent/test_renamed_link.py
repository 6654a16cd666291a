"""A NIC that somebody renames keeps what is on it: what is declared for its old name waits."""

from __future__ import annotations

from pathlib import Path

from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace
from tests.safety.router_scene import document

RESOURCES = {
    "Interface/wan": "{ifname: wan0, adminUp: true}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv6StaticAddress/wan": "{interface: wan, address: '2001:db8::1/64'}",
    "IPv4Route/default": "{destination: default, gateway: 192.0.2.254, interface: wan}",
    "Neighbour/gateway": "{interface: wan, address: 192.0.2.254, mac: '02:00:5e:10:00:09'}",
}


def test_renamed_and_back(netns: Namespace, root: Path, tmp_path: Path) -> None:
    root.mkdir()
    netns.veth("wan0", "far0")
    Path("/proc/sys/net/ipv6/conf/wan0/accept_dad").write_text("0")
    file = root / "router.yaml"
    file.write_text(document(RESOURCES))
    holdfast = Holdfast(tmp_path, root)

    def there(name: str) -> bool:
        addresses = netns.ip(f"addr show dev {name}")
        return (
            "192.0.2.1/24" in addresses
            and "2001:db8::1/64" in addresses
            and f"default via 192.0.2.254 dev {name}" in netns.ip("route show")
            and "192.0.2.254" in netns.ip(f"neigh show dev {name} nud permanent")
        )

    with serve(root, file) as daemon:
        until(lambda: there("wan0"), "the first pass")
        netns.ip("link set wan0 name foo0")
        daemon.wait_for("pending: IPv4Route/default: waits for link wan0")
        daemon.rest()
        assert there("foo0"), daemon.said()
        assert "deleted" not in daemon.said()
        done = holdfast.run("apply", str(file), "--yes")
        assert there("foo0"), done.out
        netns.ip("link set foo0 name wan0")
        until(lambda: holdfast.run("status").code == 0, daemon.said())
        assert there("wan0")
        assert daemon.end() == 0
