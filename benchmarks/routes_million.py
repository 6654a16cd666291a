"""1 000 000 own routes beside 100 000: time in proportion, memory within bounds."""

from __future__ import annotations

from benchmarks import routes_cold
from benchmarks.harness import Result, compare

COUNT = 1_000_000


def run(repeat: int) -> Result:
    return compare(
        "routes-million",
        repeat,
        lambda: routes_cold.ours(COUNT),
        {"100 000 routes": routes_cold.ours},
        bars={"100 000 routes": 12.0},
        rss_bar_mb=1024,
    )
