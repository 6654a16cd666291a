"""The pass over 100 000 own routes again, with nothing to do."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import routes
from benchmarks.harness import Result, Run, apply, compare, one_pass, router, timed

COUNT = 100_000


def run(repeat: int) -> Result:
    with tempfile.TemporaryDirectory() as scratch, router(address=False):
        folder = Path(scratch)
        file = routes.router_file(folder, COUNT)
        root = folder / "root"
        apply(root, file)

        def ip_show() -> Run:
            with (folder / "routes.json").open("wb") as out:
                return timed(["ip", "-j", "route", "show"], stdout=out)

        return compare(
            "routes-noop",
            repeat,
            lambda: one_pass(root, file),
            {"ip -j route show": ip_show},
            command=lambda: apply(root, file),
            bars={"ip -j route show": 2.0},
        )
