"""Files that root acts on, which nobody else can write or put another one in the place of.

The file is looked at and used through one descriptor: between a look at a path and its use, a link
or a folder on the way could be turned to another file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from holdfast.dataclass import dataclass
from holdfast.errors import Refused

# As many as the kernel follows on the way to a file.
_MOST_LINKS = 40
_USERS = Path("/proc/self/uid_map")
# Whom a user namespace shows for everybody whom it does not know.
_UNKNOWN_USER = 65534


@dataclass(frozen=True, slots=True)
class Trusted:
    """Descriptors (O_PATH) of a file and of the folder that it was found in."""

    file: int
    folder: int
    path: Path  # without a link in it

    @property
    def mode(self) -> int:
        return os.fstat(self.file).st_mode


@contextmanager
def trusted(path: Path, also: Collection[int] = ()) -> Iterator[Trusted]:
    """The file there, while the body runs.

    Raises Refused where it, or a folder or a link on the way to it, is in the hands of others than
    root, whoever runs this and the users in `also`, OSError where it cannot be got to."""
    with ExitStack() as held:
        found = _walk(path.absolute(), held, also)
        state = os.fstat(found.file)
        if not stat.S_ISREG(state.st_mode):
            raise Refused(f"{found.path} is not a regular file")
        _check_owner(state, found.path, also=also)
        if _others_write(state):
            raise Refused(f"others than its owner may write {found.path}: chmod go-w {found.path}")
        yield found


def refuse_folder(path: Path, also: Collection[int] = ()) -> None:
    """Raises as `trusted` does, of a folder; where it is not there, of the one it would be made
    in."""
    there = path.absolute()
    while True:
        try:
            with ExitStack() as held:
                _walk(there, held, also)
                return
        except FileNotFoundError:
            there = there.parent


@contextmanager
def program(path: Path) -> Iterator[Trusted]:
    """A program that root starts as somebody without rights. Raises Refused, with what is to be
    done about it."""
    with ExitStack() as held:
        try:
            found = held.enter_context(trusted(path))
        except OSError as error:
            raise Refused(f"{path}: {error.strerror}") from None
        if not found.mode & stat.S_IXUSR:
            raise Refused(f"{path} is not executable: chmod 0755 {path}")
        if os.geteuid() == 0 and not found.mode & stat.S_IXOTH:
            raise Refused(f"{path} is run as nobody, who may not: chmod 0755 {path}")
        yield found


@contextmanager
def reached(path: Path) -> Iterator[Trusted]:
    """What is there, whoever may write it, by no link but those of root and of whoever runs this:
    another's could lead to what only root may read. Raises as `trusted` does."""
    with ExitStack() as held:
        yield _walk(path.absolute(), held, (), folders=False)


def resolved(path: Path) -> Path:
    """The path without links, by the same rule where this is root; of what is not there, as it
    would be made."""
    if os.geteuid() != 0:
        return path.resolve()
    missing: list[str] = []
    there = path.absolute()
    while True:
        try:
            with reached(there) as found:
                return found.path.joinpath(*missing)
        except FileNotFoundError:
            if there.is_symlink():  # which leads nowhere
                raise
            missing.insert(0, there.name)
            there = there.parent


def _walk(path: Path, held: ExitStack, also: Collection[int], *, folders: bool = True) -> Trusted:
    """Step by step, as the kernel would go; each step is looked at before the next is taken.

    held: closes what was opened on the way. folders: look at who may write those."""
    left, links = deque(path.parts), 0
    at = Trusted(-1, -1, Path("/"))
    while left:
        name = left.popleft()
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        step = os.open(name, flags, dir_fd=None if at.file < 0 else at.file)
        held.callback(os.close, step)
        state, shown = os.fstat(step), _joined(at.path, name)
        if stat.S_ISLNK(state.st_mode):
            links += 1
            left.extendleft(reversed(PurePosixPath(_target(step, state, shown, links, also)).parts))
            continue
        at = Trusted(step, at.file, shown)
        if stat.S_ISDIR(state.st_mode):
            if folders:
                _check_folder(state, shown, also)
        elif left:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(shown))
    return at


def _joined(shown: Path, name: str) -> Path:
    return shown.parent if name == ".." else shown / name


def _target(
    link: int, state: os.stat_result, shown: Path, links: int, also: Collection[int]
) -> str:
    _check_owner(state, shown, "the link ", also)
    if links > _MOST_LINKS:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(shown))
    return os.readlink("", dir_fd=link)


def _check_folder(found: os.stat_result, shown: Path, also: Collection[int]) -> None:
    """Whoever can write a folder can put another file in the place of one that was looked at. In
    one that is sticky, as /tmp, that takes its owner."""
    _check_owner(found, shown, "the folder ", also)
    if _others_write(found) and not found.st_mode & stat.S_ISVTX:
        raise Refused(f"others than its owner may write the folder {shown}: chmod go-w {shown}")


def _others_write(found: os.stat_result) -> bool:
    return bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _check_owner(
    found: os.stat_result, shown: Path, what: str = "", also: Collection[int] = ()
) -> None:
    user = found.st_uid
    if user in (0, os.geteuid(), *also) or (user == _UNKNOWN_USER and not _knows(user)):
        return
    raise Refused(f"{what}{shown} belongs to user {user}: chown -h root {shown}")


def _knows(user: int) -> bool:
    """In a user namespace, all whom it does not know are shown as one number: root among them."""
    return any(
        int(first) <= user < int(first) + int(count)
        for first, _, count in map(str.split, _USERS.read_text().splitlines())
    )
