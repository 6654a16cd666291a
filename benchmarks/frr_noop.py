"""Nothing to do for 10 000 prefixes and 200 peers; beside frr-reload.py and a read by vtysh."""

from __future__ import annotations

from benchmarks.frr_scene import (
    COUNT,
    INSTANCE,
    PEER,
    VERSION,
    elapsed,
    frr_reload,
    networks,
    scene,
    unreachable_peers,
    vtysh,
)
from benchmarks.harness import Result, Run, compare
from holdfast.engine.artifact import Artifact, Batch

_PEERS = 200
BARS = {"frr-reload.py": 0.1, "vtysh show running-config": 2.0}


def run(repeat: int) -> Result:
    with scene() as made:
        declared: list[Artifact | Batch] = [
            INSTANCE,
            PEER,
            *unreachable_peers(_PEERS),
            networks(COUNT),
        ]
        made.settle(*declared)
        wanted = made.frr.vtysh("show running-config").partition("!\n")[2]

        def ours() -> Run:
            left = []
            run = elapsed(lambda: left.append(made.drive.plan(*declared)))
            if left[0].changes:
                raise RuntimeError(f"there is something to do: {left[0].changes[0]}")
            return run

        return compare(
            "frr-noop",
            repeat,
            ours,
            {
                "frr-reload.py": lambda: frr_reload(made.frr, wanted, "--test"),
                "vtysh show running-config": lambda: vtysh(made.frr, "-c", "show running-config"),
            },
            bars=BARS,
            notes={"FRR": VERSION},
        )
