"""A router with two LANs and two providers, each in a namespace of its own.

Both providers lead to the same servers, so that who answers tells which way a packet took.
"""

from __future__ import annotations

import itertools
import os
import select
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from holdfast.engine.drivers import Drivers
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import Facts, Verdict
from holdfast.resources.router import load_router
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger
from tests.firewall.hosts import LONG, Host, new_host
from tests.namespace import Namespace
from tests.safety.router_scene import TAG, document

PORT = 7
SERVER = "198.51.100.1"
SERVER6 = "2001:db8:f::1"
LINKS = {
    "Interface/lan": "{ifname: lan0}",
    "Interface/lan2": "{ifname: lan1}",
    "Interface/wan": "{ifname: wan0}",
    "Interface/lte": "{ifname: wan1}",
}
HEALTH = {
    "HealthCheck/wan": "{target: 192.0.2.254, interface: wan}",
    "HealthCheck/lte": "{target: 203.0.113.254, interface: lte}",
}
WAN = (
    "name: wan, interface: wan, gatewaySource: static, gateway: 192.0.2.254, priority: 10,"
    " table: 111, mark: 0x111, healthCheck: wan"
)
LTE = (
    "name: lte, interface: lte, gatewaySource: static, gateway: 203.0.113.254, priority: 20,"
    " table: 112, mark: 0x112, healthCheck: lte"
)
TARGETS = """\
[{name: wan, outboundInterface: wan, gatewaySource: static, gateway: 192.0.2.254,
         table: 100, priority: 10000, mark: 0x100, healthCheck: wan},
        {name: lte, outboundInterface: lte, gatewaySource: static, gateway: 203.0.113.254,
         table: 101, priority: 10001, mark: 0x101, healthCheck: lte}]"""
HASHED = "hashFields: [sourceAddress, destinationAddress]"


def policy(*candidates: str, more: str = "") -> str:
    return f"{{{more}candidates: [{', '.join(f'{{{one}}}' for one in candidates)}]}}"


def facts(**healthy: bool) -> Facts:
    return Facts(
        verdicts={name: Verdict(said, "as the test says") for name, said in healthy.items()}
    )


@dataclass(slots=True)
class UplinkNetwork:
    paths: Paths
    client: Host
    neighbour: Host
    providers: dict[str, Host]
    listeners: dict[str, socket.socket] = field(default_factory=dict)
    _nonces: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def apply(self, resources: Mapping[str, str], known: Facts = Facts()) -> Report:  # noqa: B008
        with (
            Ledger.open(self.paths, command="test") as ledger,
            drivers.of_machine(self.paths, TAG) as host,
        ):
            report = self._pass(resources, known, host, ledger).run(lambda _plan: None)
        assert not report.failures, report.failures
        return report

    def plan(self, resources: Mapping[str, str], known: Facts = Facts()) -> Plan:  # noqa: B008
        with Ledger.read(self.paths) as ledger, drivers.of_machine(self.paths, TAG) as host:
            return self._pass(resources, known, host, ledger).plan()

    def _pass(
        self, resources: Mapping[str, str], known: Facts, host: Drivers, ledger: Ledger
    ) -> Pass:
        file = self.paths.root / "router.yaml"
        file.write_text(document(resources))
        desired = compile_router(load_router(file), known)
        nonce = lambda: str(next(self._nonces))  # noqa: E731
        return Pass(desired, host, ledger, Policy(host.epoch, allow_mass_delete=True), nonce=nonce)

    def way(self, address: str = SERVER, *, source: Host | None = None) -> str:
        """Over which provider a new connection of the client's goes."""
        with Flow.open(self, address, source) as flow:
            return flow.provider

    def router_way(self, address: str = SERVER) -> tuple[str, str]:
        """The same for the router itself, and the source address it took."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family) as made:
            made.settimeout(LONG)
            made.connect((address, PORT))
            provider, answering = self.accept()
            answering.close()
            return provider, made.getsockname()[0]

    def accept(self) -> tuple[str, socket.socket]:
        ready, _, _ = select.select(list(self.listeners.values()), [], [], LONG)
        for provider, listener in self.listeners.items():
            if listener in ready:
                return provider.partition(" ")[0], listener.accept()[0]
        raise AssertionError("the connection arrived nowhere")


@dataclass(slots=True)
class Flow:
    """A connection that can be asked whether it is still alive."""

    provider: str
    near: socket.socket
    far: socket.socket

    @classmethod
    @contextmanager
    def open(
        cls, network: UplinkNetwork, address: str = SERVER, source: Host | None = None
    ) -> Iterator[Flow]:
        near = (source or network.client).connect(address, PORT)
        provider, far = network.accept()
        far.settimeout(LONG)
        try:
            yield cls(provider, near, far)
        finally:
            near.close()
            far.close()

    def talk(self) -> None:
        """Both ways: with another path one of them would end in a reset, or nowhere."""
        for one, other in ((self.near, self.far), (self.far, self.near)):
            one.sendall(b"still here?")
            assert other.recv(64) == b"still here?"


@contextmanager
def uplink_network(paths: Paths) -> Iterator[UplinkNetwork]:
    """The caller is in the router's namespace."""
    with ExitStack() as stack:
        client, neighbour, first, second = (stack.enter_context(new_host()) for _ in range(4))
        made = UplinkNetwork(paths, client, neighbour, {"first": first, "second": second})
        with new_router() as router:
            _wire(router, client, "lan0", "10.1.0", "2001:db8:1:")
            _wire(router, neighbour, "lan1", "10.2.0", "2001:db8:2:")
            _wire(router, first, "wan0", "192.0.2", "2001:db8:a:")
            _wire(router, second, "wan1", "203.0.113", "2001:db8:b:")
            router.set(ipv4__ip_forward="1", ipv6__conf__all__forwarding="1")
            for name, provider in made.providers.items():
                provider.ip(
                    "route add local 198.51.100.0/24 dev lo",
                    "-6 route add local 2001:db8:f::/48 dev lo",
                )
                for address in ("0.0.0.0", "::"):  # noqa: S104 (in a namespace of its own)
                    listener = stack.enter_context(_listener(provider, address))
                    made.listeners[f"{name} {address}"] = listener
            yield made


def everything(netns: Namespace) -> list[str]:
    """But IPv6 routes, which come and go by themselves while links come up."""
    return [
        netns.ip("-4 rule show"),
        netns.ip("-6 rule show"),
        netns.ip("-4 route show table all"),
        netns.run("nft", "list", "ruleset"),
    ]


def _listener(provider: Host, address: str) -> socket.socket:
    with provider.inside():
        made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    if ":" in address:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, PORT))
    made.listen(100)
    return made


@contextmanager
def new_router() -> Iterator[Host]:
    """The namespace the caller is in, as a host."""
    with open("/proc/self/ns/net") as here:  # noqa: PTH123 (a descriptor, not text)
        yield Host(here.fileno())


def _wire(router: Host, other: Host, name: str, net4: str, net6: str) -> None:
    inside = name.startswith("lan")
    far = "2" if inside else "254"
    router.ip(f"link add {name} type veth peer name {name}p")
    router.ip(f"link set {name}p netns /proc/{os.getpid()}/fd/{other.namespace}")
    router.ip(
        f"link set {name} up",
        f"addr add {net4}.1/24 dev {name}",
        f"addr add {net6}:1/64 dev {name} nodad",
    )
    other.ip(
        f"link set {name}p up",
        f"addr add {net4}.{far}/24 dev {name}p",
        f"addr add {net6}:{far}/64 dev {name}p nodad",
        f"route add default via {net4}.1",
        f"-6 route add default via {net6}:1",
    )
