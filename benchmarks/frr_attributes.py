"""Another MED on 1 000 prefixes until a neighbour has it; 500 attribute sets and bgpd's stalls."""

from __future__ import annotations

import os
import re
import statistics
import threading
import time
from pathlib import Path

from benchmarks.frr_scene import (
    COUNT,
    INSTANCE,
    PEER,
    VERSION,
    Scene,
    networks,
    scene,
)
from benchmarks.harness import Result, Run
from holdfast.engine.kinds.bgp_attributes import Attributes
from holdfast.frr.vty import Vty

BAR_S = 0.5
_CHANGED = 1_000
_SETS = 500
_LONGEST_S = 60.0


def _with_med(made: Scene, med: int) -> int:
    said = made.bird.ask(f"show route protocol upper where bgp_med = {med} count")
    found = re.search(r"(\d+) of \d+ routes", said)
    return int(found[1]) if found else 0


def _withdrawn(made: Scene) -> int:
    said = made.bird.ask("show protocols all upper")
    found = re.search(r"Import withdraws:\s+(\d+)", said)
    return int(found[1]) if found else 0


def _change(made: Scene, med: int) -> float:
    rest = networks(COUNT - _CHANGED, _CHANGED)
    started = time.perf_counter()
    made.settle(INSTANCE, PEER, networks(_CHANGED, attributes=Attributes(med=med)), rest)
    while _with_med(made, med) < _CHANGED:
        if time.perf_counter() - started > _LONGEST_S:
            raise RuntimeError("the neighbour does not see the other MED")
        time.sleep(0.002)
    return time.perf_counter() - started


def _processor_time(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _stall(made: Scene) -> float:
    """The longest that bgpd leaves somebody else waiting while it takes 500 attribute sets, in
    seconds of its processor time: what others on the machine take is not its doing."""
    pid = made.frr.pid("bgpd")
    longest = [0.0]
    ended = threading.Event()

    def ask() -> None:
        vty = Vty(made.frr.folder / "bgpd.vty")
        while not ended.is_set():
            started = _processor_time(pid)
            vty.show("show version", _LONGEST_S)
            longest[0] = max(longest[0], _processor_time(pid) - started)
            time.sleep(0.002)
        vty.close()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        sets = [networks(2, 2 * n, Attributes(med=n, communities=(f"65001:{n}",)))
                for n in range(_SETS)]  # fmt: skip
        made.settle(INSTANCE, PEER, *sets, networks(COUNT - 2 * _SETS, 2 * _SETS))
    finally:
        ended.set()
        asking.join()
    return longest[0]


def run(repeat: int) -> Result:
    with scene() as made:
        made.settle(INSTANCE, PEER, networks(COUNT))
        made.wait_for(COUNT)
        before = _withdrawn(made)
        seconds = [_change(made, 100 + number) for number in range(repeat)]
        withdrawn = _withdrawn(made) - before
        if withdrawn:
            raise RuntimeError(f"{withdrawn} prefixes were withdrawn")
        stall = _stall(made)
        if stall > 1.0:
            raise RuntimeError(f"bgpd stalled for {stall:.2f} s over {_SETS} attribute sets")
    return Result(
        "frr-attributes",
        Run(statistics.median(seconds)),
        {},
        {},
        {"FRR": VERSION, "longest stall": f"{stall * 1000:.0f} ms for {_SETS} attribute sets"},
        bar_s=BAR_S,
    )
