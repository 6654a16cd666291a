"""An operator who is logged in over a connection that is really there.

     far                 the router                other
203.0.113.9 (lo)    +------------------+
198.51.100.1 isp0 --| wan0 198.51.100.2 |
                    | lan0 192.168.160.1 |-- eth0 192.168.160.50
                    +------------------+
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.firewall.home_network import CLIENT, ISP, ISP6, ROUTER, WAN, WAN6
from tests.firewall.hosts import LONG, SHORT, Host, new_host
from tests.namespace import Namespace

BEHIND, BEHIND6 = "203.0.113.9", "2001:db8:aa::9"
ROUTER6, CLIENT6 = "2001:db8:1::1", "2001:db8:1::50"
PORT = 22
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Session:
    """A TCP connection, both ends in hand."""

    ours: socket.socket
    theirs: socket.socket

    @property
    def ssh(self) -> str:
        """As sshd says it."""
        remote, local = self.ours.getpeername(), self.ours.getsockname()
        return f"{remote[0]} {remote[1]} {local[0]} {local[1]}"

    def passes(self, wait: float = LONG) -> bool:
        """Whether what is sent arrives, both ways."""
        with suppress(TimeoutError, OSError):
            return all(
                _arrives(one, other, wait)
                for one, other in ((self.ours, self.theirs), (self.theirs, self.ours))
            )
        return False

    def is_cut(self) -> bool:
        return not self.passes(SHORT)


def _arrives(one: socket.socket, other: socket.socket, wait: float) -> bool:
    line = f"{next(_numbers)}\n".encode()
    one.sendall(line)
    other.settimeout(wait)
    seen = b""
    while line not in seen:
        seen += other.recv(4096)
    return True


@dataclass(frozen=True, slots=True)
class Scene:
    far: Host
    other: Host
    netns: Namespace

    def restore(self) -> None:
        """What is there besides Holdfast, or was: a link that went down has taken it along."""
        commands = (
            "link set wan0 up",
            "link set lan0 up",
            f"addr replace {WAN}/24 dev wan0",
            f"addr replace {ROUTER}/24 dev lan0",
            f"addr replace {WAN6}/64 dev wan0 nodad",
            f"addr replace {ROUTER6}/64 dev lan0 nodad",
            f"route replace default via {ISP} dev wan0 onlink",
            f"-6 route replace default via {ISP6} dev wan0 onlink",
        )
        self.netns.run("sh", "-c", " && ".join(f"ip {command}" for command in commands))

    @contextmanager
    def session(
        self, remote: str = BEHIND, local: str = WAN, wait: float = LONG
    ) -> Iterator[Session]:
        family = socket.AF_INET6 if ":" in local else socket.AF_INET
        with (
            socket.create_server((local, PORT), family=family, reuse_port=True) as server,
            self.far.connect(local, PORT, source=(remote, 0), wait=wait) as theirs,
        ):
            ours, _ = server.accept()
            with ours:
                found = Session(ours, theirs)
                assert found.passes()
                yield found


@contextmanager
def scene(netns: Namespace) -> Iterator[Scene]:
    for name, value in (
        ("ipv6/conf/default/accept_dad", "0"),  # addresses that can be used at once
        # What is no router goes around IPv6 gateways that do not answer.
        ("ipv6/conf/all/forwarding", "1"),
        ("ipv4/ip_forward", "1"),
    ):
        Path("/proc/sys/net", name).write_text(value)
    with new_host() as far, new_host() as other:
        for near, end, host in (("wan0", "isp0", far), ("lan0", "eth0", other)):
            there = f"/proc/{os.getpid()}/fd/{host.namespace}"
            netns.ip(f"link add {near} type veth peer name {end} netns {there}")
            netns.ip(f"link set {near} up")
            host.ip(f"link set {end} up")
        far.ip(
            f"addr add {ISP}/24 dev isp0",
            f"addr add {ISP6}/64 dev isp0 nodad",
            f"addr add {BEHIND}/32 dev lo",
            f"addr add {BEHIND6}/128 dev lo nodad",
            f"route add {ROUTER}/32 via {WAN}",
        )
        other.ip(
            f"addr add {CLIENT}/24 dev eth0",
            f"addr add {CLIENT6}/64 dev eth0 nodad",
            f"route add default via {ROUTER}",
        )
        made = Scene(far, other, netns)
        made.restore()
        yield made
