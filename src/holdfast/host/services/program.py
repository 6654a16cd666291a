"""Starting a program so that no crash leaves it running unknown to anybody."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.host.services import processes
from holdfast.host.services.folder import Definition
from holdfast.host.services.processes import Process

_SET_NO_NEW_PRIVILEGES, _DROP_FROM_BOUNDING_SET = 38, 24
# CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_PTRACE, CAP_SYS_BOOT, CAP_MKNOD, CAP_SYSLOG: nothing that
# is run here has a use for them. Units of systemd are given less (`sandbox.py`): there no program
# has to have its folders moved below a root first, which takes CAP_SYS_ADMIN.
_NEVER = (16, 17, 19, 22, 27, 34)
_libc = ctypes.CDLL(None, use_errno=True)
_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


def start(
    definition: Definition, label: str, log: int, record: Callable[[Process], None]
) -> Process:
    """Starts it, its output going to `log`, and the label to all that it starts. OSError where it
    cannot be.

    The child waits until its number is on record, and ends where the one who was to write that
    has died: at no time does the program itself run without a record of it.
    """
    for folder in definition.folders:
        Path(folder).mkdir(0o755, parents=True, exist_ok=True)
    go_read, go_write = os.pipe2(os.O_CLOEXEC)
    told, tell = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.close(go_write)
            _become(definition, label, log, go_read)
        except OSError as error:
            # Too short to block, and read by whoever waits for the exec.
            os.write(tell, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(go_read)
    os.close(tell)
    try:
        process = processes.of(pid)
        if process is None:
            raise ChildProcessError("it ended before it began")
        record(process)
        os.write(go_write, b"!")
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(told)
        raise
    finally:
        os.close(go_write)
    with os.fdopen(told, "rb") as answer:
        code = answer.read()  # ends with the exec, which closes the other side
    if code:
        os.waitpid(pid, 0)
        number = int(code)
        raise OSError(number, f"{definition.argv[0]}: {os.strerror(number)}")
    return process


def _become(definition: Definition, label: str, log: int, go: int) -> None:
    os.setsid()
    # Programs inherit what the supervisor ignores.
    for number in _DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir("/")
    os.umask(0o022)
    if os.read(go, 1) != b"!":
        os._exit(127)
    _confine()
    environment = {**definition.environment, processes.LABEL: label}
    os.execve(definition.argv[0], definition.argv, environment)  # noqa: S606 (no shell)


def _confine() -> None:
    """Where it has no rights to begin with, as tried by a user, there is nothing to be dropped."""
    if _libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "privileges could be gained anew")
    for capability in _NEVER:
        _libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
