"""One pass in a process that has started: what a running program pays for `apply`.

    python -m benchmarks.one_pass ROOT FILE

Prints the seconds from reading the file to the recorded result. Modules are loaded by a `plan` of
a file that declares nothing but the link; the pass timed is the command itself, output and all.
"""

from __future__ import annotations

import contextlib
import gc
import io
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.routes import CONFIG
from holdfast.cli import main as command_line


def main(root: str, file: str) -> int:
    gc.disable()  # as the command itself does
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        warm_up = Path(scratch) / "router.yaml"
        warm_up.write_text(CONFIG.replace("file: routes.txt", "routes: []"))
        command_line.run(["--root", scratch, "plan", str(warm_up)])
        command_line.run(["--root", scratch, "apply", str(warm_up), "--dry-run"])
        started = time.perf_counter()
        status = command_line.run(["--root", root, "apply", file, "--yes"])
        seconds = time.perf_counter() - started
    print(seconds)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
