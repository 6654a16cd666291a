"""One pass in a process that has started: what a running program pays for `apply`.

    python -m benchmarks.one_pass ROOT FILE

Prints the seconds from reading the file to the recorded result. Modules are loaded by a `plan` of
a file that declares nothing but the link, in a network namespace of its own: there it is another
installation. The pass timed is the command itself, output and all.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.routes import CONFIG
from holdfast.cli import main as command_line

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_NETWORK = 0x40000000


def main(root: str, file: str) -> int:
    gc.disable()  # as the command itself does
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        warm_up = Path(scratch) / "router.yaml"
        warm_up.write_text(CONFIG.replace("file: routes.txt", "routes: []"))
        here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        _libc.unshare(_NEW_NETWORK)
        command_line.run(["--root", scratch, "plan", str(warm_up)])
        command_line.run(["--root", scratch, "apply", str(warm_up), "--dry-run"])
        _libc.setns(here, _NEW_NETWORK)
        started = time.perf_counter()
        status = command_line.run(["--root", root, "apply", file, "--yes"])
        seconds = time.perf_counter() - started
    print(seconds)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
