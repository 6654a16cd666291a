"""One of the 10 000 rules of a firewall changes: a full pass."""

from __future__ import annotations

from benchmarks import firewall
from benchmarks.harness import Result


def run(repeat: int) -> Result:
    return firewall.change("firewall-change", repeat, firewall.rules(firewall.COUNT))
