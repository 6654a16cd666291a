"""A firewall of 10 000 parts of which one changes: as a pass of ours, and as a file for `nft`.

    python -m benchmarks.firewall ROOT FILE

applies the body in FILE as one table and prints the seconds of the pass, from reading the file to
the recorded result, in a process that has started and has its modules loaded.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import Result, Run, compare, timed
from holdfast.engine.artifact import Artifact
from holdfast.engine.intent import Desired, Intent
from holdfast.engine.kinds.nft import nft_table
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass
from holdfast.host import process
from holdfast.host.nft import nft_ruleset
from holdfast.host.nft.nft_ruleset import Ruleset
from holdfast.paths import Paths
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger
from tests.namespace import private_namespaces

COUNT = 10_000
BAR = 1.5
_FAMILY, _NAME = "inet", "holdfast_benchmark"


def rules(count: int) -> str:
    head = "chain forward {\n    type filter hook forward priority 0; policy accept;\n"
    lines = (
        f"    ip daddr {_address(n)} tcp dport {n % 60_000 + 1} counter accept\n"
        for n in range(count)
    )
    return f"{head}{''.join(lines)}}}"


def elements(count: int) -> str:
    listed = ",\n".join(f"        {_address(n)} . {n % 60_000 + 1}" for n in range(count))
    return (
        "set open {\n    type ipv4_addr . inet_service\n"
        f"    elements = {{\n{listed}\n    }}\n}}\n"
        "chain forward {\n    type filter hook forward priority 0; policy accept;\n"
        "    ip daddr . tcp dport @open accept\n}"
    )


def _address(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def changed(body: str) -> str:
    """One part of it is another one."""
    old = _address(COUNT // 2) + " "
    if body.count(old) != 1:
        raise RuntimeError(f"{old}stands in the body {body.count(old)} times")
    return body.replace(old, "192.0.2.77 ")


def change(name: str, repeat: int, body: str) -> Result:
    return compare(
        name,
        repeat,
        lambda: _changed_by(body, _ours),
        {"nft -f": lambda: _changed_by(body, _nft)},
        bars={"nft -f": BAR},
    )


def _changed_by(body: str, how: Callable[[Path, Path], Run]) -> Run:
    """From the same firewall each time; one transaction, or it does not count."""
    with tempfile.TemporaryDirectory() as scratch, private_namespaces():
        folder = Path(scratch)
        before, after = folder / "before.nft", folder / "after.nft"
        before.write_text(body)
        after.write_text(changed(body))
        how(folder, before)
        ruleset = Ruleset(nft_ruleset.connect())
        try:
            generation = ruleset.generation()
            run = how(folder, after)
            made = ruleset.generation() - generation
        finally:
            ruleset.close()
        shown = subprocess.run(["nft", "list", "ruleset"], capture_output=True, check=True).stdout
        if made != 1 or b"192.0.2.77 " not in shown:
            raise RuntimeError(f"{made} transactions, and not the firewall that was asked for")
        return run


def _ours(folder: Path, file: Path) -> Run:
    with tempfile.TemporaryFile() as said:
        command = [sys.executable, "-m", "benchmarks.firewall", str(folder / "root"), str(file)]
        run = timed(command, cwd=Path(__file__).parent.parent, stdout=said)
        said.seek(0)
        return Run(float(said.read()), run.rss_mb)


def _nft(_folder: Path, file: Path) -> Run:
    table = f"table {_FAMILY} {_NAME}"
    whole = file.with_suffix(".whole")
    whole.write_text(f"add {table}\ndelete {table}\n{table} {{\n{file.read_text()}\n}}\n")
    return timed([process.find("nft", "nftables"), "-f", str(whole)])


def table(body: str) -> Artifact:
    return nft_table(_FAMILY, _NAME, body)


def apply(root: Path, body: str) -> None:
    desired = Desired((Intent("Benchmark/x", table(body), "x:1:1"),))
    paths = Paths(root)
    with Ledger.open(paths, command="benchmark") as ledger, drivers.of_machine(paths, 72) as host:
        report = Pass(desired, host, ledger, Policy(host.epoch), generation=1).run(lambda _: None)
    if not report.converged or report.rounds > 1:
        raise RuntimeError(f"not applied in one round: {report.failures}")


def main(root: str, file: str) -> int:
    gc.disable()  # as the command itself does
    with tempfile.TemporaryDirectory() as scratch, private_namespaces():
        apply(Path(scratch), "")
    started = time.perf_counter()
    apply(Path(root), Path(file).read_text())
    print(time.perf_counter() - started)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
