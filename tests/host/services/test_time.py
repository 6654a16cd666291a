"""The time by NTP, and the host's name, on a machine whose PID 1 is systemd."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine.artifact import Key
from holdfast.paths import Paths
from holdfast.resources.site import Site
from holdfast.resources.system.ntp_client import chrony_conf, parse_server
from holdfast.state.ledger import Ledger
from tests.cli.conftest import COMMAND, HEAD
from tests.host.services.service_passes import ServicePasses
from tests.host.services.test_systemd import show, systemctl

pytestmark = pytest.mark.systemd

_DROPIN = Path("/etc/systemd/timesyncd.conf.d/holdfast.conf")
_TIMESYNCD = "systemd-timesyncd.service"
_ROUTER = Path("/run/router.yaml")


def apply(*resources: tuple[str, str, str], root: str = "/") -> str:
    """Resources of the group system, as kind, name and spec."""
    text = HEAD.rstrip("\n") + ("\n" if resources else " []\n")
    for kind, name, spec in resources:
        text += (
            f"    - apiVersion: system.holdfast.dev/v1alpha1\n      kind: {kind}\n"
            f"      metadata: {{name: {name}}}\n      spec: {spec}\n"
        )
    _ROUTER.write_text(text)
    # Another installation needs a network namespace of its own.
    elsewhere = [] if root == "/" else ["unshare", "--net"]
    done = subprocess.run(
        [
            *elsewhere,
            COMMAND,
            "--root",
            root,
            "apply",
            str(_ROUTER),
            "--yes",
            "--allow-mass-delete",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ntp(spec: str) -> tuple[str, str, str]:
    return "NTPClient", "time", spec


def servers() -> list[str]:
    """Which ones systemd-timesyncd has read of."""
    done = subprocess.run(
        [
            *("busctl", "get-property", "org.freedesktop.timesync1", "/org/freedesktop/timesync1"),
            *("org.freedesktop.timesync1.Manager", "SystemNTPServers"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r'"([^"]*)"', done.stdout)


@pytest.fixture
def clean(machine: ServicePasses) -> Iterator[ServicePasses]:
    systemctl("reset-failed", _TIMESYNCD)  # systemd counts how often a unit is started
    yield machine
    apply()


@pytest.mark.usefixtures("clean")
class TestTimesyncd:
    def test_it_runs_and_has_read_the_servers(self) -> None:
        systemctl("disable", "--now", _TIMESYNCD)
        apply(ntp("{servers: [192.0.2.1, ntp.example.net]}"))
        assert servers() == ["192.0.2.1", "ntp.example.net"]
        assert systemctl("is-enabled", _TIMESYNCD) == "enabled"
        assert "as declared" in apply(ntp("{servers: [192.0.2.1, ntp.example.net]}"))

    def test_other_servers_are_read(self) -> None:
        apply(ntp("{servers: [192.0.2.1]}"))
        apply(ntp("{servers: [192.0.2.2]}"))
        assert servers() == ["192.0.2.2"]

    def test_a_second_pass_restarts_nothing(self) -> None:
        apply(ntp("{servers: [192.0.2.1]}"))
        before = systemctl("show", "--property", "MainPID", _TIMESYNCD)
        apply(ntp("{servers: [192.0.2.1]}"))
        assert systemctl("show", "--property", "MainPID", _TIMESYNCD) == before

    def test_a_file_changed_by_hand_is_put_right_and_read(self) -> None:
        apply(ntp("{servers: [192.0.2.1]}"))
        _DROPIN.write_text("[Time]\nNTP=192.0.2.66\n")
        systemctl("restart", _TIMESYNCD)
        assert servers() == ["192.0.2.66"]
        apply(ntp("{servers: [192.0.2.1]}"))
        assert servers() == ["192.0.2.1"]

    def test_one_stopped_by_hand_is_started(self) -> None:
        apply(ntp("{servers: [192.0.2.1]}"))
        systemctl("stop", _TIMESYNCD)
        apply(ntp("{servers: [192.0.2.1]}"))
        assert systemctl("is-active", _TIMESYNCD) == "active"

    def test_servers_that_are_not_declared_any_more_are_forgotten(self) -> None:
        apply(ntp("{servers: [192.0.2.1]}"))
        apply()
        assert not _DROPIN.exists()
        assert servers() == []
        assert systemctl("is-active", _TIMESYNCD) == "active"

    def test_a_file_of_others_is_left_alone(self) -> None:
        _DROPIN.parent.mkdir(parents=True, exist_ok=True)
        _DROPIN.write_text("[Time]\nNTP=192.0.2.66\n")
        try:
            with pytest.raises(AssertionError, match="Conflicts"):
                apply(ntp("{servers: [192.0.2.1]}"))
            assert _DROPIN.read_text() == "[Time]\nNTP=192.0.2.66\n"
        finally:
            _DROPIN.unlink()

    def test_below_another_root_the_file_is_all(self, tmp_path: Path) -> None:
        systemctl("stop", _TIMESYNCD)
        apply(ntp("{servers: [192.0.2.1]}"), root=str(tmp_path))
        assert "NTP=192.0.2.1" in (tmp_path / str(_DROPIN).lstrip("/")).read_text()
        assert systemctl("is-active", _TIMESYNCD) == "inactive"
        assert not _DROPIN.exists()


@pytest.fixture
def time_server() -> Iterator[str]:
    """A chronyd that tells the time and leaves the clock alone."""
    conf = Path("/run/server.conf")
    conf.write_text(
        "local stratum 5\nallow 127.0.0.0/8\ncmdport 0\nbindcmdaddress /\npidfile /run/server.pid\n"
    )
    server = subprocess.Popen(["/usr/sbin/chronyd", "-x", "-d", "-f", str(conf)])
    yield "127.0.0.1"
    server.terminate()
    server.wait()


def test_chrony_understands_its_file_and_gets_the_time_by_it(
    clean: ServicePasses, time_server: str
) -> None:
    # The machine may not set the clock, which ends a chronyd that wants to: its start fails here.
    # How that is said depends on which of systemd's starts of it was seen to fail.
    with pytest.raises(
        AssertionError,
        match=r"it ended as soon as it was started|is (activating|failed)|RestartUnit .*failed",
    ):
        apply(ntp(f"{{provider: chrony, servers: [{time_server}]}}"))
    assert show("ActiveState", "chrony") in ("activating", "active", "failed")
    asked = subprocess.run(
        ["/usr/sbin/chronyd", "-Q", "-t", "20", "-f", "/etc/holdfast/chrony.conf"],
        capture_output=True,
        text=True,
        check=False,
        timeout=40,
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert "System clock wrong by" in asked.stderr
    assert Key("service", "chrony") in _claims(clean)


def test_chrony_takes_every_setting_we_may_write(clean: ServicePasses) -> None:  # noqa: ARG001
    given = [parse_server(text) for text in ("ntp.example.net", "192.0.2.1", "2001:db8::1")]
    conf = Path("/run/chrony.conf")
    conf.write_text(chrony_conf(given, ["lo"], Site()))
    done = subprocess.run(
        ["/usr/sbin/chronyd", "-p", "-f", str(conf)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "bindacqdevice lo" in done.stdout


@pytest.mark.usefixtures("clean")
def test_the_host_name_is_the_machines() -> None:
    before = Path("/etc/hostname").read_text().strip()
    apply(("Hostname", "it", "{hostname: router.example.net}"))
    done = subprocess.run(["hostnamectl", "hostname"], capture_output=True, text=True, check=False)
    name = done.stdout.strip() or Path("/proc/sys/kernel/hostname").read_text().strip()
    assert name == "router.example.net"
    assert Path("/etc/hostname").read_text() == "router.example.net\n"
    apply(("Hostname", "it", f"{{hostname: {before}}}"))


def _claims(stage: ServicePasses) -> set[Key]:
    with Ledger.open(Paths(stage.root), command="test") as ledger:
        return set(ledger.claims())
