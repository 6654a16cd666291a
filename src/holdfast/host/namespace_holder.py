"""Which installation has a network namespace, as it is written in the machine's own /run.

    /run/holdfast/namespaces/INODE   who has the namespace of that inode
    /run/holdfast/namespaces/.lock   held while one of them is written

Never below `--root`: it is there for installations of other roots to see. Whoever works in the
namespace holds a shared lock on its file, a daemon for as long as it runs, so that nobody takes the
namespace from under it. The kernel gives inodes to new namespaces again: the file says which one
it means by the epoch, and what is left of a namespace that is gone counts for nothing.

Where the file was lost, those who are at work there have the namespace all the same
(`namespace_presence.py`), and write the file anew.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast.dataclass import asdict, dataclass
from holdfast.host import namespace_presence

FOLDER = Path("/run/holdfast/namespaces")
_LOCK = ".lock"
_MOST = 64 * 1024  # bytes that are read of a file


@dataclass(frozen=True, slots=True)
class Holder:
    installation: str  # the identity in its ledger
    root: str  # as a path
    place: str  # device and inode of the root: a path means another folder in a container
    epoch: str  # boot and network namespace
    tag: int
    since: float  # seconds since 1970; 0 where that was lost


class Unguarded(Exception):  # noqa: N818 (not an error where /run is not ours to write)
    """Nothing can be written there, or what is there cannot be trusted."""


class Busy(Exception):  # noqa: N818 (an answer)
    """Whoever has the namespace is at work in it."""


def place_of(root: Path) -> str:
    try:
        found = root.stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"


def read(epoch: str) -> Holder | None:
    """None where nobody has it. Raises Unguarded."""
    try:
        with _folder() as folder:
            return _entry(folder, _name(), epoch)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unguarded(error) from error


def at_work(me: Holder) -> Holder | None:
    """An installation of another root that works in the namespace, whatever became of its file."""
    found = namespace_presence.others(me.place)
    return Holder("", found.root, found.place, me.epoch, 0, 0.0) if found is not None else None


class Hold:
    """The hold of one process on its namespace, given up when it ends."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._presence: int | None = None

    def take(self, holder: Holder, *, from_others: bool = False) -> Holder:
        """Who has it afterwards: somebody else of another root keeps it, unless it is taken
        `from_others`, which raises Busy while one of them works in it. Raises Unguarded."""
        try:
            with _folder(create=True) as folder, _locked(folder):
                name = _name()
                there = _entry(folder, name, holder.epoch)
                lost = at_work(holder) if there is None or from_others else None
                if lost is not None and from_others:
                    raise Busy
                if lost is not None:
                    return lost
                others = there is not None and not same_root(there, holder)
                if there is not None and others and not from_others:
                    return there
                if there is not None and others:
                    _refuse_busy(folder, name)
                if there is None or others or _differs(there, holder):
                    _put(folder, name, holder)
                    there = holder
                self._keep(folder, name)
                self._announce(holder)
                return there
        except OSError as error:
            self._announce(holder)
            raise _unguarded(error) from error

    def release(self, holder: Holder) -> None:
        """Nothing of this installation is left in the namespace."""
        self.close()
        with suppress(OSError), _folder() as folder, _locked(folder):
            there = _entry(folder, _name(), holder.epoch)
            if there is not None and same_root(there, holder):
                os.unlink(_name(), dir_fd=folder)

    def close(self) -> None:
        self._unlock()
        if self._presence is not None:
            os.close(self._presence)
            self._presence = None

    def _announce(self, holder: Holder) -> None:
        if self._presence is None:
            self._presence = namespace_presence.announce(holder.root, holder.place)

    def _unlock(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _keep(self, folder: int, name: str) -> None:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if self._descriptor is not None:
            kept = os.fstat(self._descriptor)
            if (kept.st_dev, kept.st_ino) == (found.st_dev, found.st_ino):
                return
            self._unlock()
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        # Nobody has it exclusively for longer than it takes to find out that it is free.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        self._descriptor = descriptor


def forget() -> None:
    """This namespace ends with the process that asks: nobody has it after that."""
    with suppress(OSError), _folder() as folder, _locked(folder):
        os.unlink(_name(), dir_fd=folder)


def same_root(holder: Holder, other: Holder) -> bool:
    return (holder.root, holder.place) == (other.root, other.place)


def _differs(there: Holder, holder: Holder) -> bool:
    return (there.installation, there.tag) != (holder.installation, holder.tag)


def _name() -> str:
    return str(Path("/proc/self/ns/net").stat().st_ino)


@contextmanager
def _folder(*, create: bool = False) -> Iterator[int]:
    """Raises OSError. Not through symbolic links: in /run they would be somebody's trick."""
    if create:
        for made in (FOLDER.parent, FOLDER):
            with suppress(FileExistsError):
                made.mkdir(0o755)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    above = os.open(FOLDER.parent, flags)
    try:
        _refuse_unsafe(above, FOLDER.parent)
        folder = os.open(FOLDER.name, flags, dir_fd=above)
    finally:
        os.close(above)
    try:
        _refuse_unsafe(folder, FOLDER)
        yield folder
    finally:
        os.close(folder)


def _refuse_unsafe(descriptor: int, path: Path) -> None:
    found = os.fstat(descriptor)
    if found.st_uid not in (0, os.geteuid()):
        raise PermissionError(0, f"it belongs to user {found.st_uid}", str(path))
    if found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(0, f"others may write to it (mode {mode:04o})", str(path))


@contextmanager
def _locked(folder: int) -> Iterator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(_LOCK, flags, 0o600, dir_fd=folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _entry(folder: int, name: str, epoch: str) -> Holder | None:
    """None where there is none, or one of a namespace that is gone."""
    try:
        # Without blocking: a pipe would have us wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        _refuse_unsafe(descriptor, FOLDER / name)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PermissionError(0, "it is not a file", str(FOLDER / name))
        said = stream.read(_MOST)
    found = _decode(said)
    return found if found is not None and found.epoch == epoch else None


def _decode(said: bytes) -> Holder | None:
    """None for what nobody can have meant: a file is put in place whole."""
    try:
        told: dict[str, Any] = json.loads(said)
        return Holder(
            str(told["installation"]),
            str(told["root"]),
            str(told["place"]),
            str(told["epoch"]),
            int(told["tag"]),
            float(told["since"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _put(folder: int, name: str, holder: Holder) -> None:
    staged = f".{name}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(staged, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(json.dumps(asdict(holder), sort_keys=True).encode() + b"\n")
        os.rename(staged, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(staged, dir_fd=folder)
        raise


def _refuse_busy(folder: int, name: str) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Busy from error
    finally:
        os.close(descriptor)


def _unguarded(error: OSError) -> Unguarded:
    where = error.filename if isinstance(error.filename, str) else str(FOLDER)
    if not where.startswith("/"):
        where = str(FOLDER / where)
    return Unguarded(f"{where}: {error.strerror}")
