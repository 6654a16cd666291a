"""1 000 single prefixes, each confirmed in FRR before the next; beside a `vtysh` a prefix."""

from __future__ import annotations

from benchmarks.frr_scene import VERSION, elapsed, networks, scene, vtysh
from benchmarks.harness import Result, Run, compare
from holdfast.engine.plan import Operation, Verb

BAR = 1 / 25
_COUNT = 1_000
_BY_HAND = 20  # of them; the time of all is worked out from these


def _ours() -> Run:
    with scene() as made:

        def work() -> None:
            for number in range(_COUNT):
                operation = Operation(Verb.CREATE, networks(1, number), ("bench",), "")
                (result,) = made.drive.driver.apply([operation], lambda _count: None)
                if not result.ok:
                    raise RuntimeError(result.failures[0].error)

        return elapsed(work)


def _vtysh() -> Run:
    with scene() as made:
        seconds = 0.0
        inside = ("-c", "configure terminal", "-c", "router bgp 65001")
        for number in range(_BY_HAND):
            told = f"network 10.0.{number}.0/24"
            family = ("-c", "address-family ipv4 unicast", "-c", told)
            seconds += vtysh(made.frr, *inside, *family).seconds
        return Run(seconds * _COUNT / _BY_HAND)


def run(repeat: int) -> Result:
    peers = {"a vtysh a prefix": _vtysh}
    return compare(
        "frr-singles",
        repeat,
        _ours,
        peers,
        bars={"a vtysh a prefix": BAR},
        notes={"FRR": VERSION},
    )
