"""chronyd sets a clock, and no test may touch the machine's: the uml lane has one of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lanes import needs_programs

pytestmark = pytest.mark.programs

_PROJECT = Path(__file__).parents[3]


def _tool(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(_PROJECT / "tools" / name), *words]
    return subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False)


def test_chrony_is_started_sets_the_clock_is_repaired_and_removed() -> None:
    needs_programs("systemd-nspawn", "debootstrap")
    built = _tool("nspawn-run", "--build")
    assert built.returncode == 0, built.stderr
    done = _tool("uml-run", sys.executable, "-m", "tests.host.services.clock", built.stdout.strip())
    assert (done.stdout, done.returncode) == ("set\n", 0), done.stdout + done.stderr
