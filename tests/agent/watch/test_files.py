"""Files and folders that come, change and go."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.agent.watch.fanotify import Fanotify
from holdfast.agent.watch.files import FileWatch
from holdfast.agent.watch.hint import Writer
from holdfast.host import rooted
from tests import lanes
from tests.agent.watch.listening import LONG, run


@pytest.fixture(autouse=True, params=["fanotify", "inotify"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With what the kernel has, and with what any has."""
    found = str(request.param)
    if found == "inotify":
        monkeypatch.setattr(Fanotify, "open", lambda: None)
    else:
        made = Fanotify.open()
        lanes.needs(made is not None, "fanotify with the names of files")
        assert made is not None
        made.close()
    return found


@dataclass(slots=True)
class Told:
    paths: list[Path] = field(default_factory=list)
    writers: dict[Path, Writer | None] = field(default_factory=dict)
    whole: dict[Path, bool] = field(default_factory=dict)
    lost: int = 0
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, path: Path, writer: Writer | None, whole: bool) -> None:
        self.paths.append(path)
        self.whole[path] = whole
        self.writers[path] = writer
        self._more.set()

    def lose(self) -> None:
        self.lost += 1
        self._more.set()

    async def of(self, *wanted: Path) -> None:
        async with asyncio.timeout(LONG):
            while not set(wanted) <= set(self.paths):
                self._more.clear()
                await self._more.wait()
        self.paths.clear()


@asynccontextmanager
async def watching(*paths: Path, folders: tuple[Path, ...] = ()) -> AsyncIterator[Told]:
    told = Told()
    watch = FileWatch(told.tell, told.lose)
    assert watch.set(paths, folders) == []
    try:
        yield told
    finally:
        watch.close()


def test_written_replaced_deleted_and_made_anew(tmp_path: Path) -> None:
    async def test() -> None:
        file, other = tmp_path / "file", tmp_path / "other"
        async with watching(file) as told:
            other.write_text("not watched")
            file.write_text("one")
            await told.of(file)
            file.write_text("two")
            await told.of(file)
            assert not told.whole[file]
            other.replace(file)
            await told.of(file)
            assert told.whole[file]
            file.chmod(0o600)
            await told.of(file)
            assert not told.whole[file]
            file.rename(other)
            await told.of(file)
            file.symlink_to(other)
            await told.of(file)
            file.unlink()
            await told.of(file)
            os.link(other, file)
            await told.of(file)
            file.unlink()
            await told.of(file)
            file.mkdir()
            await told.of(file)
            assert told.paths == []

    run(test)


def test_something_else_in_the_place_of_a_folder(tmp_path: Path) -> None:
    """Once it is gone there is room for the folder, and for the file in it."""

    async def test() -> None:
        file = tmp_path / "one/two/file"
        for place in (file.parent, file.parent.parent):
            async with watching(file) as told:
                place.parent.mkdir(exist_ok=True)
                place.write_text("no folder")
                await told.of(file)
                told.paths.clear()
                place.unlink()
                await told.of(file)
                place.symlink_to(tmp_path / "nowhere")
                await told.of(file)
                told.paths.clear()
                place.rename(tmp_path / "elsewhere")
                await told.of(file)
                (tmp_path / "elsewhere").unlink()
            if place.parent != tmp_path:
                place.parent.rmdir()

    run(test)


def test_mounted_over_a_folder(tmp_path: Path) -> None:
    async def test() -> None:
        file = tmp_path / "one/file"
        file.parent.mkdir()
        file.write_text("one")
        async with watching(file) as told:
            command = ["mount", "-t", "tmpfs", "none", str(file.parent)]
            subprocess.run(command, check=True)
            try:
                await told.of(file)
                file.write_text("two")
                await told.of(file)
            finally:
                subprocess.run(["umount", str(file.parent)], check=True)
            await told.of(file)
            file.write_text("three")
            await told.of(file)
            # What is mounted elsewhere is nobody's business.
            elsewhere = tmp_path / "two"
            elsewhere.mkdir()
            told.paths.clear()
            subprocess.run([*command[:-1], str(elsewhere)], check=True)
            subprocess.run(["umount", str(elsewhere)], check=True)
            await asyncio.sleep(0.1)
            assert told.paths == []

    run(test)


def test_what_the_driver_writes_is_told_like_all_else(tmp_path: Path) -> None:
    async def test() -> None:
        file = tmp_path / "file"
        async with watching(file) as told:
            with rooted.parent(tmp_path, "/file") as (folder, name):
                rooted.create(folder, name, b"one", 0o644)
                await told.of(file)
                rooted.replace(folder, name, b"two", 0o644, None)
                await told.of(file)
                rooted.remove(folder, name)
                await told.of(file)

    run(test)


def test_who_wrote_it(tmp_path: Path, means: str) -> None:
    async def test() -> None:
        one, two = tmp_path / "one/file", tmp_path / "two/file"
        for file in (one, two):
            file.parent.mkdir()
        async with watching(one, two) as told:
            one.write_text("ours")
            script = f"echo x > {two}; read end"
            with subprocess.Popen(["dash", "-c", script], stdin=subprocess.PIPE) as process:
                await told.of(one, two)
                assert process.stdin is not None
                process.stdin.close()
            if means == "fanotify":
                ours = told.writers[one]
                assert ours is not None
                assert ours.pid == os.getpid()
                theirs = told.writers[two]
                assert theirs is not None
                assert theirs[:2] == (process.pid, "dash")
            else:
                assert told.writers == {one: None, two: None}

    run(test)


def test_another_prevails(tmp_path: Path, means: str) -> None:
    """Both wrote it before anybody looked."""

    async def test() -> None:
        file = tmp_path / "file"
        async with watching(file) as told:
            file.write_text("ours")
            subprocess.run(["dash", "-c", f"echo x > {file}"], check=True)
            file.write_text("ours again")
            await told.of(file)
            writer = told.writers[file]
            if means == "fanotify":
                assert writer is not None
                assert writer.pid != os.getpid()

    run(test)


def test_file_that_is_being_written_is_not_told_yet(tmp_path: Path) -> None:
    async def test() -> None:
        file, mark = tmp_path / "file", tmp_path / "mark"
        async with watching(file, mark) as told:
            with file.open("w") as half:
                half.write("ha")
                half.flush()
                mark.write_text("now")
                await told.of(mark)
                half.write("lf")
            await told.of(file)

    run(test)


def test_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    async def test() -> None:
        file = tmp_path / "a/b/c/file"
        async with watching(file) as told:
            file.parent.mkdir(parents=True)
            file.write_text("one")
            await told.of(file)
            file.write_text("two")
            await told.of(file)

    run(test)


def test_folder_that_goes_and_comes_back(tmp_path: Path) -> None:
    async def test() -> None:
        first, second = tmp_path / "a/b/first", tmp_path / "a/b/second"
        for number in range(3):
            first.parent.mkdir(parents=True, exist_ok=True)
            first.write_text("one")
            async with watching(first, second) as told:
                if number == 0:
                    shutil.rmtree(tmp_path / "a/b")
                elif number == 1:
                    shutil.rmtree(tmp_path / "a")
                else:
                    (tmp_path / "a").rename(tmp_path / "z")
                await told.of(first)
                first.parent.mkdir(parents=True)
                await told.of(first, second)  # whatever was written before it was watched
                second.write_text("two")
                await told.of(second)
                # What was moved away is not it any more.
                if number == 2:
                    (tmp_path / "z/b/first").write_text("elsewhere")
                    second.write_text("three")
                    await told.of(second)
                    assert first not in told.paths

    run(test)


def test_all_files_of_a_folder(tmp_path: Path) -> None:
    async def test() -> None:
        folder = tmp_path / "leases"
        async with watching(folders=(folder,)) as told:
            folder.mkdir()
            await told.of(folder)
            (folder / ".new").write_text("x")
            (folder / ".new").rename(folder / "wan0.4.lease")
            await told.of(folder / "wan0.4.lease")
            assert folder / ".new" not in told.paths
            (folder / "wan0.4.lease").unlink()
            await told.of(folder / "wan0.4.lease")

    run(test)


def test_two_ways_to_one_folder(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        first, second = tmp_path / "real/first", tmp_path / "link/second"
        async with watching(first, second) as told:
            first.write_text("1")
            await told.of(first)
            (tmp_path / "real/second").write_text("2")
            await told.of(second)

    run(test)


def test_file_that_is_a_link(tmp_path: Path) -> None:
    """As of those who keep their configuration in a repository, or mount it as Kubernetes does."""

    async def test() -> None:
        file, first, second = tmp_path / "etc/file", tmp_path / "git/one", tmp_path / "git/two"
        for one in (file, first):
            one.parent.mkdir()
        first.write_text("1")
        second.write_text("2")
        file.symlink_to("../git/one")
        async with watching(file) as told:
            first.write_text("1.1")
            await told.of(file)
            assert told.paths == []
            link = tmp_path / "etc/new"
            link.symlink_to("../git/two")
            link.rename(file)
            await told.of(file)
            second.write_text("2.1")
            await told.of(file)
            first.write_text("not any more")
            second.write_text("2.2")
            await told.of(file)

        for number in (1, 2):
            (tmp_path / f"v{number}").mkdir()
            (tmp_path / f"v{number}/file").write_text("x")
        (tmp_path / "data").symlink_to("v1")
        file.unlink()
        file.symlink_to("../data/file")
        async with watching(file) as told:
            (tmp_path / "next").symlink_to("v2")
            (tmp_path / "next").rename(tmp_path / "data")
            shutil.rmtree(tmp_path / "v1")
            await told.of(file)
            (tmp_path / "v2/file").write_text("y")
            await told.of(file)

    run(test)


def test_other_files_from_now_on(tmp_path: Path) -> None:
    async def test() -> None:
        old, new = tmp_path / "old/file", tmp_path / "new/file"
        for file in (old, new):
            file.parent.mkdir()
        told = Told()
        watch = FileWatch(told.tell, told.lose)
        try:
            watch.set([old])
            watch.set([new])
            old.write_text("not any more")
            new.write_text("now")
            await told.of(new)
            watch.set([old, new])
            old.write_text("again")
            await told.of(old)
        finally:
            watch.close()

    run(test)


def test_more_than_can_be_kept(tmp_path: Path, means: str) -> None:
    limit = int(Path(f"/proc/sys/fs/{means}/max_queued_events").read_text())
    file = tmp_path / "file"

    async def test() -> None:
        async with watching(file) as told:
            for number in range(limit + 10):
                (tmp_path / f"{number}").touch()
            async with asyncio.timeout(LONG):
                while not told.lost:
                    await asyncio.sleep(0.01)
            file.write_text("seen again")
            await told.of(file)

    run(test)
