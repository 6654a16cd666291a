"""What may stand where a configuration file is expected, and is none."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def unix_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")  # the name of a socket must be short
    finally:
        os.close(folder)


def directory(path: Path) -> None:
    path.mkdir()


def sparse_terabyte(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1 << 40)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


# What makes it, and what is said of it.
NO_FILES: dict[Callable[[Path], None], str] = {
    pipe: "it is not a regular file, but a pipe",
    endless_device: "it is not a regular file, but a device",
    unix_socket: "it is not a regular file, but a socket",
    directory: "it is not a regular file, but a directory",
    sparse_terabyte: "it is larger than 256 MiB",
    link_to_itself: "Too many levels of symbolic links",
}


def put(make: Callable[[Path], None], path: Path) -> None:
    """In the place of what is there."""
    take_away(path)
    make(path)


def take_away(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
