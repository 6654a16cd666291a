"""1 000 of 10 000 prefixes withdrawn, until a neighbour has none of them; beside frr-reload.py."""

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
)
from benchmarks.harness import Result, Run, compare

BAR = 1 / 50
_GONE = 1_000


def run(repeat: int) -> Result:
    with scene() as made:
        whole, fewer = networks(COUNT), networks(COUNT - _GONE)

        def fill() -> None:
            made.settle(INSTANCE, PEER, whole)
            made.wait_for(COUNT)

        fill()
        made.settle(INSTANCE, PEER, fewer)
        wanted = made.frr.vtysh("show running-config").partition("!\n")[2]

        def ours() -> Run:
            fill()

            def work() -> None:
                made.settle(INSTANCE, PEER, fewer)
                made.wait_for(COUNT - _GONE)

            return elapsed(work)

        def theirs() -> Run:
            fill()

            def work() -> None:
                frr_reload(made.frr, wanted, "--reload")
                made.wait_for(COUNT - _GONE)

            return elapsed(work)

        # One of theirs takes a minute or two.
        return compare(
            "frr-withdraw",
            min(repeat, 1),
            ours,
            {"frr-reload.py": theirs},
            bars={"frr-reload.py": BAR},
            notes={"FRR": VERSION},
        )
