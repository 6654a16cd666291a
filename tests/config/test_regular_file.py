"""Files that are read: regular ones, and no more of them than is sane."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.config import regular_file
from tests.safety.named_files import NO_FILES


@pytest.mark.parametrize(
    ("make", "said"), NO_FILES.items(), ids=lambda one: getattr(one, "__name__", "")
)
def test_what_is_no_file_is_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "f"
    make(path)
    with pytest.raises(OSError, match=said):
        regular_file.read(path)


def test_a_file_that_is_just_small_enough(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert regular_file.read(path, 100) == b"x" * 100
    with pytest.raises(OSError, match="larger") as caught:
        regular_file.read(path, 99)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))


def test_a_file_of_no_size_with_something_in_it() -> None:
    assert regular_file.read(Path("/proc/self/status")).startswith(b"Name:")
    with pytest.raises(OSError, match="larger"):
        regular_file.read(Path("/proc/self/status"), 20)


def test_a_file_that_grows_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    real = os.read

    def growing(descriptor: int, most: int) -> bytes:
        with path.open("ab") as stream:
            stream.write(b"y" * 10)
        return real(descriptor, most)

    monkeypatch.setattr(os, "read", growing)
    with pytest.raises(OSError, match="larger"):
        regular_file.read(path, 1000)


def test_what_was_handed_may_be_a_pipe() -> None:
    reading, writing = os.pipe()

    def write() -> None:
        os.write(writing, b"text")
        os.close(writing)

    writer = threading.Thread(target=write)
    try:
        writer.start()
        assert regular_file.read_handed(Path(f"/dev/fd/{reading}")) == b"text"
        with pytest.raises(OSError, match="but a pipe"):
            regular_file.read(Path(f"/dev/fd/{reading}"))
    finally:
        writer.join()
        os.close(reading)


def test_what_was_handed_is_read_by_who_may_not_open_it(tmp_path: Path) -> None:
    """It is for who opened it to say who gets it."""
    path = tmp_path / "file"
    path.write_bytes(b"text")
    path.chmod(0o600)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.seteuid(65534)
        with pytest.raises(PermissionError):
            path.read_bytes()
        name = Path(f"/dev/fd/{descriptor}")
        assert regular_file.read_handed(name) == b"text"
        assert regular_file.read_handed(name) == b"text"  # as often as it is asked for
    finally:
        os.seteuid(0)
        os.close(descriptor)
    with pytest.raises(FileNotFoundError):
        regular_file.read_handed(Path("/dev/fd/0/none"))


def test_what_was_handed_is_bounded_too(tmp_path: Path) -> None:
    descriptor = os.open("/dev/zero", os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="larger"):
            regular_file.read_handed(Path(f"/dev/fd/{descriptor}"), 1 << 20)
    finally:
        os.close(descriptor)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="but a pipe"):
        regular_file.read_handed(tmp_path / "pipe")
