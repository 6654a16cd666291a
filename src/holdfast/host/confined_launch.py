"""Starts one plugin, or program of a log sink, with nothing it was not given: run as a program of
its own, by `confined_program`.

    launch.py PARENT USER GROUP PROCESSES MEMORY SECONDS FILE FOLDER VARIABLES PATH

FILE, FOLDER and VARIABLES are descriptors: of the program that was looked at, of the folder it was
found in, and of the variables that it is given, which nothing here is ever run with.

Three processes: this one; the first of a PID namespace, where this one may make one; and the
plugin. With the first process of a PID namespace all others in there end, in whatever session. So
it is never the plugin, which could ask the kernel not to be ended with its parent. It ends with
this process, which ends with the daemon, and a plugin can neither signal nor trace it. The plugin
is also alone in a user namespace, where the kernel has these: all plugins are the same user, and
the kernel counts the processes of a user in each user namespace by itself, so that one plugin that
forks without end keeps no other from starting. Only the standard library is used, and little of it:
this starts once for every run.
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
_DROP_FROM_BOUNDING_SET, _TAKE_ORPHANS = 24, 36
_MOST_CAPABILITIES = 64
_ALONE = b"+"  # in a user namespace of its own
_FOLDER = 3  # a script's own: its name is /dev/fd/3/NAME
_NO_FOLLOW = 0x100
_libc = ctypes.CDLL(None, use_errno=True)


def main(argv: list[str]) -> int:
    parent, user, group, processes, memory, seconds, file, folder, variables = map(int, argv[:9])
    _end_with_parent()
    if os.getppid() != parent:  # it ended before this could be asked for
        return 126
    for descriptor in (file, folder):
        os.set_inheritable(descriptor, False)
    with os.fdopen(variables, "rb") as given:
        environment = dict(one.split(b"=", 1) for one in given.read().split(b"\0") if one)
    root = os.geteuid() == 0
    if root and _libc.unshare(_NEW_PID | _NEW_IPC | _NEW_MOUNTS) != 0:
        return _failed("cannot be given namespaces of its own")
    processes_seen = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    ready, named = os.pipe(), os.pipe()
    first = os.fork()
    if first == 0:
        try:
            os.close(ready[0])
            os.close(named[1])
            _go_first(root, ready[1], named[0])
            plugin = os.fork()
            if plugin == 0:
                _limit(processes, memory, seconds)
                _drop_rights()
                if root:
                    _become(user, group)
                _execute(file, folder, argv[9], environment)
            ended = _status(plugin)
            if not root:
                _end_rest()
            os._exit(ended)
        except OSError as error:
            os._exit(_failed(f"cannot be started: {error.strerror}"))
    os.close(ready[1])
    os.close(named[0])
    if os.read(ready[0], 1) == _ALONE:
        _name_user(processes_seen, first, user, group)
    with suppress(BrokenPipeError):  # it failed, and said why
        os.write(named[1], b".")
    return _status(first)


def _go_first(root: bool, ready: int, named: int) -> None:
    """What the first process of the namespaces does before there is a plugin. It goes on only if it
    hears of its parent after it asked to end with it: that one may have been killed before."""
    _end_with_parent()
    alone = False
    if not root:
        # There is no namespace that ends with it: what is left behind comes to it instead.
        _libc.prctl(_TAKE_ORPHANS, 1, 0, 0, 0)
    else:
        _hide_others()
        alone = _libc.unshare(_NEW_USER) == 0
        _end_with_parent()  # the kernel forgets it with a change of namespace
    os.write(ready, _ALONE if alone else b"-")
    if not os.read(named, 1):
        os._exit(126)


def _execute(file: int, folder: int, path: str, environment: dict[bytes, bytes]) -> None:
    """By descriptor, never by its path. A script is read by its interpreter, which the kernel gives
    a name to open: by the descriptor of its folder it has its own name, and neighbours. Nobody but
    root writes there, and root may just be upgrading it."""
    if not _is_script(file):
        os.execve(file, [path], environment)  # noqa: S606 (no shell is the point)
    name = os.path.basename(path)  # noqa: PTH119 (pathlib takes longer than all the rest)
    if not os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(file)):
        raise OSError(errno.ESTALE, "another file took its place while it was being started")
    os.dup2(folder, _FOLDER)
    os.set_inheritable(_FOLDER, True)  # it may have had that number
    variables = [b"=".join(one) for one in environment.items()]
    _libc.execveat(_FOLDER, name.encode(), _words([path.encode()]), _words(variables), _NO_FOLLOW)
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _is_script(file: int) -> bool:
    try:
        readable = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a program may be one that can be run and not read
        return False
    with os.fdopen(readable, "rb") as opened:
        return opened.read(2) == b"#!"


def _words(words: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def _status(child: int) -> int:
    """How it ended; whatever it left behind is waited for as well, since nobody else would."""
    while True:
        ended, status = os.wait()
        if ended != child:
            continue
        if os.WIFSIGNALED(status):
            # As a shell would say it: this process cannot die of the same signal quietly.
            return 128 + os.WTERMSIG(status)
        return os.WEXITSTATUS(status)


def _end_rest() -> None:
    """End what the plugin left behind, however often that began a session of its own."""
    with suppress(OSError):  # no children, or no /proc that tells of them
        while True:
            with open("/proc/thread-self/children", encoding="ascii") as told:  # noqa: PTH123 (as above)
                children = told.read().split()
            for child in children:
                os.kill(int(child), signal.SIGKILL)
            os.wait()


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


def _name_user(processes: int, child: int, user: int, group: int) -> None:
    """The one user and group that a plugin may be, by their own numbers: files that are there for
    them stay so. Only this process, which still has its rights, can say who is who in the new
    namespace. Where the kernel lets nobody make one, plugins share their user's limit on processes.

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
    for capability in range(_MOST_CAPABILITIES):
        if _libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) != 0:
            break  # the kernel knows no more of them
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
