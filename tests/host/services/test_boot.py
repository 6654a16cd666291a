"""A service comes up with the machine, before anything of Holdfast runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lanes import needs_programs

pytestmark = pytest.mark.programs

_PROJECT = Path(__file__).parents[3]


def test_a_service_is_restored_at_boot() -> None:
    needs_programs("systemd-nspawn", "debootstrap")
    done = subprocess.run(
        [_PROJECT / "tools/nspawn-run", sys.executable, "-m", "tests.host.services.boot"],
        cwd=_PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("restored\n", 0), done.stdout + done.stderr
