"""Programs that misbehave in every way a plugin can."""

from __future__ import annotations

import asyncio
import json
import os
import textwrap
import time
from pathlib import Path

import pytest

from holdfast.agent.plugins import runner
from holdfast.agent.plugins.runner import Outcome

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to drop privileges")


@pytest.fixture
def script(open_folder: Path) -> Path:
    return open_folder / "plugin"


def write(script: Path, text: str, interpreter: str = "/usr/bin/env python3") -> None:
    script.write_text(f"#!{interpreter}\n{textwrap.dedent(text)}")
    script.chmod(0o755)


def run(script: Path, *, timeout: float = 10.0, request: bytes = b"{}") -> Outcome:
    return asyncio.run(
        runner.run(script, request, timeout=timeout, environment={"GREETING": "hello"})
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
    assert said["fds"] <= 4  # the three, and the one that lists them


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


@needs_root
def test_a_fork_bomb_meets_its_limit(script: Path) -> None:
    write(
        script,
        """
        import os, time
        children = 0
        try:
            while children < 500:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                children += 1
        except OSError:
            pass
        print(children)
        """,
    )
    outcome = run(script, timeout=20)
    assert outcome.problem == ""
    assert 0 < int(outcome.out) < runner.MOST_PROCESSES + 1


@pytest.mark.parametrize(
    ("stream", "amount", "said"),
    [("stdout", 10 << 20, "4096 KiB to its standard output"), ("stderr", 1 << 20, "64 KiB")],
)
def test_too_much_output(script: Path, stream: str, amount: int, said: str) -> None:
    write(script, f"import sys; sys.{stream}.write('x' * {amount}); sys.{stream}.flush()")
    outcome = run(script)
    assert said in outcome.problem
    assert len(outcome.out) <= runner.MOST_OUT
    assert len(outcome.err) <= runner.MOST_ERR


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
