"""Our own supervisor, with real programs."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.kinds.service import service
from holdfast.engine.plan import Verb
from holdfast.host import programs
from holdfast.host.services import driver, ended, log, processes
from holdfast.host.services.client import Client
from holdfast.host.services.declared import definition_of
from holdfast.paths import Paths
from tests.host.services.service_passes import (
    SLEEP,
    ServicePasses,
    over,
    python,
    stage,
    unit,
    until,
    words,
)

# Says when it is told to read again, and how.
HUP = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGHUP, lambda *_: print('read again', flush=True))\n"
    "print('began', flush=True)\n"
    "while True: time.sleep(100)\n"
)
STUBBORN = (
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('began', flush=True)\n"
    "while True: time.sleep(100)\n"
)
# Hears the third request to end.
DEAF = (
    "import signal, sys, time\n"
    "asked = []\n"
    "def heard(*_):\n"
    "    asked.append(1)\n"
    "    print('asked', flush=True)\n"
    "    if len(asked) == 3: sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, heard)\n"
    "print('began', flush=True)\n"
    "while True: time.sleep(100)\n"
)


def test_a_service_is_started_and_the_second_pass_has_nothing_to_do(
    services: ServicePasses,
) -> None:
    report = services.apply(unit("one"))
    assert [result.operation.verb for result in report.results] == [Verb.CREATE]
    pid = services.pid("one")
    assert Path(f"/proc/{pid}/cmdline").read_bytes() == b"/usr/bin/sleep\x001000\x00"
    assert services.changes(unit("one")) == []
    assert services.pid("one") == pid


def test_the_environment_is_clean_and_the_namespace_is_the_one_of_the_pass(
    services: ServicePasses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKED", "secret")
    services.apply(unit("one", environment=(("GIVEN", "a b"),)))
    pid = services.pid("one")
    names = {
        entry.partition(b"=")[0] for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    }
    assert names == {b"", b"PATH", b"LC_ALL", b"GIVEN", b"HOLDFAST_SERVICE"}
    assert processes.network(pid) == processes.network()
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]  # noqa: PTH208


def test_it_has_no_way_to_more_rights(services: ServicePasses) -> None:
    services.apply(unit("one"))
    state = Path(f"/proc/{services.pid('one')}/status").read_text()
    said = dict(line.split(":", 1) for line in state.splitlines())
    assert said["NoNewPrivs"].strip() == "1"
    never = sum(1 << number for number in (16, 17, 19, 22, 27, 34))
    assert not int(said["CapBnd"], 16) & never


def test_folders_are_made_before_it_starts(services: ServicePasses, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "for it"
    code = f"import os, time; print(os.path.isdir({str(folder)!r}), flush=True); time.sleep(100)"
    services.apply(unit("one", python(code), folders=(str(folder),)))
    until(lambda: services.log("one") == "True\n", "the program's line")


def test_a_program_that_falls_is_started_again(services: ServicePasses) -> None:
    services.apply(unit("one"))
    first = services.pid("one")
    os.kill(first, signal.SIGKILL)
    until(lambda: services.restarted("one", first), "another process")
    assert services.changes(unit("one")) == []
    assert "one: ended with SIGKILL; starts again in 0." in services.log("_supervisor")


@pytest.mark.parametrize("session", [False, True])
def test_what_it_left_behind_ends_with_it(services: ServicePasses, session: bool) -> None:
    child = (
        "import subprocess, time\n"
        f"subprocess.Popen(['/usr/bin/sleep', '987'], start_new_session={session})\n"
        "time.sleep(100)\n"
    )
    services.apply(unit("one", python(child)))
    until(lambda: services.strays("one"), "its child")
    (stray,) = services.strays("one")
    services.apply()
    until(lambda: over(stray), "the child ends")


def test_a_changed_definition_restarts_that_service_alone(services: ServicePasses) -> None:
    services.apply(unit("one"), unit("two"))
    first, second = services.pid("one"), services.pid("two")
    report = services.apply(unit("one", config="new"), unit("two"))
    assert [r.operation.reason for r in report.results] == ["unit differs"]
    assert services.pid("one") != first
    assert services.pid("two") == second
    assert over(first)


def test_a_reload_is_a_signal_and_nothing_more(services: ServicePasses) -> None:
    services.apply(unit("one", python(HUP), reload="a"))
    until(lambda: "began" in services.log("one"), "it began")
    pid = services.pid("one")
    report = services.apply(unit("one", python(HUP), reload="b"))
    assert [r.operation.reason for r in report.results] == ["reload differs"]
    until(lambda: services.log("one") == "began\nread again\n", "it read again, once")
    assert services.pid("one") == pid
    assert services.changes(unit("one", python(HUP), reload="b")) == []


def test_a_process_that_began_after_a_reload_needs_none(services: ServicePasses) -> None:
    services.apply(unit("one", python(HUP), reload="a"))
    until(lambda: "began" in services.log("one"), "it began")
    services.apply(unit("one", python(HUP), reload="b"))
    first = services.pid("one")
    os.kill(first, signal.SIGKILL)
    until(lambda: services.restarted("one", first), "another process")
    assert services.changes(unit("one", python(HUP), reload="b")) == []


def test_one_stopped_by_hand_is_drift(services: ServicePasses) -> None:
    services.apply(unit("one"))
    services.kill_supervisor()
    os.kill(services.pid("one"), signal.SIGKILL)
    until(lambda: services.running("one") is None, "it ended")
    assert services.changes(unit("one")) == ["update one active differs"]
    services.apply(unit("one"))
    assert services.pid("one")


def test_a_removed_service_ends_and_the_supervisor_with_the_last(services: ServicePasses) -> None:
    services.apply(unit("one"), unit("two"))
    one, two = services.pid("one"), services.pid("two")
    services.apply(unit("two"))
    assert over(one)
    assert services.pid("two") == two
    services.apply()
    assert over(two)
    assert services.folder.names() == []
    until(lambda: services.supervisors() == [], "the supervisor ends")


def test_one_that_does_not_end_when_asked_is_killed(services: ServicePasses) -> None:
    services.apply(unit("one", python(STUBBORN), stop_timeout=1))
    until(lambda: "began" in services.log("one"), "it began")
    services.apply()
    assert "did not end within 1 s, and is killed" in services.log("_supervisor")


def test_one_that_did_not_hear_is_asked_again(services: ServicePasses) -> None:
    services.apply(unit("one", python(DEAF), stop_timeout=60))
    until(lambda: "began" in services.log("one"), "it began")
    services.apply()
    assert services.log("one") == "began\nasked\nasked\nasked\n"
    assert "one: ended with status 0, as asked" in services.log("_supervisor")


def test_one_that_did_not_hear_is_asked_again_by_the_next_supervisor(
    services: ServicePasses,
) -> None:
    services.apply(unit("one", python(DEAF), stop_timeout=60))
    until(lambda: "began" in services.log("one"), "it began")
    services.kill_supervisor()
    services.apply()
    assert services.log("one") == "began\nasked\nasked\nasked\n"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that shows at once that it is of no use may take its time for that."""
    monkeypatch.setattr(driver, "SETTLE_S", 60.0)


@pytest.mark.usefixtures("patient")
def test_a_program_that_ends_at_once_is_a_failure_with_its_words(services: ServicePasses) -> None:
    bad = unit("one", python("import sys; print('bad option: frob', file=sys.stderr); sys.exit(2)"))
    report = services.work(bad)
    assert not report.converged
    assert "it ended as soon as it was started: bad option: frob" in words(report)
    assert services.folder.definition("one") is not None  # and is tried again


def test_a_program_that_is_not_there_is_a_failure(services: ServicePasses) -> None:
    report = services.work(unit("one", ("/usr/bin/nothing-like-it",)))
    assert "/usr/bin/nothing-like-it: No such file or directory" in words(report)
    assert services.folder.running("one") is None


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("before", [(), ("/usr/bin/env", "--")], ids=["alone", "through another"])
def test_a_program_of_ours_that_is_not_there_names_its_package(
    services: ServicePasses, monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...]
) -> None:
    monkeypatch.setitem(programs.PACKAGES, "/usr/bin/nothing-like-it", "not-at-all")
    report = services.work(unit("one", (*before, "/usr/bin/nothing-like-it")))
    (failure,) = {failure.error for _, failure in report.failures}
    assert "nothing-like-it" in failure
    assert failure.endswith("No such file or directory: install the Debian package not-at-all")


def test_how_a_program_ended_is_told_until_it_is_another(services: ServicePasses) -> None:
    """Without what looks like a secret: all who may read the status see it."""
    broken = unit(
        "one", python("print('the token is hunter2'); print('password hunter2'); exit(3)")
    )
    services.work(broken)
    until(lambda: services.folder.ended("one"), "it is on record")
    assert ended.why(Paths(services.root), [service(broken)]) == {
        "one": "service one ended with status 3: password (not shown)"
    }
    services.apply(unit("one"))
    assert services.pid("one")
    until(lambda: not services.folder.ended("one"), "it is forgotten")
    services.apply()
    assert ended.why(Paths(services.root), [service(broken)]) == {}


@pytest.mark.parametrize("argv", [("sleep", "1"), ("/bin/echo", "a\nb"), ()])
def test_what_cannot_be_a_unit_is_refused(services: ServicePasses, argv: tuple[str, ...]) -> None:
    assert services.work(unit("one", argv)).failures
    assert services.folder.names() == []


def test_arguments_are_passed_as_they_are(services: ServicePasses, tmp_path: Path) -> None:
    said = ("$HOME %n '\"\\ ; * ", "", "~")
    code = (
        "import sys, time\n"
        f"open({str(tmp_path / 'said')!r}, 'w').write(repr(sys.argv[1:]))\n"
        "time.sleep(100)\n"
    )
    services.apply(unit("one", (*python(code), *said)))
    until(lambda: (tmp_path / "said").exists(), "the program's file")
    until(lambda: (tmp_path / "said").read_text() == repr(list(said)), "all of it")


def test_programs_go_on_when_the_supervisor_is_killed_and_the_next_one_finds_them(
    services: ServicePasses,
) -> None:
    services.apply(unit("one"), unit("two"))
    one, two = services.pid("one"), services.pid("two")
    services.kill_supervisor()
    assert services.pid("one") == one
    assert services.changes(unit("one"), unit("two")) == [
        "update one active differs",
        "update two active differs",
    ]
    services.apply(unit("one"), unit("two"))
    assert (services.pid("one"), services.pid("two")) == (one, two)
    # It watches what is not its child.
    os.kill(one, signal.SIGKILL)
    until(lambda: services.restarted("one", one), "another process")
    services.apply()
    assert over(two)


def test_a_program_that_fell_without_a_supervisor_leaves_nothing_behind(
    services: ServicePasses,
) -> None:
    child = python(
        "import subprocess, time; subprocess.Popen(['/usr/bin/sleep', '986']); time.sleep(100)"
    )
    services.apply(unit("one", child))
    until(lambda: services.strays("one"), "its child")
    (stray,) = services.strays("one")
    services.kill_supervisor()
    os.kill(services.pid("one"), signal.SIGKILL)
    services.apply(unit("two"))  # removes it, too
    until(lambda: over(stray), "the child ends")


def test_two_passes_at_once_start_one_supervisor_and_one_program(services: ServicePasses) -> None:
    services.root.mkdir()
    clients = [Client(services.root) for _ in range(6)]
    services.folder.create(definition_of(service(unit("one")), "77"))
    got: list[int] = []
    threads = [
        threading.Thread(target=lambda one=one: got.append(one.ensure("one", 10)))
        for one in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 6
    assert set(got) == {services.pid("one")}
    # The others find that there is one, and end.
    until(lambda: len(services.supervisors()) == 1, "one supervisor")


def test_records_logs_and_definitions_are_for_root_alone(services: ServicePasses) -> None:
    services.apply(unit("one", environment=(("SECRET", "hunter2"),)))
    run = services.root / "run/holdfast/services"
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    for path in (run / "one.json", run / "one.process", services.root / "var/log/holdfast/one.log"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_log_is_cut_short_while_it_is_written(services: ServicePasses) -> None:
    # Each line in one piece, so that none begins with what is left of the one before.
    lines = "import os, time\nwhile True: os.write(1, b'x' * 99 + b'\\n'); time.sleep(.001)"
    services.apply(unit("one", python(lines)))
    until(lambda: len(services.log("one")) > 5000, "some output")
    assert log.shorten(services.root, "one", largest=4000)
    file = services.root / "var/log/holdfast/one.log"
    assert file.with_name("one.log.1").stat().st_size == 4000
    until(lambda: services.log("one"), "more output")
    # It goes on at the front: no hole where the old lines were.
    assert services.log("one").startswith("x")
    assert not log.shorten(services.root, "one", largest=1 << 20)


def test_a_definition_removed_by_hand_ends_the_program(services: ServicePasses) -> None:
    services.apply(unit("one"))
    pid = services.pid("one")
    (services.root / "run/holdfast/services/one.json").unlink()
    until(lambda: over(pid), "it ends")


def test_a_definition_removed_by_hand_is_drift_while_the_program_runs(
    services: ServicePasses,
) -> None:
    services.apply(unit("one"))
    services.kill_supervisor()
    (services.root / "run/holdfast/services/one.json").unlink()
    assert services.changes() == ["delete one nothing declares it any more"]
    assert services.changes(unit("one")) == ["update one unit differs"]
    pid = services.pid("one")
    services.apply(unit("one"))
    assert services.pid("one") == pid


def test_a_definition_changed_by_hand_is_put_right(services: ServicePasses) -> None:
    services.apply(unit("one"))
    file = services.root / "run/holdfast/services/one.json"
    file.write_text(file.read_text().replace("1000", "2000"))
    assert services.changes(unit("one")) == ["update one unit differs"]
    os.kill(services.pid("one"), signal.SIGKILL)
    until(lambda: b"2000" in services.argv("one"), "it runs as changed")
    services.apply(unit("one"))
    assert services.argv("one") == b"/usr/bin/sleep\x001000\x00"


def test_what_was_started_with_a_changed_file_is_restarted(services: ServicePasses) -> None:
    services.files = {"/etc/one.conf": b"right"}
    conf = services.root / "etc/one.conf"
    services.apply(unit("one"))
    first = services.pid("one")
    conf.write_bytes(b"wrong")
    services.apply(unit("one"))
    assert services.pid("one") == first  # what it has read was right
    conf.write_bytes(b"wrong")
    os.kill(first, signal.SIGKILL)
    until(lambda: services.restarted("one", first), "another process")
    second = services.pid("one")
    conf.write_bytes(b"right")  # by hand, too
    assert services.changes(unit("one")) == ["update one unit differs"]
    services.apply(unit("one"))
    assert services.restarted("one", second)
    assert conf.read_bytes() == b"right"
    assert services.changes(unit("one")) == []


def test_a_file_that_a_reload_has_read_is_no_reason_for_a_restart(services: ServicePasses) -> None:
    services.files = {"/etc/one.conf": b"old"}
    services.apply(unit("one", python(HUP), reload="a"))
    until(lambda: "began" in services.log("one"), "it began")
    first = services.pid("one")
    services.files = {"/etc/one.conf": b"new"}
    services.apply(unit("one", python(HUP), reload="b"))
    assert services.pid("one") == first
    os.kill(first, signal.SIGKILL)
    until(lambda: services.restarted("one", first), "another process")
    assert services.changes(unit("one", python(HUP), reload="b")) == []


def test_programs_end_when_everything_about_them_is_deleted(services: ServicePasses) -> None:
    services.apply(unit("one"))
    pid = services.pid("one")
    shutil.rmtree(services.root)
    until(lambda: over(pid) and services.supervisors() == [], "all ends")
    assert not services.root.exists()


def test_a_foreign_definition_is_a_conflict(services: ServicePasses) -> None:
    services.root.mkdir()
    theirs = definition_of(service(unit("one", config="theirs")), "999")
    services.folder.create(theirs)
    report = services.work(unit("one"))
    assert len(report.after.conflicts) == 1
    assert services.folder.definition("one") == theirs
    assert services.running("one") is None


def test_one_that_another_installation_put_in_its_place_is_not_deleted(
    services: ServicePasses,
) -> None:
    services.apply(unit("one"))
    mine = services.folder.definition("one")
    assert mine is not None
    services.folder.define(replace(mine, mark="31337"))
    services.work()
    assert services.folder.definition("one") is not None
    assert services.running("one") is not None


@pytest.mark.usefixtures("netns")
def test_a_socket_path_may_be_long(tmp_path: Path) -> None:
    with stage(tmp_path / ("d" * 90) / "root") as services:
        services.apply(unit("one"))
        assert services.pid("one")


def test_it_is_light(services: ServicePasses) -> None:
    services.apply(unit("one", SLEEP))
    (pid,) = services.supervisors()
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            assert int(line.split()[1]) < 25_000  # kB
