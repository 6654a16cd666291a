"""Another program adds and removes 5 000 routes of its own each second, for ten seconds, beside a
daemon that holds 1 000.

What is compared with the bar is the share of a core the daemon takes, as seconds of each second.
Meanwhile routes of its own are deleted by hand and have to come back, and nothing of the other's
may change.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks import routes
from benchmarks.harness import Result, Run, router
from benchmarks.process import cpu_s, rss_mb
from tests.agent.daemon import serve
from tests.agent.storm import Storm
from tests.agent.two_providers import until

COUNT = 1_000
BAR_SHARE = 0.5
_SECONDS = 10.0


def run(_repeat: int) -> Result:
    with tempfile.TemporaryDirectory() as scratch, router(address=False) as netns:
        root = Path(scratch)
        file = routes.router_file(root, COUNT)
        with serve(root, file) as daemon:
            daemon.wait_for("because of the start")
            pid = daemon.process.pid
            storm = Storm(netns)
            before, memory, started = cpu_s(pid), rss_mb(pid), time.monotonic()
            deleted = storm.blow(_SECONDS)
            took = time.monotonic() - started
            share = (cpu_s(pid) - before) / took
            rss = rss_mb(pid)
            storm.close()
            until(lambda: storm.count(72) == COUNT, "its own routes are all there")
            if storm.left() != storm.expected:
                raise RuntimeError("something of the other program's was touched")
    notes = {
        "share of a core": f"{share * 100:.1f} %",
        "told": f"{storm.changes / took:.0f} changes/s, {deleted} own routes deleted meanwhile",
        "memory": f"{memory:.0f} MB before, {rss:.0f} MB after",
    }
    return Result("daemon-storm", Run(share, rss), {}, {}, notes, bar_s=BAR_SHARE)
