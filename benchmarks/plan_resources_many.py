"""The printed plan for 50 000 resources beside that for 5 000: time in proportion."""

from __future__ import annotations

from benchmarks.harness import Result, compare
from benchmarks.plan_resources import BAR, COUNT, command, ground, load, plan, written

MANY = 50_000
# Ten times as many may take ten times as long, and a little for larger memory.
_LINEAR_BAR = 12.0


def run(repeat: int) -> Result:
    with ground() as folder:
        few, many = written(folder, COUNT), written(folder, MANY)
        return compare(
            "plan-resources-many",
            repeat,
            lambda: plan(folder, many),
            {"5 000 resources": lambda: plan(folder, few), "CSafeLoader": lambda: load(many)},
            command=lambda: command(folder, many),
            bars={"5 000 resources": _LINEAR_BAR, "CSafeLoader": BAR},
        )
