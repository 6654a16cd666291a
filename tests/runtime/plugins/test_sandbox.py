"""Programs that misbehave in every way a plugin can."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from holdfast.host import confined_launch, confined_program
from holdfast.runtime.plugins import sandbox
from holdfast.runtime.plugins.sandbox import Outcome

pytestmark = pytest.mark.programs

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to drop privileges")


@pytest.fixture
def script(open_folder: Path) -> Path:
    return open_folder / "plugin"


def write(script: Path, text: str, interpreter: str = "/usr/bin/env python3") -> None:
    script.write_text(f"#!{interpreter}\n{textwrap.dedent(text)}")
    script.chmod(0o755)


def run(script: Path, *, timeout: float = 10.0, request: bytes = b"{}") -> Outcome:
    return asyncio.run(
        sandbox.run(script, request, timeout=timeout, environment={"GREETING": "hello"})
    )


def test_a_request_in_and_an_answer_out(script: Path) -> None:
    write(script, "import sys; sys.stdout.write(sys.stdin.read().upper())")
    outcome = run(script, request=b'{"a": 1}')
    assert (outcome.problem, outcome.out, outcome.status) == ("", b'{"A": 1}', 0)


@needs_root
def test_it_gets_its_environment_and_nothing_else(script: Path) -> None:
    write(
        script,
        """
        import json, os
        status = dict(l.split(":", 1) for l in open("/proc/thread-self/status"))
        print(json.dumps({
            "env": sorted(os.environ), "uid": os.getresuid(), "gid": os.getresgid(),
            "groups": os.getgroups(), "cwd": os.getcwd(),
            "fds": len(os.listdir("/proc/thread-self/fd")),
            "no_new_privs": status["NoNewPrivs"].strip(), "caps": status["CapEff"].strip(),
        }))
        """,
        "/usr/bin/python3 -IS",
    )
    said = json.loads(run(script).out)
    assert set(said["env"]) - {"LC_CTYPE"} == {"GREETING", "PATH"}
    assert said["uid"] == said["gid"] == [65534] * 3
    assert said["groups"] == []
    assert said["no_new_privs"] == "1"
    assert int(said["caps"], 16) == 0
    assert said["cwd"] == "/"
    assert said["fds"] <= 5  # the three, its folder, and the one that lists them


def test_one_that_hangs_is_ended(script: Path) -> None:
    write(script, "import time; time.sleep(600)")
    outcome = run(script, timeout=1)
    assert "did not end within 1 s" in outcome.problem


@needs_root
def test_what_it_forked_ends_with_it(script: Path) -> None:
    mark = f"holdfast-test-{os.getpid()}-{time.monotonic_ns()}"
    write(
        script,
        f"""
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv("/bin/sh", ["{mark}", "-c", "sleep 500; true"])
            os._exit(0)
        time.sleep(0.3)
        print("x", flush=True)
        time.sleep(600)
        """,
    )
    outcome = run(script, timeout=2)
    assert outcome.problem
    assert not _running(mark)


def _running(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes()
        except OSError:
            continue
        if mark.encode() in line:
            found.append(place.parent.name)
    return found


@needs_root
def test_one_that_daemonises_and_ends_leaves_nothing(script: Path) -> None:
    """Its answer came, its exit status is good: what it left behind goes all the same."""
    mark = f"holdfast-test-{os.getpid()}-{time.monotonic_ns()}"
    write(
        script,
        f"""
        import os, sys
        if os.fork() == 0:
            os.setsid()
            for fd in (0, 1, 2):
                os.close(fd)
            os.execv("/bin/sh", ["{mark}", "-c", "sleep 500; true"])
        print("done")
        """,
    )
    outcome = run(script)
    assert (outcome.problem, outcome.out) == ("", b"done\n")
    assert not _running(mark)


BOMB = """
import os, sys, time
children = 0
try:
    while children < 500:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        children += 1
except OSError:
    pass
print(children, flush=True)
"""


@needs_root
def test_a_fork_bomb_meets_its_limit(script: Path) -> None:
    write(script, BOMB)
    outcome = run(script, timeout=20)
    assert outcome.problem == ""
    assert 0 < int(outcome.out) < confined_program.MOST_PROCESSES + 1


@needs_root
def test_a_fork_bomb_takes_no_processes_from_others(script: Path) -> None:
    """All plugins are the same user, and yet each has a limit of its own."""
    full = script.with_name("full")
    full.touch()
    full.chmod(0o666)
    bomb = script.with_name("bomb.py")
    write(bomb, BOMB + f"open({str(full)!r}, 'w').write('full')\ntime.sleep(60)")
    write(script, BOMB.replace("500", "20"))

    async def both() -> Outcome:
        endless = asyncio.create_task(sandbox.run(bomb, b"", timeout=120, environment={}))
        try:
            async with asyncio.timeout(60):
                while not full.read_text():
                    await asyncio.sleep(0.01)
            return await sandbox.run(script, b"", timeout=60, environment={})
        finally:
            endless.cancel()
            await asyncio.gather(endless, return_exceptions=True)

    outcome = asyncio.run(both())
    assert (outcome.problem, outcome.out) == ("", b"20\n")


@pytest.mark.parametrize(
    ("stream", "amount", "said"),
    [("stdout", 10 << 20, "4096 KiB to its standard output"), ("stderr", 1 << 20, "64 KiB")],
)
def test_too_much_output(script: Path, stream: str, amount: int, said: str) -> None:
    write(script, f"import sys; sys.{stream}.write('x' * {amount}); sys.{stream}.flush()")
    outcome = run(script)
    assert said in outcome.problem
    assert len(outcome.out) <= sandbox.MOST_OUT
    assert len(outcome.err) <= sandbox.MOST_ERR


def test_it_need_not_read_its_request(script: Path) -> None:
    write(script, "import os; os.close(0); print('fine')")
    outcome = run(script, request=b"x" * (1 << 20))
    assert (outcome.problem, outcome.out) == ("", b"fine\n")


def test_a_failure_is_told_with_its_words(script: Path) -> None:
    write(script, "import sys; print('no such region', file=sys.stderr); sys.exit(3)")
    outcome = run(script)
    assert outcome.problem == "ended with exit status 3"
    assert outcome.err == "no such region\n"


def test_one_that_was_killed(script: Path) -> None:
    write(script, "import os; os.abort()")
    assert run(script).problem.startswith("ended with exit status")


def test_no_interpreter(script: Path) -> None:
    write(script, "", "/no/such/interpreter")
    outcome = run(script)
    assert outcome.problem == "ended with exit status 126"
    assert "cannot be started" in outcome.err


def test_what_may_not_be_run(script: Path) -> None:
    assert "No such file" in run(script).problem
    write(script, "print()")
    script.chmod(0o644)
    assert "chmod 0755" in run(script).problem
    script.chmod(0o777)
    assert "go-w" in run(script).problem
    assert "regular file" in run(script.parent).problem


@needs_root
def test_one_that_belongs_to_somebody_else(script: Path) -> None:
    write(script, "print()")
    os.chown(script, 1000, 1000)
    assert "belongs to user 1000" in run(script).problem


def test_one_that_others_could_put_another_in_the_place_of(script: Path) -> None:
    write(script, "print()")
    folder = script.parent
    folder.chmod(0o777)
    assert f"may write the folder {folder}: chmod go-w" in run(script).problem
    folder.chmod(0o1777)
    assert run(script).problem == "", "in a sticky one nobody else can"
    (folder / "link").symlink_to(script)
    folder.chmod(0o755)
    assert run(folder / "link").problem == ""


@needs_root
def test_one_in_a_folder_of_somebody_else(script: Path) -> None:
    folder = script.parent / "theirs"
    folder.mkdir()
    write(folder / "plugin", "print()")
    os.chown(folder, 1000, 1000)
    assert f"the folder {folder} belongs to user 1000" in run(folder / "plugin").problem


def test_the_signal_that_ended_it_is_named(script: Path) -> None:
    write(script, "import ctypes; ctypes.string_at(0)")
    assert run(script).problem == "ended with exit status 139 (SIGSEGV)"


def test_without_its_daemon_it_is_not_even_started(script: Path) -> None:
    """Nobody would end it: the daemon went down while its launcher was on its way."""
    write(script, "print('started')")
    limits = (confined_program.USER, confined_program.GROUP, 64, 1 << 30, 5)
    done = subprocess.run(
        [
            sys.executable,
            confined_launch.__file__,
            "1",
            *map(str, limits),
            "0",
            "0",
            "0",
            str(script),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (126, "")


def test_what_the_system_cannot_start(script: Path) -> None:
    write(script, "print()")
    long = {"LONG": "x" * (1 << 20)}
    outcome = asyncio.run(sandbox.run(script, b"{}", timeout=5, environment=long))
    assert outcome.problem == "ended with exit status 126"
    assert outcome.err == "cannot be started: Argument list too long\n"


@needs_root
def test_one_plugin_does_not_see_another(script: Path) -> None:
    """They are the same user, and an executor has credentials in its environment."""
    slow, nosy, up = (script.with_name(name) for name in ("slow", "nosy", "up"))
    up.touch()
    up.chmod(0o666)
    write(slow, f"import time; open({str(up)!r}, 'w').write('up'); time.sleep(60)")
    write(
        nosy,
        """
        import json, os
        seen = [name for name in os.listdir("/proc") if name.isdigit()]
        print(json.dumps([seen, open("/proc/self/oom_score_adj").read().strip()]))
        """,
    )

    async def both() -> Outcome:
        secret = {"TOKEN": "hunter2"}
        first = asyncio.create_task(sandbox.run(slow, b"", timeout=30, environment=secret))
        while not up.read_text():
            await asyncio.sleep(0.05)
        try:
            return await sandbox.run(nosy, b"", timeout=10, environment={})
        finally:
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

    outcome = asyncio.run(both())
    assert json.loads(outcome.out) == [["1", "2"], "500"], outcome.err


@needs_root
def test_in_a_sandbox_root_is_not_taken_for_somebody_else(script: Path) -> None:
    """There, folders of the machine belong to a user without a number."""
    folder = script.parent / "system"
    folder.mkdir()
    write(folder / "plugin", "print()")
    for one in (folder, folder / "plugin"):
        os.chown(one, 1000, 1000)
    look = "import pathlib, sys; from holdfast.host.confined_program import objection; "
    look += "print(objection(pathlib.Path(sys.argv[1])))"
    words = ["unshare", "-r", sys.executable, "-c", look, str(folder / "plugin")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("\n", "")
