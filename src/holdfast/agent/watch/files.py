"""Files that were written, put in place, removed, or changed in mode.

fanotify tells which process did it. Where it is not to be had, inotify has to do, and nobody knows
which writes are our own: to be told what to expect, and pass over it, would also pass over what
somebody else writes just after us. Folders that come and go are inotify's in any case.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import select
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast.agent.watch import fanotify
from holdfast.agent.watch.fanotify import Fanotify
from holdfast.agent.watch.hint import Writer, command_of, named
from holdfast.errors import DriverError

_MOUNTS = "/proc/self/mountinfo"
_READ_AT_ONCE = 1 << 16
_ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_ONLY_FOLDERS = 0x01000000
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT = struct.Struct("=iIII")

# A folder with files that matter; one in which another is to appear, for which something else may
# have to go; any of these and those above them, which may go or be moved away.
_IN_IT = _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_APPEARING = _CREATE | _MOVED_TO | _DELETE | _MOVED_FROM
_ITSELF = _DELETE_SELF | _MOVE_SELF
_SELF = "."  # as fanotify names the folder itself
# How often folders may come and go while they are being watched.
_TRIES = 8


class Deed(NamedTuple):
    """What was done to a file."""

    writer: Writer | None
    whole: bool  # renamed into place, and nothing else


Changed = dict[Path, Deed]


class FileWatch:
    """told: a file of those that were set, or one in a folder that was, who changed it, and whether
    it came whole, by a rename. lost: anything may have changed."""

    def __init__(
        self, told: Callable[[Path, Writer | None, bool], None], lost: Callable[[], None]
    ) -> None:
        self._told = told
        self._lost = lost
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._call(
            "cannot watch files", self._libc.inotify_init1, _NONBLOCK_CLOEXEC
        )
        self._asked: frozenset[Path] = frozenset()
        self._whole: frozenset[Path] = frozenset()  # folders in which all files matter
        self._names: dict[Path, set[str]] = {}  # of files that do, by folder
        self._ways: dict[Path, set[Path]] = {}  # what was asked for, by where it is
        self._links: set[Path] = set()  # those on the way there
        self._watched: dict[int, set[Path]] = {}  # two ways may lead to one folder, by a link
        self._fanotify = Fanotify.open()
        self._marked: dict[bytes, set[Path]] = {}  # folders that it tells of, by handle
        self._mounted = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        # The list can always be read, so that its change is not what the loop would wait for.
        self._mounts = select.epoll()
        self._mounts.register(self._mounted, select.EPOLLPRI)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._mounts, self._covered)
        self._loop.add_reader(self._descriptor, self._read)
        if self._fanotify is not None:
            self._loop.add_reader(self._fanotify, self._read_fanotify)

    def close(self) -> None:
        self._loop.remove_reader(self._mounts)
        self._mounts.close()
        os.close(self._mounted)
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        if self._fanotify is not None:
            self._loop.remove_reader(self._fanotify)
            self._fanotify.close()

    def set(self, paths: Iterable[Path], folders: Iterable[Path] = ()) -> list[str]:
        """Watches these files from now on, and all files in these folders but hidden ones, whether
        any of it is there or not. Answers what cannot be watched, and why."""
        self._asked, self._whole = frozenset(paths), frozenset(folders)
        return self._arrange()

    def _arrange(self) -> list[str]:
        self._names = {folder: set() for folder in self._whole}
        self._ways, self._links = {}, set()
        for path in self._asked:
            *links, end = _places(path)
            self._links.update(links)
            for place in (*links, end):
                self._names.setdefault(place.parent, set()).add(place.name)
                self._ways.setdefault(place, set()).add(path)
        masks = self._masks()
        problems: list[str] = []
        for _ in range(_TRIES):
            problems = self._watch(masks)
            # One that came while those above it were not watched yet would be overlooked.
            again = self._masks()
            if again == masks:
                break
            masks = again
        return problems

    def _masks(self) -> dict[Path, int]:
        """What inotify has to tell of."""
        masks: dict[Path, int] = {}
        self._marked = {}
        for folder in self._names:
            nearest = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
            asked = _APPEARING
            if nearest == folder:
                asked = 0 if self._mark(folder) else _IN_IT
            masks[nearest] = masks.get(nearest, 0) | asked
            for path in (nearest, *nearest.parents):
                masks[path] = masks.get(path, 0) | _ITSELF
        return masks

    def _mark(self, folder: Path) -> bool:
        handle = self._fanotify.mark(folder, _IN_IT) if self._fanotify is not None else None
        if handle is None:
            return False
        self._marked.setdefault(handle, set()).add(folder)
        return True

    def _watch(self, masks: dict[Path, int]) -> list[str]:
        problems = []
        watched: dict[int, set[Path]] = {}
        for path, asked in masks.items():
            mask = asked
            try:
                number = self._add(path, mask)
                for other in watched.get(number, ()):
                    mask |= masks[other]
                if mask != asked:
                    self._add(path, mask)
            except DriverError as error:
                if error.code not in (errno.ENOENT, errno.ENOTDIR):  # gone again: seen to after it
                    problems.append(str(error))
                continue
            watched.setdefault(number, set()).add(path)
        for number in self._watched.keys() - watched.keys():
            self._libc.inotify_rm_watch(self._descriptor, number)
        self._watched = watched
        return problems

    def _add(self, path: Path, mask: int) -> int:
        return self._call(
            f"cannot watch {path}",
            self._libc.inotify_add_watch,
            self._descriptor,
            os.fsencode(path),
            mask | _ONLY_FOLDERS,
        )

    def _call(self, failed: str, function: Callable[..., int], *arguments: object) -> int:
        answer = function(*arguments)
        if answer < 0:
            code = ctypes.get_errno()
            raise DriverError(f"{failed}: {os.strerror(code)}", code)
        return answer

    def _read(self) -> None:
        moved = False
        changed: Changed = {}
        while True:
            try:
                data = os.read(self._descriptor, _READ_AT_ONCE)
            except BlockingIOError:
                break
            offset = 0
            while offset < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, offset)
                offset += _EVENT.size
                name = os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
                offset += length
                if mask & _OVERFLOW:
                    moved = True
                    self._lost()
                elif mask & (_IGNORED | _ITSELF):
                    moved |= number in self._watched
                for folder in self._watched.get(number, ()) if name else ():
                    moved |= self._happened(folder / name, mask, None, changed)
        self._tell(moved, changed)

    def _read_fanotify(self) -> None:
        moved = False
        changed: Changed = {}
        for event in self._fanotify.read() if self._fanotify is not None else ():
            if event.mask & fanotify.OVERFLOW:
                moved = True
                self._lost()
            # Who writes a file may be in any network namespace, and has the number it has here.
            writer = named(event.pid, command_of(event.pid)) if event.pid else None
            for folder in self._marked.get(event.folder, ()) if event.name != _SELF else ():
                moved |= self._happened(folder / event.name, event.mask, writer, changed)
        self._tell(moved, changed)

    def _covered(self) -> None:
        """Something was mounted or unmounted: a folder may be another one now."""
        self._mounts.poll(0)
        self._tell(True, {})

    def _tell(self, moved: bool, changed: Changed) -> None:
        if moved:
            self._follow(changed)
        for path, deed in changed.items():
            self._told(path, deed.writer, deed.whole)

    def _happened(self, path: Path, mask: int, writer: Writer | None, changed: Changed) -> bool:
        """Puts down what changed. Whether folders have to be watched anew."""
        moved = False
        if self._matters(path) and _is_change(path, mask):
            whole = mask & (_MOVED_TO | _CLOSE_WRITE) == _MOVED_TO
            for asked in self._ways.get(path, {path}):
                _put(asked, writer, changed, whole=whole)
            moved = path in self._links or path.is_symlink()  # it leads elsewhere now
        if mask & _APPEARING:
            for folder in self._names:
                if path == folder or path in folder.parents:
                    moved = True
                    self._all_of(folder, changed)
        return moved

    def _matters(self, path: Path) -> bool:
        if path.parent in self._whole and not path.name.startswith("."):
            return True
        return path.name in self._names.get(path.parent, ())

    def _follow(self, changed: Changed) -> None:
        """Watches what is there now. All that is in a folder that came or went changed."""
        before = self._places()
        self._arrange()
        after = self._places()
        for folder in self._names:
            if before.get(folder) != after.get(folder):
                self._all_of(folder, changed)

    def _all_of(self, folder: Path, changed: Changed) -> None:
        """Whoever made a folder, others may have put files into it before it was watched."""
        for name in self._names[folder]:
            for asked in self._ways[folder / name]:
                _put(asked, None, changed)
        if folder in self._whole:
            _put(folder, None, changed)

    def _places(self) -> dict[Path, int]:
        """The kernel gives a number to no second folder."""
        return {path: number for number, paths in self._watched.items() for path in paths}


def _put(path: Path, writer: Writer | None, changed: Changed, *, whole: bool = False) -> None:
    before = changed.get(path)
    if before is None:
        changed[path] = Deed(writer, whole)
        return
    # Whoever else did it prevails.
    ours = before.writer is not None and before.writer.pid == os.getpid()
    changed[path] = Deed(writer if ours else before.writer, before.whole and whole)


def _places(path: Path) -> Iterator[Path]:
    """A file, and where symbolic links lead from it."""
    yield path
    place = path
    for _ in range(_TRIES):
        try:
            place = place.parent / place.readlink()
        except OSError:
            return
        yield place


def _is_change(path: Path, mask: int) -> bool:
    """Of a file that was only just opened for writing there is nothing to be read yet, and its end
    will be told; of a link there is."""
    if mask & ~_CREATE & _IN_IT:
        return True
    try:
        found = path.lstat()
    except OSError:
        return False
    return not stat.S_ISREG(found.st_mode) or found.st_nlink > 1
