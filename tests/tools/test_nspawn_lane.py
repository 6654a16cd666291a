"""The systemd lane has what it is there for, and leaves the machine as it was."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.lanes import covered_elsewhere, current, needs_programs

_PROJECT = Path(__file__).parents[2]


@pytest.mark.systemd
def test_the_lane_runs_systemd_on_a_read_only_tree() -> None:
    if current() != "systemd":
        covered_elsewhere("systemd", "it is about that lane's machine")
    assert Path("/proc/1/comm").read_text() == "systemd\n"
    assert Path("/run/dbus/system_bus_socket").is_socket()
    with pytest.raises(OSError, match="Read-only file system"):
        (_PROJECT / "written").touch()


def _nspawn_run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    needs_programs("systemd-nspawn", "debootstrap")
    return subprocess.run(
        [_PROJECT / "tools" / "nspawn-run", *command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_nspawn_run_hands_back_output_and_status(tmp_path: Path) -> None:
    done = _nspawn_run("bash", "-c", "echo 'two  words'; exit 7", TMPDIR=str(tmp_path))
    assert (done.stdout, done.returncode) == ("two  words\n", 7), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_nspawn_run_ends_a_command_that_hangs(tmp_path: Path) -> None:
    done = _nspawn_run("sleep", "1000", NSPAWN_TIMEOUT="3", TMPDIR=str(tmp_path))
    assert done.returncode == 124
    assert "stopped after 3 s without output: sleep 1000" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_nspawn_run_boots_again_on_request_and_keeps_what_was_written(tmp_path: Path) -> None:
    script = (
        "echo boot $HOLDFAST_BOOT; if [ $HOLDFAST_BOOT = 2 ]; then cat /etc/kept; exit 0; fi;"
        " echo kept >/etc/kept; exit 133"
    )
    done = _nspawn_run("bash", "-c", script, TMPDIR=str(tmp_path))
    assert (done.stdout, done.returncode) == ("boot 1\nboot 2\nkept\n", 0), done.stderr
    assert list(tmp_path.iterdir()) == []
