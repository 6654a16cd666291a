"""What a machine lacks that its distribution does not offer: said in one line, and what follows."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[2]


def _run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=_PROJECT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _packages(folder: Path, entry: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(_PROJECT / "tools" / "debian-packages", folder)
    (folder / "debian-packages.txt").write_text(f"# none of these\n{entry}\n")
    return _run(folder / "debian-packages", "test")


def test_a_package_that_apt_does_not_offer(tmp_path: Path) -> None:
    done = _packages(tmp_path, "holdfast-no-such test | no flux lane")
    assert done.returncode == 0
    assert (done.stdout, done.stderr) == ("", "apt offers no holdfast-no-such: no flux lane\n")


def test_a_package_for_something_else_is_not_asked_for(tmp_path: Path) -> None:
    done = _packages(tmp_path, "holdfast-no-such bench | no flux lane")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_every_purpose_is_known() -> None:
    for line in (_PROJECT / "tools" / "debian-packages.txt").read_text().splitlines():
        if not line.startswith("#"):
            package, *purposes = line.partition("|")[0].split()
            assert purposes, package
            assert set(purposes) <= {"setup", "demo", "test", "bench"}, package


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A PATH with hardly anything in it."""
    for program in ("bash", "dirname", "grep"):
        found = shutil.which(program)
        assert found is not None
        (tmp_path / program).symlink_to(found)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("tool", "program"), [("nspawn-run", "systemd-nspawn"), ("qemu-run", "qemu-system-x86_64")]
)
def test_a_lane_without_its_program(tool: str, program: str, bare: str) -> None:
    done = _run(_PROJECT / "tools" / tool, "true", PATH=bare)
    assert done.stderr == f"{tool}: no {program}, which tools/debian-packages test would install\n"
    assert (done.stdout, done.returncode) == ("", 69)


def test_without_user_mode_linux_there_is_qemu(bare: str) -> None:
    done = _run(_PROJECT / "tools" / "uml-run", "true", PATH=bare)
    first, second = done.stderr.splitlines()
    assert first.startswith("uml-run: no linux.uml")
    assert second.startswith("qemu-run: no qemu-system-x86_64")
    assert done.returncode == 69


@pytest.mark.parametrize(("ci", "status"), [("true", 2), ("", 0)])
def test_a_lane_that_lacks_something_fails_under_ci_alone(ci: str, status: int, bare: str) -> None:
    make = shutil.which("make")
    assert make is not None
    # Neither the environment nor the packages are what it is about: both are taken to be there.
    made = ("-o", ".venv/dev.stamp", "-o", "packages-test")
    done = _run(make, *made, "test-systemd", PATH=bare, CI=ci)
    assert "no systemd-nspawn" in done.stderr
    assert done.returncode == status, done.stderr
