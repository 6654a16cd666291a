"""One thing of ours deleted or changed by hand, 100 times: until it is as declared again.

The clock starts when the kernel tells of the change and stops when it tells of the repair, as heard
by a socket of the benchmark's own; for files and settings, of which it tells nobody, it starts with
the write and stops when the right content is read. The bar is for the slowest of the medians of
routes, rules, addresses and tables; the notes have each of them, with its worst.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.harness import Result, Run
from benchmarks.process import cpu_s, rss_mb
from tests.agent.daemon import Daemon, serve
from tests.agent.drifting import RESOURCES, Tampering, foreign, ground, monitor, tamperings
from tests.agent.two_providers import until
from tests.namespace import Namespace, private_namespaces
from tests.safety.router_scene import document

TIMES = 100
BAR_S = 0.02
WORST_S = 0.25
_TOLD = ("route", "rule", "address", "nft")
_WAIT_S = 10.0
_QUIET_S = 0.01  # nothing told for so long: the repair is over
# Who undoes the same thing for ten seconds is in a fight, and so is who comes back ten times within
# five minutes; who pauses for seven seconds begins anew (agent/fights.py). So they are made in rows
# that are shorter than that, with pauses between them, and in few rows, for two of the things that
# are done are done to the same table, and two to the same file. On a machine that is too busy for
# all of them in that time there are fewer.
_APART_S = 7.5
_ROW_S = 5.0
_ROWS = 4


def _by_events(netns: Namespace, tampering: Tampering) -> float:
    told: list[float] = []

    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                sock.recv(1 << 16)
                told.append(time.monotonic())

    with monitor(tampering.kind) as sock:
        sock.settimeout(_QUIET_S)
        listener = threading.Thread(target=listen)
        listener.start()
        try:
            tampering.do(netns)
            deadline = time.monotonic() + _WAIT_S
            while time.monotonic() < deadline:
                time.sleep(_QUIET_S)
                quiet = told and time.monotonic() - told[-1] > _QUIET_S
                if quiet and len(told) > 1 and tampering.right(netns):
                    return told[-1] - told[0]
        finally:
            over.set()
            listener.join()
    raise RuntimeError(f"{tampering.kind} {tampering.what} and not repaired")


def _by_reading(netns: Namespace, tampering: Tampering) -> float:
    started = time.monotonic()
    tampering.do(netns)
    while not tampering.right(netns):
        if time.monotonic() - started > _WAIT_S:
            raise RuntimeError(f"{tampering.kind} {tampering.what} and not repaired")
        time.sleep(0.0005)
    return time.monotonic() - started


def in_rows(
    measure: Callable[[], float],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[float]:
    """So many measurements that nobody takes for a fight."""
    found: list[float] = []
    for _ in range(_ROWS):
        if len(found) < TIMES:
            sleep(_APART_S)
            ends = clock() + _ROW_S
            while len(found) < TIMES and clock() < ends:
                found.append(measure())
    return found


def _measure(netns: Namespace, root: Path, daemon: Daemon) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    before = foreign(netns)
    for one in tamperings(root):
        measure = _by_events if one.kind in _TOLD else _by_reading
        found.setdefault(one.kind, []).extend(in_rows(partial(measure, netns, one)))
        if foreign(netns) != before:
            raise RuntimeError(f"{one.kind} {one.what}: something foreign was touched")
    if " fight " in daemon.said():
        raise RuntimeError("it was taken for a fight")
    return found


def run(_repeat: int) -> Result:
    with private_namespaces() as netns, tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        ground(netns)
        file = root / "router.yaml"
        file.write_text(document(RESOURCES))
        with serve(root, file) as daemon:
            daemon.wait_for("because of the start")
            until(lambda: all(one.right(netns) for one in tamperings(root)), "all is as declared")
            before = cpu_s(daemon.process.pid)
            try:
                found = _measure(netns, root, daemon)
            except RuntimeError as error:
                raise RuntimeError(
                    f"{error}; the end of the log:\n{daemon.said()[-2000:]}"
                ) from None
            count = sum(map(len, found.values()))
            cpu = (cpu_s(daemon.process.pid) - before) / count
            rss = rss_mb(daemon.process.pid)
    notes = {
        kind: f"{len(times)} times: median {statistics.median(times) * 1000:.1f} ms,"
        f" worst {max(times) * 1000:.0f} ms"
        for kind, times in found.items()
    }
    worst = max(max(found[kind]) for kind in _TOLD)
    notes["worst"] = f"{worst * 1000:.0f} ms of {WORST_S * 1000:.0f}"
    notes["cpu"] = f"{cpu * 1000:.1f} ms of the daemon's for each"
    slowest = max(statistics.median(found[kind]) for kind in _TOLD)
    return Result("drift-repair", Run(slowest, rss), {}, {}, notes, bar_s=BAR_S)
