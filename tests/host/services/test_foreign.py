"""Units of another system's, on a machine whose PID 1 is systemd: claimed with its ledger, and gone
once nothing declares them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.engine.claim import Provenance
from holdfast.engine.kinds.unit import FOLDER
from holdfast.host.services.foreign import claimable
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.host.services.service_passes import ServicePasses, python, unit, until, words
from tests.host.services.test_systemd import systemctl

Done = subprocess.CompletedProcess[str]

_NAME = "routerd-dnsmasq.service"
_FILE = Path(FOLDER) / _NAME
_PORT = 5354
# As a DNS server does: it holds the port or ends at once.
_SERVES = (
    "import socket, time\n"
    "held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    f"held.bind(('127.0.0.1', {_PORT}))\n"
    "while True: time.sleep(100)\n"
)
_TEXT = (
    "[Unit]\nDescription=another system's\n"
    "[Service]\nExecStart={}\nRestart=always\n"
    "[Install]\nWantedBy=multi-user.target\n"
)
_ROUTER = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
spec:
  resources:
    - apiVersion: system.holdfast.dev/v1alpha1
      kind: Hostname
      metadata: {name: name}
      spec: {hostname: router}
"""


def holdfast(*said: str) -> Done:
    command = [str(Path(sys.executable).parent / "holdfast"), *said]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def state(what: str) -> str:
    return systemctl("show", "--property", what, "--value", _NAME)


def port_is_held() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind(("127.0.0.1", _PORT))
        except OSError:
            return True
    return False


def write(content: str) -> None:
    _FILE.write_text(content)
    systemctl("daemon-reload")


def import_ledger(folder: Path, *names: str) -> Done:
    entries = [
        {
            "kind": "systemd.service",
            "name": name,
            "owner": "net.routerd.net/v1alpha1/IPv4DHCPServer/lan",
        }
        for name in names or (_NAME,)
    ]
    file = folder / "artifacts.json"
    file.write_text(json.dumps({"version": 1, "artifacts": entries}))
    return holdfast("ledger", "import", str(file))


@pytest.fixture
def theirs(machine: ServicePasses) -> Iterator[ServicePasses]:
    """A unit that runs, is enabled, and holds the port."""
    first, *others = python(_SERVES)
    # Quotes and backslashes of the code are systemd's to read.
    quoted = " ".join(
        '"' + one.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'
        for one in others
    )
    write(_TEXT.format(f"{first} {quoted}"))
    systemctl("enable", "--now", _NAME)
    until(port_is_held, "it holds the port")
    try:
        yield machine
    finally:
        systemctl("disable", "--now", _NAME)
        with suppress(FileNotFoundError):
            _FILE.unlink()
        systemctl("daemon-reload")


@pytest.mark.systemd
def test_a_unit_of_its_ledger_is_claimed_and_makes_way(
    theirs: ServicePasses, tmp_path: Path
) -> None:
    done = import_ledger(tmp_path)
    assert (done.returncode, "no claim" in done.stdout) == (0, False), done.stdout
    with Ledger.read(Paths(Path("/"))) as ledger:
        (claim,) = ledger.claims().values()
    assert str(claim.key) == f"unit {_NAME}"
    assert claim.provenance is Provenance.ADOPTED
    # Ours wants the very port: it starts in the same pass, once theirs is over.
    report = theirs.apply(unit("ours", python(_SERVES)))
    assert [f"{one.operation.verb} {one.operation.kind}" for one in report.results] == [
        "delete unit",
        "create service",
    ]
    assert not _FILE.exists()
    assert not (Path(FOLDER) / "multi-user.target.wants" / _NAME).is_symlink()
    assert state("LoadState") == "not-found"
    assert systemctl("is-active", "holdfast-ours") == "active"
    with Ledger.read(Paths(Path("/"))) as ledger:
        assert [key.kind for key in ledger.claims()] == ["service"]


@pytest.mark.systemd
def test_a_unit_that_was_changed_since_stays(theirs: ServicePasses, tmp_path: Path) -> None:
    import_ledger(tmp_path)
    write(_FILE.read_text() + "# mine\n")
    report = theirs.work()
    assert not report.results, words(report)
    (kept,) = report.before.orphans
    assert kept.reason == "kept: it is no longer what was claimed, so somebody else changed it"
    assert (state("ActiveState"), state("UnitFileState")) == ("active", "enabled")


@pytest.mark.systemd
def test_one_that_nobody_recorded_is_not_touched(theirs: ServicePasses) -> None:
    report = theirs.apply(unit("other"))
    assert [one.operation.kind for one in report.results] == ["service"]
    assert state("ActiveState") == "active"


@pytest.mark.systemd
def test_one_that_was_stopped_by_hand_goes_too(theirs: ServicePasses, tmp_path: Path) -> None:
    import_ledger(tmp_path)
    systemctl("disable", "--now", _NAME)
    theirs.apply()
    assert not _FILE.exists()


@pytest.mark.systemd
@pytest.mark.usefixtures("theirs")
def test_no_claim_on_what_cannot_be_told_again(tmp_path: Path) -> None:
    link = Path(FOLDER) / "routerd-linked.service"
    link.symlink_to(_FILE)
    try:
        done = import_ledger(tmp_path, link.name, "routerd-gone.service", "dbus.service")
    finally:
        link.unlink()
    said = done.stdout.splitlines()
    assert f"{link} is a symbolic link" in said[0]
    assert f"there is no {FOLDER}/routerd-gone.service" in said[1]
    assert "dbus.service: is not named routerd-*.service" in said[2]
    assert said[3].endswith("the ledger holds 0 claims.")


@pytest.mark.systemd
@pytest.mark.usefixtures("theirs")
@pytest.mark.parametrize("runs", [True, False])
def test_a_trial_that_is_taken_back_brings_it_back(tmp_path: Path, runs: bool) -> None:
    if not runs:
        systemctl("disable", "--now", _NAME)
    import_ledger(tmp_path)
    before, mode = _FILE.read_bytes(), _FILE.stat().st_mode
    file = tmp_path / "router.yaml"
    file.write_text(_ROUTER)
    tried = holdfast("apply", str(file), "--yes", "--confirm-within", "10m")
    assert tried.returncode == 0, tried.stdout
    assert f"deleted unit {_NAME}" in tried.stdout
    assert not _FILE.exists()
    back = holdfast("rollback")
    assert back.returncode == 0, back.stdout
    assert (_FILE.read_bytes(), _FILE.stat().st_mode) == (before, mode)
    wanted = ("active", "enabled") if runs else ("inactive", "disabled")
    assert (state("ActiveState"), state("UnitFileState")) == wanted
    with Ledger.read(Paths(Path("/"))) as ledger:
        (claim,) = (one for one in ledger.claims().values() if one.key.kind == "unit")
    assert claim.provenance is Provenance.ADOPTED


def test_below_another_root_there_is_no_claim(root: Path) -> None:
    folder = root / FOLDER.lstrip("/")
    folder.mkdir(parents=True)
    (folder / _NAME).write_text("[Service]\n")
    with pytest.raises(ValueError, match="`systemctl disable --now` it before the first apply"):
        claimable(Paths(root), _NAME)
