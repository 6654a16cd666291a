"""What is counted of routing control. Labels come from the startup file and the schema alone."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from holdfast.dataclass import dataclass, field
from holdfast.runtime.routes import documents

# As clients of the original's metrics know them: seconds, and no more than so many.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
# The label of calls of an owner that does not exist.
UNKNOWN = "unknown"
_TYPES = {
    documents.PEER: "peer",
    documents.PREFIX: "prefix",
    documents.OSPF_PREFIX: "prefix",
    documents.BFD: "bfd",
    documents.OSPF: "ospf",
    documents.INSTANCE: "bgp_config",
}


@dataclass(slots=True)
class Durations:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Each with all that were shorter."""
        found, below = [], 0
        for most, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            below += count
            found.append((most, float(below)))
        return found


@dataclass(slots=True)
class Tally:
    """Since the daemon started. Written on the event loop, read by whoever asks for metrics."""

    intents: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    violations: Counter[tuple[str, str]] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    calls: dict[str, Durations] = field(default_factory=dict)
    # Told by the driver of FRR, and by the loop.
    transactions: Counter[str] = field(default_factory=Counter)
    transaction_seconds: Durations = field(default_factory=Durations)
    monitoring_errors: Counter[str] = field(default_factory=Counter)
    pass_seconds: Durations = field(default_factory=Durations)

    def intent(self, owner: str, kind: str, operation: str) -> None:
        self.intents[owner, _TYPES[kind], operation] += 1

    def violation(self, owner: str, reason: str) -> None:
        self.violations[owner or UNKNOWN, reason] += 1

    def call(self, method: str, seconds: float) -> None:
        self.calls.setdefault(method, Durations()).add(seconds)
