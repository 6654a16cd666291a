"""Who has a network namespace, as files in a folder that nobody else may write to say it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.host import namespace_holder, namespace_presence
from tests.child import in_child


def _inode() -> str:
    return str(Path("/proc/self/ns/net").stat().st_ino)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "run" / "holdfast" / "namespaces"
    made.parent.parent.mkdir()
    monkeypatch.setattr(namespace_holder, "FOLDER", made)
    return made


def _holder(root: str) -> namespace_holder.Holder:
    return namespace_holder.Holder("id", root, "1:2", "boot/1", 72, 0.0)


def _link_above(folder: Path) -> None:
    (folder.parent.parent / "elsewhere").mkdir()
    folder.parent.symlink_to(folder.parent.parent / "elsewhere")


def _link(folder: Path) -> None:
    folder.parent.mkdir()
    folder.symlink_to(folder.parent.parent)


def _open_to_all(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def _of_somebody(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.chown(folder, 12345, 12345)


def _linked_entry(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / _inode()).symlink_to("/etc/passwd")


def _pipe(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.mkfifo(folder / _inode())


@pytest.mark.parametrize(
    "spoil", [_link_above, _link, _open_to_all, _of_somebody, _linked_entry, _pipe]
)
def test_what_cannot_be_trusted_is_not(folder: Path, spoil: Callable[[Path], None]) -> None:
    """It guards nothing then, and the reason names the place; a router is kept all the same."""
    spoil(folder)
    with pytest.raises(namespace_holder.Unguarded, match=str(folder.parent)):
        namespace_holder.Hold().take(_holder("/"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"root": 1}', "\0" * 100, "[" * 50_000])
def test_an_entry_that_means_nothing_is_written_anew(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / _inode()).write_text(text)
    assert namespace_holder.read("boot/1") is None
    assert namespace_holder.Hold().take(_holder("/a")).root == "/a"
    assert namespace_holder.Hold().take(_holder("/b")).root == "/a"


def test_nothing_is_left_of_a_namespace_that_was_given_up(folder: Path) -> None:
    hold = namespace_holder.Hold()
    hold.take(_holder("/a"))
    with pytest.raises(namespace_holder.Busy):
        namespace_holder.Hold().take(_holder("/b"), from_others=True)
    hold.close()
    assert namespace_holder.Hold().take(_holder("/b"), from_others=True).root == "/b"
    namespace_holder.Hold().release(_holder("/a"))
    assert namespace_holder.read("boot/1") == _holder("/b")
    namespace_holder.Hold().release(_holder("/b"))
    assert [one.name for one in folder.iterdir()] == [".lock"]


@pytest.mark.usefixtures("netns")
@pytest.mark.parametrize("user", [0, 12345])
def test_who_is_at_work(user: int) -> None:
    """Anybody may bind any name, and may not keep others from their work by that."""
    mine = namespace_presence.announce("/mine", "1:2")
    assert mine is not None
    ready, go_on = os.pipe(), os.pipe()

    def work() -> None:
        os.setuid(user)
        assert namespace_presence.announce("/other root", "8:9") is not None
        os.write(ready[1], b".")
        os.read(go_on[0], 1)

    process = in_child(work)
    assert os.read(ready[0], 1)
    found = namespace_presence.others("1:2")
    os.write(go_on[1], b".")
    os.waitpid(process, 0)
    for descriptor in (mine, *ready, *go_on):
        os.close(descriptor)
    expected = None if user else namespace_presence.Presence("/other root", "8:9")
    assert found == expected
    assert namespace_presence.others("1:2") is None, "it went with its process"


def test_the_folder_is_made_anew_where_somebody_removed_it(folder: Path) -> None:
    """By one that still holds the namespace, under a lock that others see."""
    hold = namespace_holder.Hold()
    hold.take(_holder("/a"))
    shutil.rmtree(folder)
    assert namespace_holder.read("boot/1") is None
    assert hold.take(_holder("/a")).root == "/a"
    assert namespace_holder.read("boot/1") == _holder("/a")
    with pytest.raises(namespace_holder.Busy):
        namespace_holder.Hold().take(_holder("/b"), from_others=True)
    hold.close()
