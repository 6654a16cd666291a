"""One of the 10 000 elements of a firewall's set changes: a full pass."""

from __future__ import annotations

from benchmarks import firewall
from benchmarks.harness import Result


def run(repeat: int) -> Result:
    return firewall.change("firewall-change-set", repeat, firewall.elements(firewall.COUNT))
