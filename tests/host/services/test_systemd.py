"""Units of systemd, on a machine whose PID 1 it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from holdfast.engine.kinds.service import Unit, service
from holdfast.engine.plan import Verb
from holdfast.host.services import ended, processes
from holdfast.paths import Paths
from tests import lanes
from tests.host.services.service_passes import ServicePasses, over, python, unit, until, words
from tests.host.services.test_supervisor import DEAF, STUBBORN

pytestmark = pytest.mark.systemd

_UNITS = Path("/etc/systemd/system")
_FILE = _UNITS / "holdfast-one.service"
_HUP = (
    "import signal, time\n"
    "signal.signal(signal.SIGHUP, lambda *_: open('/run/hup', 'a').write('read again\\n'))\n"
    "open('/run/hup', 'w').write('began\\n')\n"
    "while True: time.sleep(100)\n"
)


@pytest.fixture(autouse=True)
def _no_word_of_it_yet() -> None:
    if lanes.current() == "systemd":
        Path("/run/hup").write_text("")


def systemctl(*words: str) -> str:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def show(what: str, name: str = "one") -> str:
    return systemctl("show", "--property", what, "--value", f"holdfast-{name}.service")


def main_pid(name: str = "one") -> int:
    return int(show("MainPID", name))


def test_a_unit_is_made_enabled_and_started(machine: ServicePasses) -> None:
    report = machine.apply(unit("one"))
    assert [result.operation.verb for result in report.results] == [Verb.CREATE]
    assert show("ActiveState") == "active"
    assert show("UnitFileState") == "enabled"
    assert Path(f"/proc/{main_pid()}/cmdline").read_bytes() == b"/usr/bin/sleep\x001000\x00"
    assert machine.changes(unit("one")) == []


def test_a_unit_that_is_not_declared_any_more_goes(machine: ServicePasses) -> None:
    machine.apply(unit("one"), unit("two"))
    first, second = main_pid(), main_pid("two")
    machine.apply(unit("two"))
    assert over(first)
    assert main_pid("two") == second
    assert not _FILE.exists()
    assert not (_UNITS / "multi-user.target.wants/holdfast-one.service").is_symlink()
    assert show("LoadState") == "not-found"


def test_a_changed_unit_is_restarted_alone(machine: ServicePasses) -> None:
    machine.apply(unit("one"), unit("two"))
    first, second = main_pid(), main_pid("two")
    machine.apply(unit("one", ("/usr/bin/sleep", "2000")), unit("two"))
    assert main_pid() != first
    assert Path(f"/proc/{main_pid()}/cmdline").read_bytes() == b"/usr/bin/sleep\x002000\x00"
    assert main_pid("two") == second


def test_a_reload_is_a_signal_and_nothing_more(machine: ServicePasses) -> None:
    machine.apply(unit("one", python(_HUP), reload="a"))
    until(lambda: Path("/run/hup").read_text() == "began\n", "it began")
    pid = main_pid()
    machine.apply(unit("one", python(_HUP), reload="b"))
    until(lambda: Path("/run/hup").read_text() == "began\nread again\n", "it read again, once")
    assert main_pid() == pid
    assert machine.changes(unit("one", python(_HUP), reload="b")) == []


def test_how_one_ended_is_told(machine: ServicePasses) -> None:
    broken = unit("one", python("print('password hunter2'); exit(3)"))
    machine.work(broken)
    until(lambda: show("SubState") == "auto-restart", "it ended")
    told = ended.why(Paths(machine.root), [service(broken)])
    assert told == {"one": "service one ended with status 3: password (not shown)"}
    machine.apply(unit("one"))
    assert ended.why(Paths(machine.root), [service(broken)]) == {}


def test_one_stopped_by_hand_is_drift(machine: ServicePasses) -> None:
    machine.apply(unit("one"))
    systemctl("stop", "holdfast-one")
    assert machine.changes(unit("one")) == ["update one active differs"]
    machine.apply(unit("one"))
    assert show("ActiveState") == "active"


def test_one_that_falls_comes_back_and_is_still_known(machine: ServicePasses) -> None:
    machine.apply(unit("one", python(_HUP), reload="a"))
    until(lambda: Path("/run/hup").read_text() == "began\n", "it began")
    machine.apply(unit("one", python(_HUP), reload="b"))
    first = main_pid()
    os.kill(first, signal.SIGKILL)
    until(lambda: main_pid() not in (0, first), "systemd starts it again")
    # It has a number before its sandbox is made, and is active when its program runs.
    until(lambda: show("ActiveState") == "active", "it runs")
    assert machine.changes(unit("one", python(_HUP), reload="b")) == []


def test_one_that_would_not_start_at_boot_is_drift_and_is_not_restarted(
    machine: ServicePasses,
) -> None:
    machine.apply(unit("one"))
    pid = main_pid()
    systemctl("disable", "holdfast-one")
    assert machine.changes(unit("one")) == ["update one unit differs"]
    machine.apply(unit("one"))
    assert show("UnitFileState") == "enabled"
    assert main_pid() == pid


def test_a_unit_file_changed_by_hand_is_put_right(machine: ServicePasses) -> None:
    machine.apply(unit("one"))
    pid = main_pid()
    before = _FILE.read_bytes()
    _FILE.write_bytes(before.replace(b"1000", b"3000"))
    machine.apply(unit("one"))
    assert _FILE.read_bytes() == before
    assert main_pid() == pid  # what ran was right


def test_what_was_started_by_a_changed_unit_file_is_restarted(machine: ServicePasses) -> None:
    machine.apply(unit("one"))
    _FILE.write_bytes(_FILE.read_bytes().replace(b"1000", b"3000"))
    systemctl("daemon-reload")
    systemctl("restart", "holdfast-one")
    machine.apply(unit("one"))
    assert Path(f"/proc/{main_pid()}/cmdline").read_bytes() == b"/usr/bin/sleep\x001000\x00"


def test_what_was_started_with_a_changed_file_is_restarted(machine: ServicePasses) -> None:
    conf = Path("/etc/holdfast/of one's own $HOME %n.conf")
    machine.files = {str(conf): b"right"}
    machine.apply(unit("one", reload="a"))
    pid = main_pid()
    conf.write_bytes(b"wrong")
    assert [line.split()[0] for line in machine.changes(unit("one", reload="a"))] == ["update"]
    machine.apply(unit("one", reload="a"))
    assert main_pid() == pid  # what it has read was right
    systemctl("restart", "holdfast-one")
    assert machine.changes(unit("one", reload="a")) == []
    conf.write_bytes(b"wrong")
    systemctl("restart", "holdfast-one")
    pid = main_pid()
    machine.apply(unit("one", reload="a"))
    assert main_pid() != pid
    assert machine.changes(unit("one", reload="a")) == []
    # What it was told to read again is not another start.
    machine.files[str(conf)] = b"new"
    pid = main_pid()
    machine.apply(unit("one", python(_HUP), reload="b"))
    systemctl("restart", "holdfast-one")
    assert machine.changes(unit("one", python(_HUP), reload="b")) == []
    machine.files = {}
    machine.apply()
    assert not Path("/run/holdfast/services/one.started").exists()


def test_a_unit_file_removed_by_hand_comes_back(machine: ServicePasses) -> None:
    machine.apply(unit("one"))
    pid = main_pid()
    _FILE.unlink()
    assert machine.changes(unit("one")) == ["update one unit differs"]
    machine.apply(unit("one"))
    assert main_pid() == pid
    assert machine.changes(unit("one")) == []


def printed(pid: int) -> list[str]:
    """What the journal has of a process."""
    subprocess.run(["journalctl", "--sync"], check=True)
    done = subprocess.run(
        ["journalctl", "--output", "cat", "--no-pager", f"_PID={pid}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_one_that_did_not_hear_is_asked_again(machine: ServicePasses) -> None:
    machine.apply(unit("one", python(DEAF), stop_timeout=60))
    pid = main_pid()
    until(lambda: "began" in printed(pid), "it began")
    systemctl("stop", "holdfast-one")
    assert over(pid)
    assert show("Result") == "success"
    assert printed(pid) == ["began", "asked", "asked", "asked"]


def test_one_that_does_not_end_when_asked_is_killed(machine: ServicePasses) -> None:
    machine.apply(unit("one", python(STUBBORN), stop_timeout=2))
    pid = main_pid()
    until(lambda: "began" in printed(pid), "it began")
    machine.apply()
    assert over(pid)
    assert show("LoadState") == "not-found"


def test_one_that_ends_by_itself_is_started_again_and_nobody_is_asked_to_end(
    machine: ServicePasses,
) -> None:
    machine.apply(unit("one", ("/usr/bin/sleep", "2")))
    first = main_pid()
    until(lambda: main_pid() not in (0, first), "systemd starts it again")
    assert show("Result") == "success"


@pytest.mark.parametrize("folder", ["/etc/systemd/system", "/usr/lib/systemd/system"])
def test_a_unit_of_others_is_a_conflict(machine: ServicePasses, folder: str) -> None:
    theirs = Path(folder, "holdfast-one.service")
    theirs.write_text("[Service]\nExecStart=/usr/bin/sleep 77\n")
    systemctl("daemon-reload")
    try:
        report = machine.work(unit("one"))
        assert len(report.after.conflicts) == 1
        assert theirs.read_text() == "[Service]\nExecStart=/usr/bin/sleep 77\n"
        assert show("ActiveState") == "inactive"
    finally:
        theirs.unlink()
        systemctl("daemon-reload")


def test_one_that_others_put_in_its_place_is_not_deleted(machine: ServicePasses) -> None:
    machine.apply(unit("one"))
    _FILE.write_text("[Service]\nExecStart=/usr/bin/sleep 77\n")
    systemctl("daemon-reload")
    try:
        machine.work()
        assert _FILE.exists()
        assert show("ActiveState") == "active"
    finally:
        systemctl("disable", "--now", "holdfast-one")
        _FILE.unlink()
        systemctl("daemon-reload")


def test_a_unit_that_ends_at_once_is_a_failure_with_its_words(machine: ServicePasses) -> None:
    report = machine.work(
        unit("one", python("import sys; print('bad option: frob', file=sys.stderr); sys.exit(2)"))
    )
    assert not report.converged
    assert "bad option: frob" in words(report)


def test_a_program_that_is_not_there_is_a_failure(machine: ServicePasses) -> None:
    report = machine.work(unit("one", ("/usr/bin/nothing-like-it",)))
    assert report.failures, "it cannot have started"
    assert "failed" in words(report)


def test_arguments_and_environment_are_passed_as_they_are(machine: ServicePasses) -> None:
    said = ("$HOME %n ${PATH} '\"\\ ; * ", "", "~", "a\\x41")
    code = "import time; time.sleep(1000)"
    declared = unit("one", (*python(code), *said), environment=(("V", "$X %h \"'\\ "),))
    machine.apply(declared)
    pid = main_pid()
    argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    assert [word.decode() for word in argv[-4:]] == list(said)
    assert b"V=$X %h \"'\\ \0" in Path(f"/proc/{pid}/environ").read_bytes()


def test_folders_are_made_before_it_starts(machine: ServicePasses) -> None:
    machine.apply(unit("one", folders=("/run/holdfast/with %blank",)))
    assert Path("/run/holdfast/with %blank").is_dir()


def test_without_a_message_bus_systemd_is_asked_itself(
    machine: ServicePasses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.host.services.dbus.SYSTEM_BUS", "/run/no/such/socket")
    machine.apply(unit("one"))
    assert show("ActiveState") == "active"
    machine.apply(unit("one", config="other"))
    machine.apply()
    assert show("LoadState") == "not-found"


def test_in_a_network_namespace_of_its_own_the_supervisor_is_ours(
    machine: ServicePasses,
    netns: object,  # noqa: ARG001
) -> None:
    machine.apply(unit("one"))
    assert not _FILE.exists()
    assert processes.network(machine.pid("one")) == processes.network()
    machine.apply()


def test_text_reaches_a_program_as_it_was_declared(machine: ServicePasses) -> None:
    """Whatever systemd would make of it: specifiers, variables, quotes, a line that goes on."""
    odd = (
        *(
            "\\",
            "a\\",
            "\\\\",
            '"',
            "'",
            "%",
            "%n %%",
            "$HOME",
            "${HOME}",
            "$$",
            ";",
            "\\;",
            "",
            " ",
        ),
        *("#", "a b", "\\x41", "\\n", "é€", "-x", "@a", "+", "!", ":", "=", "[Service]", "~", "*"),
    )
    said = Path("/run/said")
    tell = (
        "import json, os, sys, time\n"
        f"open({str(said)!r}, 'w').write(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
        "while True: time.sleep(100)\n"
    )
    said.write_text("")
    names = tuple((f"ODD{number}", text) for number, text in enumerate(odd))
    shown = Unit("one", "client on wan\\", (*python(tell), *odd), environment=names)
    machine.apply(shown)
    until(said.read_text, "what it was started with")
    argv, environment = json.loads(said.read_text())
    assert argv == list(odd)
    assert {name: environment[name] for name, _ in names} == dict(names)
    # The line after the description is still a setting.
    assert show("Description").startswith("client on wan\\")
    assert "network-pre.target" in show("After")
    assert machine.changes(shown) == []
