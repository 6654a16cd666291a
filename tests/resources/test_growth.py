"""What checking a file takes grows with the file, and not with its square."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest

from benchmarks.plan_resources import text
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import Facts
from holdfast.resources.router import load_router

pytestmark = pytest.mark.long


def _calls(tmp_path: Path, count: int) -> int:
    """How many calls of functions it takes: the same on every machine, however busy."""
    file = tmp_path / f"{count}.yaml"
    file.write_text(text(count))
    profile = cProfile.Profile()
    with profile:
        router = load_router(file, tmp_path)
        compile_router(router, Facts())
    return int(vars(pstats.Stats(profile))["total_calls"])


def test_four_times_as_many_resources_take_four_times_as_much(tmp_path: Path) -> None:
    _calls(tmp_path, 100)  # modules of kinds are imported
    assert _calls(tmp_path, 4_000) < 4.4 * _calls(tmp_path, 1_000)
