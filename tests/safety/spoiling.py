"""Ways for a file to go bad: the routes of a list, and the ledger."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

ROUTES = "".join(f"10.64.{n}.0/24\n" for n in range(40))


def missing(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def leading_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)  # ELOOP, which not even root may read


def cut_in_a_line(path: Path) -> None:
    path.write_text(ROUTES[:-6])


def cut_in_a_prefix(path: Path) -> None:
    path.write_text(ROUTES + "10.65.0.0/1")  # of /16


def binary(path: Path) -> None:
    path.write_bytes(ROUTES.encode() + bytes(range(256)))


def overwrite(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = b"\xa5" * 4096
    path.write_bytes(data)


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def scribble(path: Path) -> None:
    path.write_bytes(b"not a database at all, only text" * 500)


def from_a_newer_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=999")
    connection.close()


def forged(path: Path) -> None:
    """A claim that does not match its own fingerprint is no proof of anything."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE claims SET fields='{}' WHERE kind='link'")
    connection.close()


ROUTE_FILES = (missing, folder, leading_nowhere, cut_in_a_line, cut_in_a_prefix, binary)
LEDGERS = (overwrite, shorten, empty, scribble, from_a_newer_version, forged)
