"""A daemon that holds 100 000 routes, for a minute in which nothing happens.

What is compared with the bar is the share of a core it takes, as seconds of each second.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks import routes
from benchmarks.harness import Result, Run, router
from benchmarks.process import cpu_s, rss_mb
from tests.agent.daemon import serve

COUNT = 100_000
BAR_SHARE = 0.01
RSS_BAR_MB = 250.0
# Longer than it takes for everything to be looked at once, whoever asks.
_WATCHED_S = 90.0
_SETTLING_S = 5.0


def run(_repeat: int) -> Result:
    with tempfile.TemporaryDirectory() as scratch, router(address=False):
        root = Path(scratch)
        file = routes.router_file(root, COUNT)
        with serve(root, file) as daemon:
            daemon.wait_for("because of the start")
            time.sleep(_SETTLING_S)
            pid = daemon.process.pid
            before = cpu_s(pid)
            time.sleep(_WATCHED_S)
            share = (cpu_s(pid) - before) / _WATCHED_S
            rss, most = rss_mb(pid), rss_mb(pid, most=True)
            passes = daemon.said().count("pass in")
    notes = {"share of a core": f"{share * 100:.2f} %", "passes": f"{passes} that did something"}
    notes["memory"] = f"{rss:.0f} MB now, {most:.0f} MB at most"
    return Result(
        "daemon-idle", Run(share, rss), {}, {}, notes, rss_bar_mb=RSS_BAR_MB, bar_s=BAR_SHARE
    )
