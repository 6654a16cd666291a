"""bgpd killed with 10 000 prefixes: noticed, and all back at bgpd once it answers again."""

from __future__ import annotations

import select
import statistics
import time

from benchmarks.frr_scene import COUNT, INSTANCE, PEER, VERSION, networks, scene
from benchmarks.harness import Result, Run
from holdfast.frr.vty import Vty

BAR_S = 2.0
_NOTICED_S = 0.1


def run(repeat: int) -> Result:
    with scene() as made:
        declared = (INSTANCE, PEER, networks(COUNT))
        made.settle(*declared)
        noticed: list[float] = []
        restored: list[float] = []
        for _ in range(repeat):
            vty = Vty(made.frr.folder / "bgpd.vty")
            started = time.perf_counter()
            made.frr.kill("bgpd")
            if not select.select([vty], [], [], 10.0)[0] or not vty.is_gone:
                raise RuntimeError("the end of bgpd was not noticed")
            noticed.append(time.perf_counter() - started)
            vty.close()
            made.frr.start("bgpd")
            started = time.perf_counter()
            made.settle(*declared)
            restored.append(time.perf_counter() - started)
            if made.drive.plan(*declared).changes:
                raise RuntimeError("not all was restored")
        if max(noticed) > _NOTICED_S:
            raise RuntimeError(f"noticed only after {max(noticed) * 1000:.0f} ms")
    return Result(
        "frr-restart",
        Run(statistics.median(restored)),
        {},
        {},
        {"FRR": VERSION, "noticed within": f"{max(noticed) * 1000:.1f} ms"},
        bar_s=BAR_S,
    )
