"""The rules on skips, run for real in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import lanes

pytestmark = pytest.mark.programs

_HERE = Path(__file__).parent


def _pytest(tmp_path: Path, body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one test file under this project's conftest, in a tree of its own."""
    (tmp_path / "tests").mkdir()
    for name in ("__init__.py", "conftest.py", "lanes.py", "namespace.py"):
        (tmp_path / "tests" / name).symlink_to(_HERE / name)
    header = "import pytest\nfrom tests.lanes import covered_elsewhere, needs\n"
    (tmp_path / "tests" / "test_it.py").write_text(header + body)
    kept = {
        name: value for name, value in os.environ.items() if name not in ("CI", "HOLDFAST_LANE")
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "tests/test_it.py"],
        cwd=tmp_path,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


_LACKING = "def test_it():\n    needs(False, 'a flux capacitor')\n"


def test_what_the_machine_lacks_is_said_in_one_line(tmp_path: Path) -> None:
    done = _pytest(tmp_path, _LACKING)
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if "flux" in line] == [
        "SKIPPED [1] tests/test_it.py:4: needs a flux capacitor"
    ]


def test_what_the_machine_lacks_fails_under_ci(tmp_path: Path) -> None:
    done = _pytest(tmp_path, _LACKING, CI="true")
    assert done.returncode == 1
    assert "no lane covers it: needs a flux capacitor" in done.stdout


_MODULE = "pytest.skip('no such kernel', allow_module_level=True)\n"


def test_a_module_skipped_whole_fails_under_ci(tmp_path: Path) -> None:
    done = _pytest(tmp_path, _MODULE, CI="true")
    assert done.returncode != 0
    assert "no lane covers it: no such kernel" in done.stdout


_COVERED = "def test_it():\n    covered_elsewhere('uml', 'no vlan here')\n"


def test_what_another_lane_covers_may_be_skipped_under_ci(tmp_path: Path) -> None:
    done = _pytest(tmp_path, "@pytest.mark.uml\n" + _COVERED, CI="true")
    assert done.returncode == 0, done.stdout
    assert "covered by the uml lane: no vlan here" in done.stdout


def test_what_another_lane_covers_is_said_once_for_a_file(tmp_path: Path) -> None:
    second = _COVERED.replace("test_it", "test_too")
    done = _pytest(tmp_path, "pytestmark = pytest.mark.uml\n" + _COVERED + second)
    assert [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")] == [
        "SKIPPED [2] tests/test_it.py: covered by the uml lane: no vlan here"
    ]


def test_a_mark_that_the_makefile_would_not_find_is_refused(tmp_path: Path) -> None:
    done = _pytest(tmp_path, "@getattr(pytest.mark, 'uml')\ndef test_it():\n    pass\n")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "tests/test_it.py::test_it: its own file must say mark.uml" in done.stderr


def test_a_test_the_other_lane_would_not_select_is_not_covered(tmp_path: Path) -> None:
    done = _pytest(tmp_path, _COVERED)
    assert done.returncode == 1
    assert "runs only tests marked `uml`" in done.stdout


def test_the_covering_lane_itself_may_not_pass_it_on(tmp_path: Path) -> None:
    done = _pytest(tmp_path, "@pytest.mark.uml\n" + _COVERED, HOLDFAST_LANE="uml")
    assert done.returncode == 1
    assert "is the one that must run this" in done.stdout


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    body = "@pytest.mark.xfail(strict=True, reason='known')\ndef test_it():\n    assert False\n"
    assert _pytest(tmp_path, body, CI="true").returncode == 0


def test_an_unknown_lane_is_an_error() -> None:
    with pytest.raises(ValueError, match="no lane 'vml'"):
        lanes.covered_elsewhere("vml", "a slip of the finger")
