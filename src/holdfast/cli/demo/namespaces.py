"""Namespaces of the demo's own: its network, host name and mounts are not the machine's."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUTS = 0x00020000, 0x04000000
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def enter() -> None:
    """Moves this process into them; as a normal user, into a user namespace where it is root.

    Raises OSError where the kernel does not let it.
    """
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNET | _CLONE_NEWUTS | _CLONE_NEWNS
    _unshare(flags if user == 0 else flags | _CLONE_NEWUSER)
    if user != 0:
        own = Path("/proc/self")
        # The kernel takes a group map from an unprivileged process only once it cannot use
        # setgroups to drop a group that denies it something.
        own.joinpath("setgroups").write_text("deny")
        own.joinpath("uid_map").write_text(f"0 {user} 1")
        own.joinpath("gid_map").write_text(f"0 {group} 1")


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
