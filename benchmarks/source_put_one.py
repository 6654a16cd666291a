"""One route put by a source that declares 10 000 by increments, until the daemon saw it.

From the call to its answer, which says what is in the kernel; every second call withdraws. What is
compared is the median of the calls, and in the notes the processor time that the daemon took for
each. The peer is the process that does the same by hand: `ip route add`.
"""

from __future__ import annotations

import json
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import routes
from benchmarks.harness import Result, Run, router, timed
from benchmarks.process import cpu_s, rss_mb
from holdfast.api import holdfast_pb2 as pb
from holdfast.api import sockets
from holdfast.api.client import Client, connected
from holdfast.paths import Paths
from tests.agent.daemon import serve

COUNT = 10_000
BAR = 20.0
_TIMES = 50  # in one run of the benchmark
_LONG_S = 120.0
_FILE = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: bench}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: wan}
      spec: {ifname: wan, managed: false}
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: DynamicConfigSource
      metadata: {name: ci}
      spec:
        source: Owner/ci
        allow:
          kinds: [IPv4Route]
          names: ["*"]
          maxResources: 20000
          prefixes: [0.0.0.0/0]
          interfaces: [wan]
"""


def _route(name: str, destination: str) -> bytes:
    document: dict[str, Any] = {
        "apiVersion": "net.holdfast.dev/v1alpha1",
        "kind": "IPv4Route",
        "metadata": {"name": name},
        "spec": {"destination": destination, "gateway": routes.GATEWAY, "interface": "wan"},
    }
    return json.dumps(document).encode()


def _declare(client: Client, *put: bytes, withdraw: str = "") -> None:
    request = pb.DeclareRequest(
        source="Owner/ci",
        put=put,
        withdraw=[withdraw] if withdraw else [],
        wait_seconds=50,
    )
    reply = client.ask("Dynamic.Declare", request, pb.DeclareReply, _LONG_S)
    failed = [one for one in reply.resources if one.outcome != "converged"]
    if failed:
        raise RuntimeError(f"{len(failed)} did not converge, the first: {failed[0]}")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(repeat: int) -> Result:
    puts: list[float] = []
    withdrawals: list[float] = []
    by_hand: list[float] = []
    with tempfile.TemporaryDirectory() as scratch, router(address=True):
        root = Path(scratch)
        (root / "router.yaml").write_text(_FILE)
        with serve(root, root / "router.yaml") as daemon:
            daemon.wait_for("read: 2 resources")
            with (
                sockets.folder(Paths(root)) as folder,
                connected(f"{folder}/holdfast.sock") as client,
            ):
                many = [_route(f"r{n}", f"10.{n >> 8}.{n & 255}.0/24") for n in range(COUNT)]
                _declare(client, *many)
                for warm in range(5):
                    _declare(client, _route(f"w{warm}", f"172.16.{warm}.0/24"))
                daemon.rest()
                before, passes = cpu_s(daemon.process.pid), daemon.said().count("pass in")
                for number in range(repeat * _TIMES):
                    puts.append(_timed(client, _route("extra", f"198.51.100.{number % 256}/32")))
                    withdrawals.append(_timed(client, withdraw="IPv4Route/extra"))
                cpu = (cpu_s(daemon.process.pid) - before) / len(puts + withdrawals)
                memory = rss_mb(daemon.process.pid)
                passes = daemon.said().count("pass in") - passes
                used = _children_s()
                for number in range(repeat * _TIMES):
                    command = ["ip", "route", "add", f"203.0.113.{number}/32", "via"]
                    by_hand.append(timed([*command, routes.GATEWAY]).seconds)
                by_hand_cpu = (_children_s() - used) / len(by_hand)
            daemon.end()
    peer, ours = statistics.median(by_hand), statistics.median(puts)
    notes = {
        "put": f"{ours * 1000:.1f} ms, worst {max(puts) * 1000:.0f} ms",
        "withdrawn": f"{statistics.median(withdrawals) * 1000:.1f} ms",
        "cpu": f"{cpu * 1000:.2f} ms of the daemon's for each, {cpu / by_hand_cpu:.1f} x the"
        f" {by_hand_cpu * 1000:.2f} ms of the process",
        "memory": f"{memory:.0f} MB",
    }
    peers = {"ip route add": peer}
    return Result("source-put-one", Run(ours, memory), peers, {"ip route add": BAR}, notes)


def _timed(client: Client, *put: bytes, withdraw: str = "") -> float:
    started = time.perf_counter()
    _declare(client, *put, withdraw=withdraw)
    return time.perf_counter() - started
