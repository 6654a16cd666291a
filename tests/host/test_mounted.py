"""Files that are mount points, as /etc/hosts and /etc/hostname are in containers."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.host import rooted
from tests.safety.router_scene import Scene, scene

pytestmark = pytest.mark.programs

OTHERS = b"127.0.0.1 localhost\n# \xff, as it was\r\n"
BLOCK = b"# BEGIN holdfast hostname\n127.0.1.1 edge\n# END holdfast hostname\n"
WANTED = {"Hostname/it": "{hostname: edge, hostsEntry: true}"}


@contextmanager
def _mounted(place: Path, content: bytes, size: str = "1m") -> Iterator[None]:
    """A file of another file system in its place."""
    other = place.parent.parent / f"other-{place.name}"
    other.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(other)]
    subprocess.run(mount, check=True)
    (other / "file").write_bytes(content)
    place.write_bytes(b"")
    subprocess.run(["mount", "--bind", other / "file", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)
        subprocess.run(["umount", other], check=True)


@pytest.fixture
def router() -> Iterator[Scene]:
    with scene() as made:
        (made.paths.root / "etc").mkdir()
        yield made


def test_they_are_written_in_place(router: Scene) -> None:
    etc = router.paths.root / "etc"
    with _mounted(etc / "hosts", OTHERS), _mounted(etc / "hostname", b"before, and longer\n"):
        (etc / "hosts").chmod(0o640)
        inode = (etc / "hosts").stat().st_ino
        assert router.apply(WANTED).converged
        assert (etc / "hosts").read_bytes() == OTHERS + BLOCK
        assert (etc / "hostname").read_bytes() == b"edge\n"
        assert socket.gethostname() == "edge"
        found = (etc / "hosts").stat()
        assert (found.st_ino, found.st_mode & 0o777) == (inode, 0o640)
        assert sorted(os.listdir(etc)) == ["hostname", "hosts"]  # noqa: PTH208
        assert router.apply({}).converged
        assert (etc / "hosts").read_bytes() == OTHERS


def test_a_full_disk_cuts_none_of_them(router: Scene) -> None:
    etc = router.paths.root / "etc"
    content = OTHERS + bytes(8192 - len(OTHERS))
    with _mounted(etc / "hosts", content, size="8k"):
        report = router.apply(WANTED)
        assert "No space left on device" in {failure.error for _, failure in report.failures}
        assert (etc / "hosts").read_bytes() == content
        assert sorted(os.listdir(etc)) == ["hostname", "hosts"]  # noqa: PTH208


def test_other_refusals_stay_refusals(tmp_path: Path) -> None:
    """Only a mount point is written in place: half a file is worse than none."""
    (tmp_path / "it").mkdir()
    with rooted.parent(tmp_path, "/it") as (folder, name), pytest.raises(IsADirectoryError):
        rooted.replace(folder, name, b"x", 0o644, None)
    assert [path.name for path in tmp_path.iterdir()] == ["it"]
