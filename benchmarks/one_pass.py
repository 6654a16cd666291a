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

from holdfast.cli import main as command_line

_NOTHING = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: warm-up}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: wan}
      spec: {ifname: wan, managed: false}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: wan}
      spec: {interface: wan, address: 192.0.2.1/24}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: RouteList
      metadata: {name: routes}
      spec: {routes: []}
"""


def main(root: str, file: str) -> int:
    gc.disable()  # as the command itself does
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        warm_up = Path(scratch) / "router.yaml"
        warm_up.write_text(_NOTHING)
        command_line.run(["--root", scratch, "plan", str(warm_up)])
        command_line.run(["--root", scratch, "apply", str(warm_up), "--dry-run"])
        started = time.perf_counter()
        status = command_line.run(["--root", root, "apply", file, "--yes"])
        seconds = time.perf_counter() - started
    print(seconds)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
