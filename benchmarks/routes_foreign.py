"""100 own routes among 1 000 000 of another program: a pass with nothing to do."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import routes
from benchmarks.harness import Result, Run, apply, compare, one_pass, router, timed

OWN, FOREIGN = 100, 1_000_000
_FOREIGN_PROTOCOL = 99


def run(repeat: int) -> Result:
    with tempfile.TemporaryDirectory() as scratch, router(address=False):
        folder = Path(scratch)
        file = routes.router_file(folder, OWN)
        root = folder / "root"
        apply(root, file)
        routes.fill_foreign(FOREIGN, _FOREIGN_PROTOCOL, skip=OWN)

        def ip_show() -> Run:
            with (folder / "routes.out").open("wb") as out:
                return timed(["ip", "route", "show", "proto", "72"], stdout=out)

        return compare(
            "routes-foreign",
            repeat,
            lambda: one_pass(root, file),
            {"ip route show proto 72": ip_show},
            command=lambda: apply(root, file),
            bars={"ip route show proto 72": 2.0},
        )
