"""Plugins that try to outlive their run, or to act before their rights are gone."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.host import confined_program
from holdfast.host.process import PATH
from holdfast.runtime.plugins import sandbox
from holdfast.runtime.plugins.sandbox import Outcome

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to drop privileges"),
    pytest.mark.programs,
]
# Whoever is found with it in its command line is a plugin's that stayed.
MARK = "holdfast-escaped"
FORGET = """
import ctypes, os, signal, sys, time
def forget():
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
"""
STAY = 'os.execv("/bin/sh", [MARK, "-c", "while :; do sleep 1; done"])'
WAYS = {
    "forgets its parent": f"forget(); {STAY}",
    "in a session of its own": f"""
forget()
if os.fork() == 0:
    os.setsid()
    forget()
    {STAY}
time.sleep(600)
""",
    "twice forked": f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        forget()
        {STAY}
    os._exit(0)
forget()
time.sleep(600)
""",
}


def write(script: Path, text: str, interpreter: str = "/usr/bin/python3 -IS") -> Path:
    script.write_text(f"#!{interpreter}\n{text}")
    script.chmod(0o755)
    return script


def run(script: Path, environment: dict[str, str] | None = None, timeout: float = 20.0) -> Outcome:
    return asyncio.run(sandbox.run(script, b"{}", timeout=timeout, environment=environment or {}))


def staying(mark: str) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in place.read_bytes():
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def mark() -> str:
    return f"{MARK}-{os.getpid()}-{time.monotonic_ns()}"


def _escaping(folder: Path, way: str, mark: str) -> Path:
    return write(folder / "plugin", f"{FORGET}\nMARK = {mark!r}\n{WAYS[way]}")


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outlives_its_timeout(open_folder: Path, way: str, mark: str) -> None:
    script = _escaping(open_folder, way, mark)
    assert "did not end within 2 s" in run(script, timeout=2).problem
    assert not staying(mark)


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outlives_a_daemon_that_was_killed(open_folder: Path, way: str, mark: str) -> None:
    script = _escaping(open_folder, way, mark)
    serve = f"""
        import asyncio, pathlib
        from holdfast.runtime.plugins import sandbox
        asyncio.run(sandbox.run(pathlib.Path({str(script)!r}), b"", timeout=600, environment={{}}))
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(serve)]) as daemon:
        until(lambda: staying(mark))
        daemon.kill()
    until(lambda: not staying(mark))


def test_its_environment_never_reaches_the_launcher(open_folder: Path) -> None:
    """What the linker or Python take from it would happen in a process that is root still. The
    linker writes a file for every process that is started with these variables."""
    seen = open_folder / "seen"
    seen.mkdir()
    seen.chmod(0o777)
    script = write(open_folder / "plugin", "import json, os; print(json.dumps(dict(os.environ)))")
    given = {
        "LD_DEBUG": "libs",
        "LD_DEBUG_OUTPUT": str(seen / "process"),
        "LD_PRELOAD": str(open_folder / "none.so"),
        "PYTHONPATH": str(seen),
        "GREETING": "höfliche Grüße",
    }
    outcome = run(script, given)
    assert outcome.problem == ""
    said = json.loads(outcome.out)
    assert {name: said[name] for name in given} == given, "the plugin itself has it all"
    owners = [one.stat().st_uid for one in seen.iterdir()]
    assert owners == [confined_program.USER]


@pytest.mark.parametrize("bad", [{"A": "x\0B=y"}, {"A=B": "x"}, {"": "x"}, {"A\0": "x"}])
def test_a_variable_that_would_be_two(open_folder: Path, bad: dict[str, str]) -> None:
    script = write(open_folder / "plugin", "print()")
    assert "cannot be a variable" in run(script, bad).problem


def test_what_was_checked_is_what_runs(open_folder: Path) -> None:
    """A link that another user turns to and fro between a good file and his own."""
    theirs = open_folder / "theirs"
    theirs.mkdir()
    good = write(open_folder / "good", "echo good", "/bin/sh")
    bad = write(theirs / "bad", "echo bad", "/bin/sh")
    for one in (theirs, bad):
        os.chown(one, 1000, 1000)
    link, other = theirs / "link", theirs / "other"
    link.symlink_to(good)
    done = threading.Event()

    def turn() -> None:
        while not done.is_set():
            for target in (bad, good):
                other.symlink_to(target)
                other.rename(link)

    turning = threading.Thread(target=turn)
    turning.start()
    try:
        outcomes = [run(link) for _ in range(10)]
    finally:
        done.set()
        turning.join()
    assert {one.out for one in outcomes} == {b""}
    assert all("belongs to user 1000" in one.problem for one in outcomes)


@pytest.mark.parametrize("program", ["script", "binary"])
def test_a_file_that_was_exchanged_after_the_look(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """By root himself, as an upgrade does it: the one that was looked at runs, or none."""
    script = open_folder / "plugin"
    if program == "script":
        write(script, "echo old", "/bin/sh")
    else:
        shutil.copy("/usr/bin/printenv", script)
    new = write(open_folder / "new", "echo new", "/bin/sh")
    start = asyncio.create_subprocess_exec

    async def exchange(*words: str, **more: object) -> asyncio.subprocess.Process:
        new.rename(script)
        return await start(*words, **more)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(asyncio, "create_subprocess_exec", exchange)
    outcome = run(script)
    assert "new" in script.read_text(), "the test's own doing"
    if program == "script":
        assert (outcome.out, outcome.status) == (b"", 126)
        assert "another file took its place" in outcome.err
    else:
        assert outcome.out.startswith(b"PATH=")


@pytest.mark.parametrize("program", ["script", "python", "binary"])
def test_what_is_run_by_descriptor(open_folder: Path, program: str) -> None:
    """A script still knows its name, where it lies and what lies beside it."""
    place = open_folder / "plugin"
    (open_folder / "beside.py").write_text("here = __file__.replace('beside.py', 'plugin')")
    (open_folder / "beside.py").chmod(0o644)
    if program == "script":
        write(place, 'test -e "$(dirname "$0")/beside.py" && readlink -f "$0"', "/bin/sh")
    elif program == "python":
        write(
            place,
            """
import beside, pathlib
assert pathlib.Path(__file__).with_name("beside.py").exists()
print(beside.here, pathlib.Path(__file__).resolve())
""",
            "/usr/bin/python3 -B",
        )
    else:
        shutil.copy("/usr/bin/printenv", place)
    outcome = run(place, {"HERE": str(place)})
    assert (outcome.problem, outcome.err) == ("", "")
    assert str(place) in outcome.out.decode()


def test_a_program_that_can_be_run_and_not_read(open_folder: Path) -> None:
    place = open_folder / "plugin"
    shutil.copy("/usr/bin/printenv", place)
    place.chmod(0o711)
    assert run(place, {"A": "b"}).out == b"A=b\nPATH=" + PATH.encode() + b"\n"


@pytest.mark.parametrize("held", [0, 300])
def test_it_has_no_descriptor_of_the_daemons(open_folder: Path, held: int) -> None:
    """However many that one has open, and whatever numbers are free in it."""
    script = write(open_folder / "plugin", "ls -l /proc/self/fd", "/bin/sh")
    with ExitStack() as stack:
        for _ in range(held):
            stack.callback(os.close, os.open("/dev/null", os.O_RDONLY))
        said = run(script).out.decode().splitlines()
    targets = [line.partition(" -> ")[2] for line in said if " -> " in line]
    others = [one for one in targets if not one.startswith(("pipe:", "/proc/"))]
    assert others == [str(open_folder)]
