"""A machine that is booted anew while a generation waits to be confirmed is as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lanes import needs_programs

_PROJECT = Path(__file__).parents[2]


def test_booted_anew_during_the_window() -> None:
    needs_programs("systemd-nspawn", "debootstrap")
    done = subprocess.run(
        [_PROJECT / "tools/nspawn-run", sys.executable, "-m", "tests.agent.reboot"],
        cwd=_PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("as before\n", 0), done.stdout + done.stderr
