"""The qemu lane has what it is there for, and leaves the machine as it was."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.lanes import covered_elsewhere, current, needs_programs

_PROJECT = Path(__file__).parents[2]


@pytest.mark.qemu
def test_the_lane_runs_a_whole_kernel_on_a_read_only_tree() -> None:
    if current() != "qemu":
        covered_elsewhere("qemu", "it is about that lane's machine")
    assert "machine / 9p ro" in Path("/proc/mounts").read_text()
    with pytest.raises(OSError, match="Read-only file system"):
        (_PROJECT / "written").touch()


def _qemu_run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    needs_programs("qemu-system-x86_64", "busybox", "modprobe")
    return subprocess.run(
        [_PROJECT / "tools" / "qemu-run", *command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_qemu_run_hands_back_output_and_status(tmp_path: Path) -> None:
    done = _qemu_run("bash", "-c", "echo 'two  words'; exit 7", TMPDIR=str(tmp_path))
    assert (done.stdout, done.returncode) == ("two  words\n", 7), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_qemu_run_ends_a_guest_that_hangs(tmp_path: Path) -> None:
    done = _qemu_run("sleep", "1000", QEMU_TIMEOUT="3", TMPDIR=str(tmp_path))
    assert done.returncode == 124
    assert "stopped after 3 s without output: sleep 1000" in done.stderr
    assert list(tmp_path.iterdir()) == []
