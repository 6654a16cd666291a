"""10 000 prefixes in ten batches to FRR, until a neighbour has them all; beside `vtysh -f`."""

from __future__ import annotations

import statistics

from benchmarks.frr_scene import (
    COUNT,
    INSTANCE,
    PEER,
    VERSION,
    elapsed,
    network_lines,
    networks,
    scene,
)
from benchmarks.harness import Result, Run, compare

BAR = 1.0
_BATCHES = 10


def _ours() -> Run:
    """The batches of ten owners meet in one pass."""
    with scene() as made:
        each = COUNT // _BATCHES
        declared = [networks(each, number * each) for number in range(_BATCHES)]

        def work() -> None:
            made.settle(INSTANCE, PEER, *declared)
            made.wait_for(COUNT)

        return elapsed(work)


def _one_by_one() -> Run:
    """A pass for each batch."""
    with scene() as made:
        each = COUNT // _BATCHES
        declared = [networks(each, number * each) for number in range(_BATCHES)]

        def work() -> None:
            for number in range(_BATCHES):
                made.settle(INSTANCE, PEER, *declared[: number + 1])
            made.wait_for(COUNT)

        return elapsed(work)


def _vtysh() -> Run:
    with scene() as made:
        each = COUNT // _BATCHES

        def work() -> None:
            for number in range(_BATCHES):
                made.frr.configure(network_lines(each, number * each))
            made.wait_for(COUNT)

        return elapsed(work)


def _vtysh_once() -> Run:
    with scene() as made:

        def work() -> None:
            made.frr.configure(network_lines(COUNT))
            made.wait_for(COUNT)

        return elapsed(work)


def run(repeat: int) -> Result:
    one_by_one = statistics.median(_one_by_one().seconds for _ in range(repeat))
    return compare(
        "frr-batch",
        repeat,
        _ours,
        {"vtysh -f": _vtysh_once, "vtysh -f, ten times": _vtysh},
        bars={"vtysh -f": BAR, "vtysh -f, ten times": BAR},
        notes={"FRR": VERSION, "a pass for each batch": f"{one_by_one:.2f} s"},
    )
