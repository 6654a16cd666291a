"""A program that deletes one route of the daemon's as soon as it is there, for half a minute.

What is compared with the bar is how long it takes until an event names it. After that there may be
less than one repair in a second.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.harness import Result, Run
from benchmarks.process import cpu_s, rss_mb
from holdfast.paths import Paths
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.drifting import RESOURCES, ground
from tests.agent.undoer import undoing
from tests.namespace import private_namespaces
from tests.safety.router_scene import document

BAR_S = 10.0
_SECONDS = 30.0
_ROUTE = "198.51.100.0/24"


def run(_repeat: int) -> Result:
    with private_namespaces() as netns, tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        ground(netns)
        file = root / "router.yaml"
        file.write_text(document(RESOURCES))
        with serve(root, file) as daemon:
            daemon.wait_for("because of the start")
            pid = daemon.process.pid
            before, started = cpu_s(pid), time.time()
            with undoing(_ROUTE) as undoer:
                time.sleep(_SECONDS)
            share, rss = (cpu_s(pid) - before) / _SECONDS, rss_mb(pid)
        with Ledger.read(Paths(root)) as ledger:
            events = ledger.events()
    named = [event for event in events if event.kind == "fight"]
    if len(named) != 1 or f"(process {undoer})" not in named[0].message:
        raise RuntimeError(f"nobody was named: {named}")
    repairs = _repairs(events, named[0].time)
    left = started + _SECONDS - named[0].time
    notes = {
        "before": f"{named[0].data['times']} repairs until it was named",
        "after": f"{repairs} repairs in {left:.0f} s, with a bar of one each second",
        "share of a core": f"{share * 100:.1f} %",
    }
    if repairs >= left:
        raise RuntimeError(f"{repairs} repairs in {left:.0f} s after it was named")
    return Result("daemon-fight", Run(named[0].time - started, rss), {}, {}, notes, bar_s=BAR_S)


def _repairs(events: list[StoredEvent], since: float) -> int:
    return sum(1 for event in events if event.kind == "repaired" and event.time > since)
