"""A provider falls silent: from the probe that says so to new flows over another one.

Of 20 times the median. The clock starts when the probe that crosses the threshold has gone without
an answer for its timeout, as seen on the wire, and stops when a new flow of a client arrives over
the other provider; the client begins one every two milliseconds. Connections that were there before
have to live through all of it.

The peer is what people write for themselves: a script around `ping` that loads the same nftables
tables with `nft -f` and sets the default route with `ip route`.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import Result, Run
from holdfast.engine.intent import Intent
from holdfast.host.nft import nft_script
from holdfast.resources.compile import compile_router
from holdfast.resources.router import load_router
from tests.agent.daemon import serve
from tests.agent.two_providers import ROUTER, Flow, TwoProviders, two_providers, until
from tests.namespace import Namespace, private_namespaces
from tests.safety.router_scene import document
from tests.uplinks.uplink_network import facts

RUNS = 20
_AT_ONCE = 5  # before the other one's turn comes
BAR_S = 0.1
_THRESHOLD, _TIMEOUT_S = 2, 0.1  # as ROUTER has them
_PAUSE_S = 0.002  # from one new flow to the next
_CONNECTIONS = 10
_SO_TIMESTAMPNS = 35
_SCRIPT = """\
row() {  # returns once it has, or has not, answered twice in a row
    count=0
    while [ $count -lt 2 ]; do
        if ping -n -q -c 1 -W 0.1 -I wan0 192.0.2.254 >/dev/null; then is=up; else is=down; fi
        if [ $is = $1 ]; then count=$((count + 1)); else count=0; fi
        if [ $count -lt 2 ]; then sleep 0.1; fi
    done
}
while true; do
    row down
    nft -f second.nft
    ip route replace default via 203.0.113.254 dev wan1 table 200
    row up
    nft -f first.nft
    ip route replace default via 192.0.2.254 dev wan0 table 200
done
"""
_GROUND = """\
route add default via 192.0.2.254 dev wan0 table 111
route add default via 203.0.113.254 dev wan1 table 112
route add default via 192.0.2.254 dev wan0 table 200
rule add priority 9 lookup main suppress_prefixlength 0
rule add priority 10 fwmark 0x111 lookup 111
rule add priority 20 fwmark 0x112 lookup 112
rule add priority 30 iif lo lookup 200
"""


@dataclass(slots=True)
class Wire:
    """Echo requests to the first provider, and whether they were answered."""

    tap: socket.socket
    unanswered: dict[bytes, float] = field(default_factory=dict)  # when they were sent

    def read(self) -> None:
        while True:
            try:
                frame, about, _, _ = self.tap.recvmsg(2048, 128)
            except BlockingIOError:
                return
            packet = frame[14:]
            if frame[12:14] != b"\x08\0" or packet[9] != socket.IPPROTO_ICMP:
                continue
            message = packet[(packet[0] & 15) * 4 :]
            if message[0] == 8:
                self.unanswered[message[4:]] = _stamp(about)
            elif message[0] == 0:
                self.unanswered.pop(message[4:], None)

    def crossed(self) -> float:
        """When the probe that crosses the threshold was given up."""
        self.read()
        times = sorted(self.unanswered.values())
        if len(times) < _THRESHOLD:
            raise RuntimeError(f"new flows moved after {len(times)} unanswered probes")
        return times[_THRESHOLD - 1] + _TIMEOUT_S


def _stamp(about: list[tuple[int, int, bytes]]) -> float:
    """By the kernel's clock, when the packet was received."""
    for _, kind, data in about:
        if kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("=qq", data[:16])
            return float(seconds + nanoseconds / 1e9)
    raise RuntimeError("the kernel gave no time stamp")


def _failover(place: TwoProviders) -> float:
    with place.first.wire("wan0p") as tap:
        tap.setblocking(False)
        tap.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        wire = Wire(tap)
        place.cut()
        arrived = _first_over_second(place)
        took = arrived - wire.crossed()
    place.mend()
    until(lambda: place.way() == "first", "new flows go back to the first provider")
    return took


def _first_over_second(place: TwoProviders) -> float:
    ended = threading.Event()

    def begin_flows() -> None:
        with place.client.inside():  # this thread alone
            while not ended.wait(_PAUSE_S):
                place.send_inside()

    place.drain()
    sender = threading.Thread(target=begin_flows)
    sender.start()
    try:
        place.datagrams.settimeout(10)
        while True:
            _, about, _, _ = place.datagrams.recvmsg(64, 256)
            if place.provider(about) == "second":
                return _stamp(about)
    finally:
        ended.set()
        sender.join()


_Start = Callable[[Path, Namespace], AbstractContextManager[int]]


def _measure(start: _Start) -> list[Run]:
    """start: sets the router up, and answers with the process that watches over it."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        private_namespaces() as router,
        two_providers() as place,
        start(Path(scratch), router) as pid,
        ExitStack() as stack,
    ):
        place.datagrams.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        until(lambda: place.way() == "first", "new flows take the first provider")
        flows = [place.connect() for _ in range(_CONNECTIONS)]
        for flow in flows:
            stack.callback(flow.close)
        runs = []
        for _ in range(_AT_ONCE):
            runs.append(Run(_failover(place), _rss_mb(pid)))
            _alive(flows)
        return runs


def _alive(flows: list[Flow]) -> None:
    try:
        for flow in flows:
            flow.talk()
    except OSError as error:
        raise RuntimeError(f"an established flow was lost: {error}") from error


def _rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def _ours(folder: Path, _router: Namespace) -> Iterator[int]:
    file = folder / "router.yaml"
    file.write_text(document(ROUTER))
    with serve(folder, file) as daemon:
        daemon.wait_for("HealthCheck/wan is healthy")
        yield daemon.process.pid


@contextmanager
def _script(folder: Path, router: Namespace) -> Iterator[int]:
    file = folder / "router.yaml"
    file.write_text(document(ROUTER))
    for name, healthy in (("first", True), ("second", False)):
        desired = compile_router(load_router(file), facts(wan=healthy))
        single = [one.artifact for one in desired.intents if isinstance(one, Intent)]
        table = next(artifact for artifact in single if artifact.key.kind == "nft")
        whole = f"add table {table.key.name}\ndelete table {table.key.name}\n"
        (folder / f"{name}.nft").write_text(whole + nft_script.create(table))
    for command in _GROUND.splitlines():
        router.ip(command)
    router.run("nft", "-f", str(folder / "first.nft"))
    process = subprocess.Popen(["sh", "-c", _SCRIPT], cwd=folder, start_new_session=True)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(_repeat: int) -> Result:
    ours: list[Run] = []
    script: list[Run] = []
    while len(ours) < RUNS:
        # In turn, so that a slow spell of the machine meets both.
        ours += _measure(_ours)
        script += _measure(_script)
    return Result(
        "default-route-failover",
        Run(_median(ours), max(run.rss_mb for run in ours)),
        {"script": _median(script)},
        {},
        {
            "script": "ping, nft -f and ip route in a shell",
            "runs": f"{len(ours)}, the slowest {max(run.seconds for run in ours):.3f} s",
        },
        bar_s=BAR_S,
    )


def _median(runs: list[Run]) -> float:
    return statistics.median(run.seconds for run in runs)
