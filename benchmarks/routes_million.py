"""1 000 000 own routes beside 100 000: time in proportion, memory within bounds."""

from __future__ import annotations

from benchmarks.harness import Result, apply, compare, one_pass
from benchmarks.routes_cold import cold

COUNT = 1_000_000


def run(repeat: int) -> Result:
    return compare(
        "routes-million",
        repeat,
        lambda: cold(COUNT, one_pass),
        {"100 000 routes": lambda: cold(100_000, one_pass)},
        command=lambda: cold(COUNT, apply),
        bars={"100 000 routes": 12.0},
        rss_bar_mb=1024,
    )
