"""What `make check` runs: it must not grow less without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import lanes

pytestmark = pytest.mark.programs
_HERE = Path(__file__).parent
# Of the folders of pure packages, counted when this was written: it may only become more.
_AT_LEAST = 1700


def _collected(*arguments: str) -> list[str]:
    collect = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*collect, *arguments, *(f"tests/{folder}" for folder in lanes.PURE)],
        cwd=_HERE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_every_place_is_there() -> None:
    assert [name for name in lanes.CHECKED if not (_HERE / name).exists()] == []


def test_of_pure_packages_it_leaves_out_what_is_marked_and_nothing_else() -> None:
    everything, run = _collected(), _collected("--check")
    marked = _collected("-m", "not soak and (programs or long)")
    assert sorted(everything) == sorted(run + marked)
    assert len(run) >= _AT_LEAST


def test_a_test_that_starts_a_program_fails(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("__init__.py", "conftest.py", "lanes.py", "namespace.py"):
        (tmp_path / "tests" / name).symlink_to(_HERE / name)
    body = "import subprocess\ndef test_it():\n    subprocess.run(['true'])\n"
    (tmp_path / "tests" / "test_it.py").write_text(body)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--check", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "mark it `programs`" in done.stdout
