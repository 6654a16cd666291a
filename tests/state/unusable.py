"""Ways in which a ledger is there and cannot be used, and how each is put right."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.paths import Paths
from tests.unprivileged import NOBODY


@dataclass(frozen=True, slots=True)
class Way:
    spoil: Callable[[Paths], object]
    # None: what it held is lost, and whoever finds it so moves it away.
    mend: Callable[[Paths], object] | None = None


def _lock_is_a_folder(paths: Paths) -> None:
    (paths.state_dir / "lock").unlink(missing_ok=True)
    (paths.state_dir / "lock").mkdir()


def _overwrite(paths: Paths) -> None:
    size = paths.ledger.stat().st_size
    with paths.ledger.open("r+b") as file:
        file.write(os.urandom(size))


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}-aside")


def _replace(path: Path, put: Callable[[Path], object]) -> None:
    path.rename(_aside(path))
    put(path)


def _put_back(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    _aside(path).rename(path)


def _remove_but_not_its_log(paths: Paths) -> None:
    log = paths.ledger.with_name("state.db-wal")
    if not log.exists():
        log.write_bytes(bytes(4096))
    paths.ledger.unlink()


def _folder(put: Callable[[Path], object]) -> Way:
    return Way(lambda at: _replace(at.state_dir, put), lambda at: _put_back(at.state_dir))


def _file(put: Callable[[Path], object]) -> Way:
    return Way(lambda at: _replace(at.ledger, put), lambda at: _put_back(at.ledger))


def move_away(paths: Paths) -> None:
    """As the error says."""
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        file = paths.state_dir / name
        if file.exists():
            file.rename(_aside(file))


WAYS = {
    "a folder that others may write": Way(
        lambda at: at.state_dir.chmod(0o777), lambda at: at.state_dir.chmod(0o700)
    ),
    "a folder of another user": Way(
        lambda at: os.chown(at.state_dir, NOBODY, -1), lambda at: os.chown(at.state_dir, 0, -1)
    ),
    "a file that others may write": Way(
        lambda at: at.ledger.chmod(0o666), lambda at: at.ledger.chmod(0o600)
    ),
    "a file of another user": Way(
        lambda at: os.chown(at.ledger, NOBODY, -1), lambda at: os.chown(at.ledger, 0, -1)
    ),
    "no bytes at all": Way(lambda at: os.truncate(at.ledger, 0)),
    "half of it": Way(lambda at: os.truncate(at.ledger, at.ledger.stat().st_size // 2)),
    "random bytes": Way(_overwrite),
    "a log without its file": Way(_remove_but_not_its_log),
    "a lock that is a folder": Way(_lock_is_a_folder, lambda at: (at.state_dir / "lock").rmdir()),
    "a folder in the place of the file": _file(Path.mkdir),
    "a link in the place of the file": _file(lambda at: at.symlink_to(_aside(at))),
    "a pipe in the place of the file": _file(os.mkfifo),
    "a file in the place of the folder": _folder(Path.touch),
    "a link in the place of the folder": _folder(lambda at: at.symlink_to(_aside(at))),
    "a link to nowhere": _folder(lambda at: at.symlink_to("/nonexistent")),
}
