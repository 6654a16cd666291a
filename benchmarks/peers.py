"""The other programs, run for real."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import routes
from benchmarks.harness import TIMEOUT_S, Run, router, timed

PYROUTE2_SAMPLE = 5_000
_POLL_S = 0.01

# Prints how long the adds alone took.
_PYROUTE2 = """
import json, sys, time
from pyroute2 import IPRoute
from benchmarks import routes
with IPRoute() as ip:
    index = ip.link_lookup(ifname="wan")[0]
    started = time.perf_counter()
    for destination in routes.destinations(int(sys.argv[1])):
        ip.route("add", dst=destination, gateway=routes.GATEWAY, oif=index)
    print(json.dumps(time.perf_counter() - started))
"""


def ip_batch(folder: Path, count: int) -> Run:
    file = routes.ip_batch_file(folder, count)
    with router(address=True):
        return timed(["ip", "-batch", str(file)])


def bird(folder: Path, count: int) -> Run:
    """From BIRD's start until every route is in the kernel."""
    program = shutil.which("bird", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        raise RuntimeError("BIRD is missing: tools/debian-packages bench installs it")
    file = routes.bird_file(folder, count)
    with router(address=True), tempfile.TemporaryFile() as said:
        wanted = routes.count_in_kernel() + count
        started = time.perf_counter()
        process = subprocess.Popen(
            [program, "-f", "-c", str(file), "-s", str(folder / "bird.ctl")],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            while routes.count_in_kernel() < wanted:
                if process.poll() is not None or time.perf_counter() - started > TIMEOUT_S:
                    said.seek(0)
                    raise RuntimeError(f"bird: {said.read().decode(errors='replace')}")
                time.sleep(_POLL_S)
            return Run(time.perf_counter() - started)
        finally:
            # Asked politely, it would take its routes out again, one by one.
            process.kill()
            process.wait()


def pyroute2(count: int) -> Run:
    """A sample, scaled: its start counts once, its adds as often as it takes."""
    sample = min(count, PYROUTE2_SAMPLE)
    with router(address=True), tempfile.TemporaryFile() as out:
        whole = timed([sys.executable, "-c", _PYROUTE2, str(sample)], stdout=out)
        out.seek(0)
        adds = float(json.loads(out.read()))
    return Run(whole.seconds - adds + adds * count / sample, whole.rss_mb)
