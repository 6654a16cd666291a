"""What others do to the supervisor's files: programs go on, and none runs unknown to anybody."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import DriverError
from holdfast.host.services import log, processes
from holdfast.host.services.client import Client
from holdfast.host.services.folder import LOGS, PLACE
from tests.host.services.service_passes import ServicePasses, over, python, unit, until
from tests.host.services.test_supervisor import HUP

_TALKATIVE = "import time\nwhile True: print('x' * 1000); time.sleep(0.001)\n"


def _place(services: ServicePasses) -> Path:
    return services.root / PLACE.lstrip("/")


@contextmanager
def _full(folder: Path) -> Iterator[None]:
    """Nothing more can be written there."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        ballast.unlink()


def test_a_reload_that_cannot_be_recorded_is_said_once(services: ServicePasses) -> None:
    run = services.root / "run"
    run.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", run], check=True)
    try:
        services.apply(unit("one", python(HUP), reload="a"))
        until(lambda: "began" in services.log("one"), "it began")
        before, pid = services.supervisors(), services.pid("one")
        declared = services.folder.definition("one")
        assert declared is not None
        services.folder.define(replace(declared, reload="b"))
        with _full(run), pytest.raises(DriverError, match="cannot be recorded: No space left"):
            Client(services.root).ensure("one", 10)
        assert services.supervisors() == before
        until(lambda: "read again" in services.log("one"), "its signal")
        assert services.log("one").count("read again") == 1
        services.apply(unit("one", python(HUP), reload="b"))
        assert services.pid("one") == pid
    finally:
        services.end()
        subprocess.run(["umount", "-l", run], check=True)


def test_one_entry_that_is_none_stops_no_other(services: ServicePasses) -> None:
    services.apply(unit("one"))
    pid = services.pid("one")
    services.kill_supervisor()
    odd = _place(services) / "two.json"
    odd.mkdir()
    services.apply(unit("one"))
    assert services.pid("one") == pid
    odd.rmdir()


@pytest.mark.parametrize("wiped", [PLACE, "/run"])
def test_a_program_that_nobody_would_find_again_ends(services: ServicePasses, wiped: str) -> None:
    services.apply(unit("one"))
    pid, before = services.pid("one"), services.supervisors()
    shutil.rmtree(services.root / wiped.lstrip("/"))
    # At once: the first supervisor has not noticed anything yet.
    services.apply(unit("one"))
    assert services.pid("one") != pid
    until(lambda: over(pid), "the first program ends")
    until(lambda: not set(services.supervisors()) & set(before), "its supervisor ends")
    assert services.changes(unit("one")) == []
    assert len(services.supervisors()) == 1


def test_without_its_socket_a_supervisor_makes_room(services: ServicePasses) -> None:
    services.apply(unit("one", python(HUP), reload="a"))
    until(lambda: "began" in services.log("one"), "it began")
    pid = services.pid("one")
    (_place(services) / ".socket").unlink()
    services.apply(unit("one", python(HUP), reload="b"))
    assert services.pid("one") == pid
    assert len(services.supervisors()) == 1


def test_a_deleted_log_does_not_grow_for_ever(services: ServicePasses) -> None:
    services.apply(unit("one", python(_TALKATIVE)))
    pid = services.pid("one")
    (services.root / LOGS.lstrip("/") / "one.log").unlink()
    sizes: list[int] = []

    def shortened() -> bool:
        sizes.append(Path(f"/proc/{pid}/fd/2").stat().st_size)
        return max(sizes) > log.LARGEST > sizes[-1]

    until(shortened, "it is cut short")


def test_a_file_in_the_place_of_a_deleted_log_is_not_cut(
    services: ServicePasses, tmp_path: Path
) -> None:
    """Only what was the log is ours to cut: a program may send its words elsewhere."""
    other = tmp_path / "other"
    code = (
        f"import os; os.dup2(os.open({str(other)!r}, os.O_CREAT | os.O_WRONLY), 2);"
        " os.write(2, b'x' * 100); import time; time.sleep(1000)"
    )
    services.apply(unit("one", python(code)))
    until(lambda: other.exists() and other.stat().st_size == 100, "its words")
    other.unlink()
    pid = services.pid("one")
    log.shorten_removed(services.root, "one", pid, largest=10)
    assert Path(f"/proc/{pid}/fd/2").stat().st_size == 100


def test_where_no_log_can_be_kept_programs_run_all_the_same(services: ServicePasses) -> None:
    (services.root / "elsewhere").mkdir(parents=True)
    (services.root / "var").mkdir()
    (services.root / "var/log").symlink_to("../elsewhere")
    services.apply(unit("one"))
    assert Path(f"/proc/{services.pid('one')}/fd/2").readlink() == Path("/dev/null")
    assert list((services.root / "elsewhere").iterdir()) == []


def test_one_that_ends_while_it_is_looked_at_does_not_run(
    services: ServicePasses, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.apply(unit("one"))
    mine = processes.network()

    def network(pid: int | str = "self") -> int:
        if pid != "self":
            raise FileNotFoundError(2, "No such file or directory")
        return mine

    monkeypatch.setattr(processes, "network", network)
    monkeypatch.setattr(Client, "there", lambda _client: True)
    assert services.changes(unit("one")) == ["update one active differs"]
