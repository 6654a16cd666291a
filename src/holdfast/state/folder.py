"""The folder and files of the ledger: who may have written them decides whether they are proof."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.state import faults

FOLDER_MODE, FILE_MODE = 0o700, 0o600
_OTHERS_WRITE = 0o022


def ensure_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except FileExistsError:
        pass  # a file or a dangling link; refuse_unsafe says which
    except OSError as error:
        raise faults.from_system(error, folder, "make the ledger's folder") from error


def refuse_unsafe(path: Path, *, folder: bool) -> os.stat_result | None:
    """Refuses what somebody else could have put there; None when nothing is there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise faults.from_system(error, path, "look at the ledger") from error
    what = "folder" if folder else "file"
    if stat.S_ISLNK(found.st_mode):
        wrong = f"is a symbolic link, not a {what}. Put a real {what} in its place"
    elif not (stat.S_ISDIR if folder else stat.S_ISREG)(found.st_mode):
        wrong = f"is not a {what}. Move it away"
    elif found.st_uid == 0 != os.geteuid():
        wrong = "belongs to root, and this does not run as root: run it with sudo"
    elif found.st_uid != os.geteuid():
        wrong = (
            f"belongs to user {found.st_uid}, and this runs as user {os.geteuid()}, so it proves"
            f" nothing here. Run as its owner, or, if it is yours: chown {os.geteuid()} {path}"
        )
    elif found.st_mode & _OTHERS_WRITE:
        mode = FOLDER_MODE if folder else FILE_MODE
        wrong = (
            f"may be written by other users (mode {stat.S_IMODE(found.st_mode):04o}), so it proves"
            f" nothing. See that nobody changed it, then: chmod {mode:04o} {path}"
        )
    else:
        return found
    raise faults.UnusableError(f"{path} {wrong}. {faults.UNTOUCHED}")


def loose_permissions(folder: Path) -> list[str]:
    """What is readable by more users than it should be. Only looks: opening and closing the
    database's file would drop the locks SQLite holds on it in this process."""
    found = []
    for path, mode in ((folder, FOLDER_MODE), *((entry, FILE_MODE) for entry in _files(folder))):
        have = stat.S_IMODE(path.lstat().st_mode)
        if have & ~mode:
            found.append(f"{path}: mode is {have:04o}, should be {mode:04o}")
    return found


def _files(folder: Path) -> list[Path]:
    names = ("state.db", "state.db-wal", "state.db-shm", "lock")
    return [folder / name for name in names if (folder / name).exists()]
