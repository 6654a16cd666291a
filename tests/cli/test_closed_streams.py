"""Commands whose standard streams were closed by whoever started them."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.cli.conftest import Done, Holdfast
from tests.namespace import Namespace

ROUTER = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: edge}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {name: lab}
      spec: {destination: 10.20.0.0/16, type: blackhole}
"""
CLOSED = ("<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-")


def run(holdfast: Holdfast, closed: str, *words: str, **environment: str) -> Done:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(holdfast.arguments(*words))} {closed}"],
        cwd=holdfast.folder,
        env=holdfast.environment(**environment),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("closed", CLOSED)
def test_the_work_is_the_same(closed: str, holdfast: Holdfast, netns: Namespace) -> None:
    (holdfast.folder / "router.yaml").write_text(ROUTER)
    planned = run(holdfast, closed, "plan", "router.yaml")
    assert (planned.code, "Traceback" in planned.err) == (0, False), planned
    done = run(holdfast, closed, "apply", "router.yaml", "--yes")
    assert (done.code, "Traceback" in done.err) == (0, False), done
    assert "10.20.0.0/16" in netns.ip("route show proto 72")
    assert run(holdfast, closed, "ledger", "check").code == 0


@pytest.mark.parametrize("closed", CLOSED)
def test_what_is_wrong_is_told_by_the_exit_code(closed: str, holdfast: Holdfast) -> None:
    for words, code in ((("validate", "nowhere.yaml"), 3), (("bogus",), 64), (("--version",), 0)):
        done = run(holdfast, closed, *words)
        assert (done.code, "Traceback" in done.err) == (code, False), (words, done)


LAN = """\
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: lan}
      spec: {ifname: lan0, adminUp: true, type: bridge}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: lan}
      spec: {interface: lan, address: 192.168.1.1/24}
"""


@pytest.mark.parametrize("unheard", ["2>/dev/full", ">/dev/full 2>&1", "2>&1 | true"])
def test_a_pass_is_not_left_half_done_where_nobody_listens(
    unheard: str, holdfast: Holdfast, netns: Namespace
) -> None:
    """It tells of each stage before it begins the next one."""
    (holdfast.folder / "router.yaml").write_text(ROUTER + LAN)
    done = run(holdfast, unheard, "apply", "router.yaml", "--yes")
    assert done.code == (0 if "&1" not in unheard or "|" in unheard else 1), done
    assert "192.168.1.1" in netns.ip("address show lan0")
    assert "10.20.0.0/16" in netns.ip("route show proto 72")
    assert "converged" in holdfast.ok("generations", "list").out


@pytest.mark.parametrize(
    "words", [("plan", "router.yaml"), ("apply", "router.yaml", "--yes"), ("--help",)]
)
@pytest.mark.parametrize("buffer", ["", "1"])
@pytest.mark.usefixtures("netns")
def test_a_full_disk_below_what_is_shown_is_not_that_of_the_ledger(
    words: tuple[str, ...], buffer: str, holdfast: Holdfast
) -> None:
    (holdfast.folder / "router.yaml").write_text(ROUTER)
    done = run(holdfast, ">/dev/full", *words, PYTHONUNBUFFERED=buffer)
    assert done.code == 1
    said = "standard output: No space left on device; not all that was to be shown is there\n"
    assert done.err.endswith(f"holdfast: {said}"), done.err
