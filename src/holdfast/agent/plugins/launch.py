"""Starts one plugin with nothing it was not given: run as a program of its own, by `runner`.

    launch.py PARENT USER GROUP PROCESSES MEMORY SECONDS EXECUTABLE

The plugin is process 1 of a PID namespace, where this process may make one: whatever it forks, in
whatever session, ends with it, and it ends with this process, which ends with the daemon. It is
also alone in a user namespace, where the kernel has these: all plugins are the same user, and the
kernel counts the processes of a user in each user namespace by itself, so that one plugin that
forks without end keeps no other from starting. Only the
standard library is used, and little of it: this starts once for every run.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import sys
from contextlib import suppress

_NEW_PID, _NEW_IPC, _NEW_MOUNTS, _NEW_USER = 0x20000000, 0x08000000, 0x00020000, 0x10000000
_RECURSIVE, _SLAVE = 0x4000, 0x80000
_NO_SETUID_DEVICES_PROGRAMS = 0x2 | 0x4 | 0x8
_SET_PARENT_DEATH_SIGNAL, _SET_NO_NEW_PRIVILEGES = 1, 38
_libc = ctypes.CDLL(None, use_errno=True)


def main(argv: list[str]) -> int:
    parent, user, group, processes, memory, seconds = map(int, argv[:6])
    executable = argv[6]
    _end_with_parent()
    if os.getppid() != parent:  # it ended before this could be asked for
        return 126
    root = os.geteuid() == 0
    if root and _libc.unshare(_NEW_PID | _NEW_IPC | _NEW_MOUNTS) != 0:
        return _failed("cannot be given namespaces of its own")
    processes_seen = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    alone, named = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(alone[0])
            os.close(named[1])
            _end_with_parent()
            if root:
                _hide_others()
                _enter_own_users(alone[1], named[0])
            _limit(processes, memory, seconds)
            _drop_rights()
            if root:
                _become(user, group)
            _end_with_parent()  # the kernel forgets it with a change of user
            os.execv(executable, [executable])  # noqa: S606 (no shell is the point)
        except OSError as error:
            os._exit(_failed(f"cannot be started: {error.strerror}"))
    os.close(alone[1])
    os.close(named[0])
    if os.read(alone[0], 1):
        _name_user(processes_seen, child, user, group)
    os.close(named[1])
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        # As a shell would say it: this process cannot die of the same signal quietly.
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)


def _end_with_parent() -> None:
    if _libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no parent death signal")


def _hide_others() -> None:
    """All plugins are the same user, who may read the environment of each of his processes. A
    /proc of its own shows a plugin no other. Some containers do not let anybody mount one; there
    is nothing else to be done about it then."""
    # What is mounted here must never be seen by the machine.
    if _libc.mount(None, b"/", None, _RECURSIVE | _SLAVE, None) == 0:
        _libc.mount(b"proc", b"/proc", b"proc", _NO_SETUID_DEVICES_PROGRAMS, None)


def _enter_own_users(alone: int, named: int) -> None:
    """Only the parent, which still has its rights, can say who is who in the new namespace. Where
    the kernel lets nobody make one, the plugin shares its user's limit on processes with others."""
    if _libc.unshare(_NEW_USER) == 0:
        _end_with_parent()  # the kernel forgets it with a change of namespace
        os.write(alone, b".")
        os.read(named, 1)  # until it is closed


def _name_user(processes: int, child: int, user: int, group: int) -> None:
    """The one user and group that a plugin may be, by their own numbers: files that are there for
    them stay so.

    processes: the folder of processes as it was before the plugin was given one of its own."""
    for name, number in (("uid_map", user), ("gid_map", group)):
        place = os.open(f"{child}/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=processes)
        os.write(place, f"{number} {number} 1".encode())
        os.close(place)


def _limit(processes: int, memory: int, seconds: int) -> None:
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_NOFILE, 256),
    ):
        resource.setrlimit(what, (most, most))
    # A service manager may have made the daemon one of the last to go; its plugins go first.
    with suppress(OSError):
        os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC), b"500")


def _become(user: int, group: int) -> None:
    """With this, every capability goes. Not asked of the process itself: in a user namespace, root
    of the machine has another number."""
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    if os.getresuid() != (user,) * 3 or os.getresgid() != (group,) * 3:
        raise OSError(errno.EPERM, "it would not run as the user it is to run as")


def _drop_rights() -> None:
    os.umask(0o077)
    os.setsid()
    os.chdir("/")
    if _libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "privileges could be gained anew")
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
            signal.signal(number, signal.SIG_DFL)


def _failed(why: str) -> int:
    os.write(2, f"{why}\n".encode())
    return 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
