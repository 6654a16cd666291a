"""From a text file on disk to 100 000 IPv4 routes in the kernel: a full pass, from nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import peers, routes
from benchmarks.harness import Result, Run, apply, compare, one_pass, router

COUNT = 100_000


def cold(count: int, how: Callable[[Path, Path], Run]) -> Run:
    with tempfile.TemporaryDirectory() as scratch, router(address=False):
        folder = Path(scratch)
        file = routes.router_file(folder, count)
        before = routes.count_in_kernel()
        run = how(folder / "root", file)
        found = routes.count_in_kernel() - before
        # The address brings prefixes of its own.
        if found < count:
            raise RuntimeError(f"holdfast apply succeeded with {found} of {count} routes")
        return run


def run(repeat: int) -> Result:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        return compare(
            "routes-cold",
            repeat,
            lambda: cold(COUNT, one_pass),
            {
                "ip -batch": lambda: peers.ip_batch(folder, COUNT),
                "bird": lambda: peers.bird(folder, COUNT),
                "pyroute2": lambda: peers.pyroute2(COUNT),
            },
            command=lambda: cold(COUNT, apply),
            bars={"ip -batch": 1.0, "bird": 1.0, "pyroute2": 0.02},
            notes={"pyroute2": f"scaled from {peers.PYROUTE2_SAMPLE} routes"},
        )
