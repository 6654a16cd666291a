"""Runs `holdfast` commands without starting an interpreter for each.

An interpreter and its imports take longer than most commands do. This process imports all of
Holdfast once, and nothing of the tests; then it forks for every command it is asked for. The
command runs in a process of its own, in the namespaces, the folder and the environment of the
caller, and with the caller's streams.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import IO, Any, NoReturn

import holdfast

_PR_SET_NAME = 15
_NAMESPACES = ("net", "uts", "mnt")
_TIMEOUT_S = 180.0
_libc = ctypes.CDLL(None, use_errno=True)


def run(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    streams: Sequence[IO[Any]],
) -> int:
    """The exit code of `holdfast WORDS`, as `subprocess` has it. streams: stdin, stdout, stderr."""
    spaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in _NAMESPACES]
    mask = os.umask(0)
    os.umask(mask)
    request = {
        "words": list(words),
        "folder": str(folder),
        "environment": dict(environment),
        "umask": mask,
    }
    ours, theirs = socket.socketpair()
    try:
        with ours:
            with theirs:
                handed = [theirs.fileno(), *(stream.fileno() for stream in streams), *spaces]
                socket.send_fds(_server(os.getpid()), [b"."], handed)
            ours.settimeout(_TIMEOUT_S)
            ours.sendall(json.dumps(request).encode())
            ours.shutdown(socket.SHUT_WR)
            answer = ours.recv(16)
    finally:
        for descriptor in spaces:
            os.close(descriptor)
    if not answer:
        raise AssertionError(f"the process that runs commands ended: {words}")
    return int(answer)


@cache
def _server(_pid: int) -> socket.socket:
    """One for each process that asks: it ends with that process, whose end of the pair it is."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, "-m", "tests.command_server", str(theirs.fileno())],
            cwd=Path(__file__).parents[1],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        ).returncode = 0  # it is not waited for
    return ours


def _serve(asked: socket.socket) -> None:
    """Until whoever asks is gone."""
    for module in walk_packages(holdfast.__path__, "holdfast."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.disable()  # as every command does
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        said, descriptors, _, _ = socket.recv_fds(asked, 1, 1 + 3 + len(_NAMESPACES))
        if not said:
            return
        if os.fork() == 0:
            asked.close()
            _tell_outcome(socket.socket(fileno=descriptors[0]), descriptors[1:])
        for descriptor in descriptors:
            os.close(descriptor)


def _tell_outcome(caller: socket.socket, descriptors: list[int]) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with caller.makefile("rb") as stream:
        request = json.load(stream)
    pid = os.fork()
    if pid == 0:
        caller.close()
        _become_command(request, descriptors[:3], descriptors[3:])
    for descriptor in descriptors:
        os.close(descriptor)
    caller.sendall(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _become_command(request: Any, streams: list[int], spaces: list[int]) -> NoReturn:
    _libc.prctl(_PR_SET_NAME, b"holdfast", 0, 0, 0)
    for name, descriptor in zip(_NAMESPACES, spaces, strict=True):
        if not os.path.sameopenfile(descriptor, _opened(name)) and _libc.setns(descriptor, 0):
            os._exit(os.EX_OSERR)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, max(*streams, *spaces) + 2)
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["holdfast", *request["words"]]
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1)
    from holdfast.__main__ import main

    code: Any = 1
    try:
        code = main()
    except SystemExit as asked:
        code = asked.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _opened(name: str) -> int:
    return os.open(f"/proc/self/ns/{name}", os.O_RDONLY)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
