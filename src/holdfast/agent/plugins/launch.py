"""Starts one plugin with nothing it was not given: run as a program of its own, by `runner`.

    launch.py PARENT USER GROUP PROCESSES MEMORY SECONDS EXECUTABLE

The plugin is process 1 of a PID namespace, where this process may make one: whatever it forks, in
whatever session, ends with it, and it ends with this process, which ends with the daemon. Only the
standard library is used, and little of it: this starts once for every run.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

_NEW_PID, _NEW_IPC, _NEW_MOUNTS = 0x20000000, 0x08000000, 0x00020000
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
    if os.geteuid() == 0 and _libc.unshare(_NEW_PID | _NEW_IPC | _NEW_MOUNTS) != 0:
        return _failed("cannot be given namespaces of its own")
    child = os.fork()
    if child == 0:
        try:
            _end_with_parent()
            if os.geteuid() == 0:
                _hide_others()
            _limit(processes, memory, seconds)
            _drop(user, group)
            os.execv(executable, [executable])  # noqa: S606 (no shell is the point)
        except OSError as error:
            os._exit(_failed(f"cannot be started: {error.strerror}"))
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


def _drop(user: int, group: int) -> None:
    os.umask(0o077)
    os.setsid()
    os.chdir("/")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)  # with this, every capability goes
        # The kernel forgets it with a change of user.
        _end_with_parent()
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
