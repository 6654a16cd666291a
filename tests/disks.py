"""File systems of a test's own: small ones that can be filled, and ones that turn read-only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Disk:
    """Mounted at a folder; others see it too, and it goes with the test."""

    folder: Path

    def fill(self) -> None:
        """Not a byte more can be written there."""
        for size in (65536, 4096, 1):
            ballast = self.folder / f".ballast-{size}"
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(size))

    def free(self) -> None:
        for ballast in self.folder.glob(".ballast-*"):
            ballast.unlink()

    def use_up_inodes(self) -> None:
        """Not a file more can be made there, on a tmpfs."""
        found = os.statvfs(self.folder)
        used = found.f_files - found.f_ffree
        _mount("-o", f"remount,nr_inodes={used}", str(self.folder))

    def give_inodes(self) -> None:
        _mount("-o", "remount,nr_inodes=10000", str(self.folder))

    def read_only(self) -> None:
        """Nobody may have a file open to write it."""
        _mount("-o", "remount,ro", str(self.folder))

    def writable(self) -> None:
        _mount("-o", "remount,rw", str(self.folder))


@contextmanager
def small_disk(folder: Path, size: str = "4m") -> Iterator[Disk]:
    folder.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size},mode=0700", "none", str(folder))
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def ext4(folder: Path, image: Path) -> Iterator[Disk]:
    """Turns read-only by itself when it finds an error, as it does on most machines."""
    folder.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-b", "4096", "-F", str(image)], check=True)
    _mount("-o", "loop,errors=remount-ro", str(image), str(folder))
    folder.chmod(0o700)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fail(disk: Disk) -> None:
    """An error on an ext4: the kernel takes no more writes, whoever has files open there."""
    device = disk.folder.stat().st_dev
    name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
    Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("1")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
