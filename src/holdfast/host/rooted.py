"""Files below a root, reached folder by folder without following a symbolic link.

Below `--root` (or in a folder another user may write) a link could lead anywhere, so each step
is taken relative to the folder opened before it, and a link met on the way is an error.
New content is written beside its place, made durable, and only then given its name.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.engine.kinds.file import digest

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe somebody put there would wait for its other end.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ACL = "system.posix_acl_access"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is at a path. Only a regular file has a digest."""

    sha256: str  # as `kinds.file.digest` makes it
    mode: int
    uid: int
    gid: int
    type: str = "file"


@contextmanager
def parent(root: Path, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """The opened folder a path lies in, and its name there. FileNotFoundError where a folder on
    the way is missing; with `create` it is made (0755)."""
    *folders, name = _components(path)
    if create:
        root.mkdir(parents=True, exist_ok=True)
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, folder in enumerate(folders, 1):
            try:
                below = _step(here, folder, create)
            except NotADirectoryError as error:
                step = "/" + "/".join(folders[:depth])
                raise NotADirectoryError(
                    errno.ENOTDIR, f"{step} is not a folder (symbolic links are not followed)"
                ) from error
            os.close(here)
            here = below
        yield here, name
    finally:
        os.close(here)


def look(folder: int, name: str) -> Seen | None:
    """What is there; None only where the system says there is nothing."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return Seen("", stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, _type(found))
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EBUSY, "replaced while it was being read")
        mode = stat.S_IMODE(found.st_mode)
        return Seen(digest(file.read(), mode), mode, found.st_uid, found.st_gid)


def read(folder: int, name: str) -> bytes:
    """The content of a regular file."""
    with os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read()


def create(folder: int, name: str, content: bytes, mode: int) -> None:
    """Makes a file that was not there: FileExistsError if it is, whoever made it and when."""
    with _staged(folder, name, content, mode, None) as staged:
        # A link, unlike a rename, never replaces.
        os.link(staged, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(staged, dir_fd=folder)
        os.fsync(folder)
        # Programs that watch the folder (dnsmasq does) overlook a link, but not the end of a write.
        os.close(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder))


def replace(folder: int, name: str, content: bytes, mode: int, owner: Seen | None) -> None:
    """Gives the name new content at once, keeping the owner of what was there, and whom else it
    lets in where its mode stays."""
    with _staged(folder, name, content, mode, owner) as staged:
        if owner is not None and owner.mode == mode:
            _copy_acl(folder, name, staged)
        try:
            os.rename(staged, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            # A mount point, as /etc/hosts is in containers, cannot be given another file.
            _overwrite(folder, name, content, mode)
            os.unlink(staged, dir_fd=folder)
        os.fsync(folder)


def remove(folder: int, name: str) -> None:
    os.unlink(name, dir_fd=folder)
    os.fsync(folder)


def sweep(folder: int, name: str) -> None:
    """Removes what a crash left of earlier writes of this file."""
    leftover = re.compile(rf"\.{re.escape(name)}\.holdfast-[0-9a-f]{{16}}")
    for entry in os.listdir(folder):
        if leftover.fullmatch(entry):
            found = os.stat(entry, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                os.unlink(entry, dir_fd=folder)


@contextmanager
def _staged(folder: int, name: str, content: bytes, mode: int, owner: Seen | None) -> Iterator[str]:
    """The content, durable under a passing name in the same folder."""
    staged = f".{name}.holdfast-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(staged, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if owner is not None and (owner.uid, owner.gid) != (os.geteuid(), os.getegid()):
                os.fchown(descriptor, owner.uid, owner.gid)
            os.fchmod(descriptor, mode)  # after fchown, which clears set-id bits
            os.fsync(descriptor)
        yield staged
    except BaseException:
        with suppress(OSError):
            os.unlink(staged, dir_fd=folder)
        raise


def _copy_acl(folder: int, name: str, staged: str) -> None:
    here = f"/proc/self/fd/{folder}"
    try:
        acl = os.getxattr(f"{here}/{name}", _ACL, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return
        raise
    os.setxattr(f"{here}/{staged}", _ACL, acl, follow_symlinks=False)


def _overwrite(folder: int, name: str, content: bytes, mode: int) -> None:
    """Whoever reads it meanwhile may see some of both."""
    descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        if content:
            os.posix_fallocate(descriptor, 0, len(content))  # a full disk says so before it is cut
        file.write(content)
        file.truncate()
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _components(path: str) -> list[str]:
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"{path!r} is not an absolute path")
    components = path[1:].split("/")
    if any(component in ("", ".", "..") for component in components):
        raise ValueError(f"{path!r} has an empty, `.` or `..` component")
    return components


def _step(here: int, folder: str, create: bool) -> int:
    try:
        return os.open(folder, _FOLDER, dir_fd=here)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(folder, 0o755, dir_fd=here)
        # Whatever the umask made of it: other users' services read below it.
        os.chmod(folder, 0o755, dir_fd=here)  # noqa: S103 (meant)
        os.fsync(here)
    return os.open(folder, _FOLDER, dir_fd=here)


def _type(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return "symbolic link"
    return "folder" if stat.S_ISDIR(found.st_mode) else "special file"
