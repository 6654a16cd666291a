"""A kernel setting that goes back to what it was, with the real kernel and ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.engine.intent import Desired, Intent
from holdfast.engine.kinds.sysctl import sysctl
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.paths import Paths
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger

KEY = "net.ipv4.tcp_rmem"
SETTING = Path("/proc/sys/net/ipv4/tcp_rmem")

pytestmark = pytest.mark.usefixtures("netns")


def _apply(root: Path, value: str = "") -> Report:
    """What declares the value, or nothing where it is empty."""
    wanted = (Intent("Sysctl/rmem", sysctl(KEY, value), "r.yaml:1", revert=True),) if value else ()
    with (
        Ledger.open(Paths(root), command="test") as ledger,
        drivers.of_machine(Paths(root), 72) as host,
    ):
        policy = Policy(host.epoch, allow_mass_delete=True)
        return Pass(Desired(wanted), host, ledger, policy).run(lambda _plan: None)


def _claims(root: Path) -> int:
    with Ledger.read(Paths(root)) as ledger:
        return len(ledger.claims())


def test_a_setting_goes_back(root: Path) -> None:
    before = SETTING.read_text()
    assert _apply(root, "4096 87380 4194304").converged
    assert _apply(root, "4096 87380 2097152").converged
    assert SETTING.read_text().split() == ["4096", "87380", "2097152"]
    assert _apply(root).converged
    assert (SETTING.read_text(), _claims(root)) == (before, 0)


def test_what_somebody_changed_since_stays(root: Path) -> None:
    _apply(root, "4096 87380 4194304")
    SETTING.write_text("4096 87380 1048576\n")
    assert _apply(root).converged
    assert SETTING.read_text().split() == ["4096", "87380", "1048576"]
    assert _claims(root) == 0
