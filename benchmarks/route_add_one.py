"""One route added, changed or removed in the file that a daemon holds 100 000 routes by.

From the file being put in its place to the kernel telling everybody of the route, as a socket hears
it that has nothing to do with the daemon. Of each kind of change the median; what is compared is
the slowest kind. The peer is the process that does the same by hand: `ip route add`.
"""

from __future__ import annotations

import os
import select
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import routes
from benchmarks.harness import Result, Run, router, timed
from tests.agent.daemon import Daemon, serve

COUNT = 100_000
BAR = 20.0
RSS_BAR_MB = 250.0
_TIMES = 5  # each change, in one run of the benchmark
_IPV4_ROUTES = 0x40  # multicast group, as a bit
_LONGEST_S = 30.0
_NEW, _GONE = 24, 25  # RTM_NEWROUTE, RTM_DELROUTE

_ROUTE = """\
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {{name: extra}}
      spec: {{destination: {}, gateway: 192.0.2.2}}
"""


@dataclass(slots=True)
class Monitor:
    """Hears of every change to an IPv4 route."""

    sock: socket.socket

    def drain(self) -> None:
        while select.select([self.sock], [], [], 0)[0]:
            self.sock.recv(1 << 16)

    def wait(self, kind: int, network: str) -> float:
        """When it was told of a route that came or went."""
        wanted = b"\x08\0\x01\0" + socket.inet_aton(network)  # RTA_DST
        until = time.monotonic() + _LONGEST_S
        while (left := until - time.monotonic()) > 0:
            if select.select([self.sock], [], [], left)[0]:
                data = self.sock.recv(1 << 16)
                now = time.perf_counter()
                if int.from_bytes(data[4:6], "little") == kind and wanted in data:
                    return now
        raise RuntimeError(f"nothing was told of {network} within {_LONGEST_S:.0f} s")


@contextmanager
def monitor() -> Iterator[Monitor]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.bind((0, _IPV4_ROUTES))
        yield Monitor(sock)


@dataclass(slots=True)
class Bench:
    folder: Path
    daemon: Daemon
    monitor: Monitor
    lines: list[str]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    passes: int = 1

    def change(self, what: str, name: str, text: str, kind: int, network: str) -> None:
        fresh = self.folder / f"{name}.new"
        fresh.write_text(text)
        self.monitor.drain()
        started = time.perf_counter()
        os.replace(fresh, self.folder / name)  # noqa: PTH105 (nothing but the call is timed)
        self.seconds.setdefault(what, []).append(self.monitor.wait(kind, network) - started)
        # The next one is not to wait for what this one still has to write down.
        self.passes += 1
        self.daemon.wait_for("pass in ", self.passes)
        time.sleep(0.3)

    def resource(self, number: int) -> None:
        network = f"198.51.100.{number}"
        more = routes.CONFIG + _ROUTE.format(f"{network}/32")
        self.change("resource added", "router.yaml", more, _NEW, network)
        self.change("resource removed", "router.yaml", routes.CONFIG, _GONE, network)

    def line(self, number: int) -> None:
        network = f"198.18.{number}.0"
        at = (number * 7919 + COUNT // 2) % COUNT

        def text(line: str) -> str:
            return "".join([*self.lines[:at], line, *self.lines[at:]])

        added = text(f"{network}/24 via {routes.GATEWAY} dev wan\n")
        changed = text(f"{network}/24 via 192.0.2.3 dev wan\n")
        self.change("line added", "routes.txt", added, _NEW, network)
        self.change("line changed", "routes.txt", changed, _NEW, network)
        self.change("line removed", "routes.txt", text(""), _GONE, network)


def run(repeat: int) -> Result:
    with tempfile.TemporaryDirectory() as scratch, router(address=False):
        folder = Path(scratch)
        file = routes.router_file(folder, COUNT)
        root = folder / "root"
        root.mkdir()
        before = routes.count_in_kernel()
        by_hand: list[float] = []
        with serve(root, file) as daemon:
            daemon.wait_for("pass in ")
            if routes.count_in_kernel() - before < COUNT:
                raise RuntimeError(f"the routes are not there: {daemon.said()[-2000:]}")
            lines = (folder / "routes.txt").read_text().splitlines(keepends=True)
            with monitor() as told:
                bench = Bench(folder, daemon, told, lines)
                for number in range(repeat * _TIMES):
                    bench.resource(number)
                    bench.line(number)
                    by_hand.append(_by_hand(number))
            memory = _memory(daemon.process.pid)
            daemon.end()
    return _result(bench.seconds, statistics.median(by_hand), memory)


def _by_hand(number: int) -> float:
    return timed(["ip", "route", "add", f"203.0.113.{number}/32", "via", routes.GATEWAY]).seconds


def _memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not tell how much memory the daemon has")


def _result(seconds: dict[str, list[float]], peer: float, memory: float) -> Result:
    medians = {what: statistics.median(found) for what, found in seconds.items()}
    notes = {
        what: f"{found * 1000:.1f} ms, {found / peer:.1f} x" for what, found in medians.items()
    }
    return Result(
        "route-add-one",
        Run(max(medians.values()), memory),
        {"ip route add": peer},
        {"ip route add": BAR},
        notes,
        RSS_BAR_MB,
    )
