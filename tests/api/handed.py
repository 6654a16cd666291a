"""Listening sockets as a service manager holds them, and a daemon that they are handed to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from holdfast.api import sockets
from holdfast.paths import Paths
from tests.agent.daemon import Daemon

NAMES = ("holdfast.sock", "holdfast-ro.sock")  # that units hold
# What systemd does between fork and exec: the descriptors in a row from 3 on, and whose they are.
_LAUNCHER = """\
import os, sys
handed, command = sys.argv[1].split(","), sys.argv[2:]
spare = [os.dup(int(one)) for one in handed]
for number, one in enumerate(spare):
    os.dup2(one, 3 + number)
    os.set_inheritable(3 + number, True)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(command[0], command)
"""


@contextmanager
def held(root: Path, names: Sequence[str] = NAMES) -> Iterator[list[socket.socket]]:
    paths = Paths(root)
    paths.under(sockets.FOLDER).mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folder = stack.enter_context(sockets.folder(paths))
        found = []
        for name in names:
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.bind(f"{folder}/{name}")
            one.listen()
            found.append(one)
        yield found


@contextmanager
def serve(
    root: Path,
    file: Path,
    handed: Sequence[int],
    names: Sequence[str] = NAMES,
    program: str = "holdfast",
) -> Iterator[Daemon]:
    """program: a module that is run."""
    log = root / f"handed-{len(list(root.glob('handed-*')))}.log"
    command = [sys.executable, "-m", program, "--root", str(root), "serve", str(file)]
    listen = {"LISTEN_FDS": str(len(handed)), "LISTEN_FDNAMES": ":".join(names)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCHER, ",".join(map(str, handed)), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=handed,
            env={**os.environ, **listen},
        )
    try:
        yield Daemon(process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
