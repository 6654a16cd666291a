"""The plan for one of 10 000 rules that changes: with what differs, and with digests alone.

    python -m benchmarks.plan_differences ROOT FILE summary|none

prints the seconds from reading the body in FILE to the text of the plan, in a process that has
started and has its modules loaded.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import firewall
from benchmarks.harness import Result, Run, compare, timed
from holdfast.engine.intent import Desired, Intent
from holdfast.paths import Paths
from holdfast.render import plan_text
from holdfast.render.style import Style
from holdfast.resources.facts import NOTHING_KNOWN
from holdfast.resources.router import Ownership, Router
from holdfast.runtime.load import Loaded
from holdfast.runtime.preview import Showing, look
from tests.namespace import private_namespaces

BAR = 1.5


def run(repeat: int) -> Result:
    with tempfile.TemporaryDirectory() as scratch, private_namespaces():
        root, file = Path(scratch) / "root", Path(scratch) / "after.nft"
        body = firewall.rules(firewall.COUNT)
        firewall.apply(root, body)
        file.write_text(firewall.changed(body))
        return compare(
            "plan-differences",
            repeat,
            lambda: _said(root, file, Showing.SUMMARY),
            {"digests": lambda: _said(root, file, Showing.NONE)},
            bars={"digests": BAR},
        )


def _said(root: Path, file: Path, showing: Showing) -> Run:
    with tempfile.TemporaryFile() as said:
        module = [sys.executable, "-m", "benchmarks.plan_differences"]
        command = [*module, str(root), str(file), showing.value]
        done = timed(command, cwd=Path(__file__).parent.parent, stdout=said)
        said.seek(0)
        return Run(float(said.read()), done.rss_mb)


def plan(root: Path, file: Path, showing: Showing) -> str:
    table = firewall.table(file.read_text())
    desired = Desired((Intent("Benchmark/x", table, "x:1:1"),))
    router = Router("benchmark", (), Ownership(), ())
    loaded = Loaded(file, router, str(root), NOTHING_KNOWN, desired)
    seen = look(Paths(root), loaded, differences=showing)
    return "\n".join(plan_text.plan(seen.plan, Style(colour=False), seen.differences))


def main(root: str, file: str, shown: str) -> int:
    gc.disable()  # as the command itself does
    showing = Showing(shown)
    with tempfile.TemporaryDirectory() as scratch, private_namespaces():
        small, other = Path(scratch), Path(scratch) / "other.nft"
        firewall.apply(small, "")
        other.write_text(firewall.rules(1))
        plan(small, other, showing)
    started = time.perf_counter()
    text = plan(Path(root), Path(file), showing)
    print(time.perf_counter() - started)
    if ("192.0.2.77" in text) is not (showing is Showing.SUMMARY):
        raise RuntimeError(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
