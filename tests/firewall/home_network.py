"""A home: a router between an ISP and a LAN with two hosts, and a firewall given as resources."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.engine.intent import Intent
from holdfast.resources.compile import compile_router
from holdfast.resources.router import load_router
from tests.firewall.hosts import Host, new_host

HEAD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
spec:
  resources:
"""
# Resource -> spec. The links and addresses are there before Holdfast is.
GROUND = {
    "Interface/wan": "{ifname: wan0, managed: false}",
    "Interface/lan": "{ifname: lan0, managed: false}",
}
ZONES = {
    "Zone/uplink": "{interfaces: [wan]}",
    "Zone/home": "{interfaces: [lan]}",
}
POLICY = {
    "FirewallPolicy/policy": """
        forward: {allow: [{from: home, to: uplink}]}
        routerAccess:
          ssh: {fromZones: [home]}
          dns: {fromZones: [home]}
          dhcp: {fromZones: [home]}"""
}
NAT = {
    "IPv4SourceNAT/home": "{outboundInterface: wan, sourceCIDRs: [192.168.160.0/24],"
    " translation: {type: interfaceAddress}}"
}
ISP, WAN, SERVER, CLIENT = "198.51.100.1", "198.51.100.2", "192.168.160.20", "192.168.160.50"
ROUTER = "192.168.160.1"
ISP6, WAN6, SERVER6 = "2001:db8:ff::1", "2001:db8:ff::2", "2001:db8:1::20"
_GROUPS = {
    "Zone": "firewall",
    "FirewallPolicy": "firewall",
    "ExposeService": "firewall",
    "Sysctl": "system",
}


def document(resources: Mapping[str, str]) -> str:
    text = HEAD
    for name, spec in resources.items():
        kind, _, short = name.partition("/")
        text += f"    - apiVersion: {_GROUPS.get(kind, 'net')}.holdfast.dev/v1alpha1\n"
        text += f"      kind: {kind}\n      metadata: {{name: {short}}}\n      spec: {spec}\n"
    return text


def tables(resources: Mapping[str, str]) -> dict[str, str]:
    """The tables that resources come to, by family and name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "router.yaml")
        path.write_text(document(resources))
        desired = compile_router(load_router(path))
    return {
        intent.artifact.key.name: intent.artifact.payload.decode()
        for intent in desired.intents
        if isinstance(intent, Intent) and intent.artifact.key.kind == "nft"
    }


@dataclass(frozen=True, slots=True)
class HomeNetwork:
    isp: Host
    router: Host
    client: Host
    server: Host

    def load(self, *resources: Mapping[str, str]) -> None:
        """Replaces the router's tables by what the resources come to, each in one transaction."""
        merged: dict[str, str] = dict(GROUND)
        for more in resources:
            merged |= more
        text = "".join(
            f"add table {name}\ndelete table {name}\ntable {name} {{\n{body}}}\n"
            for name, body in tables(merged).items()
        )
        with tempfile.NamedTemporaryFile("w", suffix=".nft") as file:
            file.write(text)
            file.flush()
            self.router.run("nft", "-f", file.name)


@contextmanager
def home() -> Iterator[HomeNetwork]:
    with ExitStack() as stack:
        isp, router, client, server = (stack.enter_context(new_host()) for _ in range(4))
        for other, ends in ((isp, "wan0 isp0"), (client, "lan1 eth0"), (server, "lan2 eth0")):
            near, far = ends.split()
            _join(router, near, other, far)
        router.ip(
            "link add lan0 type bridge",
            *(f"link set {port} master lan0" for port in ("lan1", "lan2")),
            *(f"link set {name} up" for name in ("wan0", "lan0", "lan1", "lan2")),
            f"addr add {WAN}/24 dev wan0",
            f"addr add {ROUTER}/24 dev lan0",
            f"addr add {WAN6}/64 dev wan0 nodad",
            "addr add 2001:db8:1::1/64 dev lan0 nodad",
            f"route add default via {ISP}",
        )
        router.set(ipv4__ip_forward="1", ipv6__conf__all__forwarding="1")
        # As on a machine where nothing has loaded br_netfilter.
        bridge_filter(router, on=False)
        isp.ip(
            "link set isp0 up",
            f"addr add {ISP}/24 dev isp0",
            f"addr add {ISP6}/64 dev isp0 nodad",
            # Whoever is on the wire can try.
            f"route add 192.168.160.0/24 via {WAN}",
            f"route add 203.0.113.0/24 via {WAN}",
            f"route add 2001:db8:1::/64 via {WAN6}",
        )
        for host, last in ((client, "50"), (server, "20")):
            host.ip(
                "link set eth0 up",
                f"addr add 192.168.160.{last}/24 dev eth0",
                f"addr add 2001:db8:1::{last}/64 dev eth0 nodad",
                f"route add default via {ROUTER}",
                "route add default via 2001:db8:1::1",
            )
        yield HomeNetwork(isp, router, client, server)


def bridge_filter(router: Host, *, on: bool) -> None:
    """Whether packets between ports of a bridge pass the tables too."""
    router.set(**{f"bridge__bridge-nf-call-{which}tables": str(int(on)) for which in ("ip", "ip6")})


def _join(one: Host, near: str, other: Host, far: str) -> None:
    """A cable between two hosts."""
    there = f"/proc/{os.getpid()}/fd/{other.namespace}"
    one.ip(f"link add {near} type veth peer name {far} netns {there}")
