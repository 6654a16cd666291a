"""`holdfast --version` beside the bare interpreter it runs on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import HOLDFAST, Result, Run, compare, timed

# One start takes some hundredths of a second; a run is the mean of several.
_STARTS = 10


def _starts(command: Sequence[str]) -> Run:
    runs = [timed(command) for _ in range(_STARTS)]
    return Run(sum(run.seconds for run in runs) / _STARTS, max(run.rss_mb for run in runs))


def run(repeat: int) -> Result:
    # The interpreter itself, not the environment's link to it, which starts more slowly.
    python = str(Path(sys.executable).resolve())
    return compare(
        "cli-start",
        repeat,
        lambda: _starts([HOLDFAST, "--version"]),
        {"python3 -c pass": lambda: _starts([python, "-c", "pass"])},
        bars={"python3 -c pass": 4.0},
    )
