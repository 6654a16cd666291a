"""A guest is slow where the machine is busy. It hangs where nothing goes on."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs
_FUNCTIONS = Path(__file__).parents[2] / "tools" / "guest-limit.sh"


def _until_ended(output: Path, guest: str) -> subprocess.CompletedProcess[str]:
    """With a limit of 3 s."""
    script = f"""
        . {shlex.quote(str(_FUNCTIONS))}
        output={shlex.quote(str(output))}
        {guest} &
        guest=$!
        status=0
        until_ended $guest "$output" 3 || status=$?
        kill $guest 2>/dev/null
        exit $status
    """
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


def test_a_guest_that_goes_on_is_waited_for(tmp_path: Path) -> None:
    guest = "for _ in {1..50}; do sleep 0.1; echo . >>$output; done"
    done = _until_ended(tmp_path / "output", f"{{ {guest}; }}")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "output").read_text() == ".\n" * 50


@pytest.mark.parametrize("guest", ["sleep 1000", "{ echo . >$output; exec sleep 1000; }"])
def test_a_guest_that_says_nothing_more_is_not(tmp_path: Path, guest: str) -> None:
    assert _until_ended(tmp_path / "output", guest).returncode == 124
