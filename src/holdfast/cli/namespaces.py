"""Namespaces of a command's own: its network, host name and mounts are not the machine's."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUTS = 0x00020000, 0x04000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000

REFUSED = (
    "Run it as root, or allow user namespaces (kernel.unprivileged_userns_clone=1; on Ubuntu"
    " kernel.apparmor_restrict_unprivileged_userns=0)"
)


def enter(*, processes: bool = False) -> None:
    """Moves this process into them; as a normal user, into a user namespace where it is root.

    processes: its children also get process numbers of their own, from `run_as_init` on.
    Raises OSError where the kernel does not let it.
    """
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNET | _CLONE_NEWUTS | _CLONE_NEWNS | (_CLONE_NEWPID if processes else 0)
    _call("unshare", flags if user == 0 else flags | _CLONE_NEWUSER)
    if user != 0:
        own = Path("/proc/self")
        # The kernel takes a group map from an unprivileged process only once it cannot use
        # setgroups to drop a group that denies it something.
        own.joinpath("setgroups").write_text("deny")
        own.joinpath("uid_map").write_text(f"0 {user} 1")
        own.joinpath("gid_map").write_text(f"0 {group} 1")


def run_as_init(work: Callable[[], int]) -> int:
    """Runs `work` as the first process of the namespace that `enter(processes=True)` made. When it
    ends, the kernel ends every process that was started in it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
            mount("proc", "/proc")
            code = work()
        finally:
            os._exit(code)
    return wait(child)


def wait(child: int) -> int:
    """Its exit code. Where the terminal interrupts this process, it has interrupted the child as
    well, and that ends first."""
    try:
        _, status = os.waitpid(child, 0)
    except KeyboardInterrupt:
        os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(status)


def mount(kind: str, place: str) -> None:
    _call("mount", kind.encode(), os.fsencode(place), kind.encode(), 0, None)


def join_network(path: Path) -> None:
    """Moves this process into the network namespace that a path stands for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("setns", descriptor, _CLONE_NEWNET)
    finally:
        os.close(descriptor)


def _call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
