"""`holdfast demo`, as root and as somebody else."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

import holdfast
from tests import lanes
from tests.cli.conftest import COMMAND

NOBODY = 65534
# The packages where a normal user may read them, seen by nobody else.
_OPENED = """
mount --bind "$1" /mnt && mount --bind "$2" /media && shift 2 || exit
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""


def _links() -> str:
    return subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout


def _run(
    command: list[str], user: int, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | environment,
        capture_output=True,
        text=True,
        timeout=300,  # under QEMU
        check=False,
    )


def _demo(user: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """With the installed command; where it or its interpreter is in a folder that a normal user may
    not enter, with the system's own interpreter and the same packages."""
    try:
        return _run([COMMAND, "demo"], user, environment)
    except PermissionError:
        packages = (str(Path(holdfast.__file__).parents[1]), sysconfig.get_path("purelib"))
        environment["PYTHONPATH"] = "/mnt:/media"
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        own = ["/usr/bin/python3", "-c", f"import sys; sys.exit(sys.version[:4] != '{version}')"]
        lanes.needs(
            _run(own, user, environment).returncode == 0,
            f"a Python {version} that a normal user may start",
        )
        opened = ["unshare", "--mount", "sh", "-c", _OPENED, "sh", *packages]
        return _run([*opened, "/usr/bin/python3", "-m", "holdfast", "demo"], 0, environment)


@pytest.mark.parametrize(
    "user", [pytest.param(0, id="root"), pytest.param(NOBODY, id="nobody", marks=pytest.mark.uml)]
)
def test_the_demo_holds_and_leaves_nothing_behind(user: int) -> None:
    before = _links()
    # Not pytest's folder, which only the user who runs the tests may enter.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)  # as /tmp: a file where others may put another is not read
        done = _demo(user, TMPDIR=folder)
        left = list(Path(folder).iterdir())
    if user and "could not be made" in done.stderr:
        # Ubuntu forbids them by AppArmor, which the kernels of other lanes do not load.
        lanes.covered_elsewhere("uml", "normal users may have no user namespaces here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything held." in done.stdout
    assert "✗" not in done.stdout
    assert "\x1b" not in done.stdout
    assert _links() == before
    assert not left


def test_colour_reaches_the_commands_of_the_demo() -> None:
    done = _demo(0, CLICOLOR_FORCE="1")
    assert done.returncode == 0
    assert "\x1b[1;32m  +\x1b[0m" in done.stdout


def test_without_ip_it_says_so(tmp_path: Path) -> None:
    done = _demo(0, PATH=str(tmp_path))
    assert done.returncode == 1
    assert "install iproute2" in done.stderr
    assert done.stdout == ""


def test_a_promise_that_does_not_hold_is_a_failure(tmp_path: Path) -> None:
    """An `ip` that adds no route leaves nothing to survive or to adopt."""
    liar = tmp_path / "ip"
    liar.write_text('#!/bin/sh\n[ "$1 $2" = "route add" ] && exit 0\nexec /sbin/ip "$@"\n')
    liar.chmod(0o755)
    done = _demo(0, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "✗ the foreign route survived" in done.stdout
    assert "The demo did not hold:" in done.stdout
