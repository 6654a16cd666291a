"""From the outcomes of single probes to a verdict that does not flap."""

from __future__ import annotations

from holdfast.dataclass import dataclass, field
from holdfast.resources.facts import Verdict


@dataclass(slots=True)
class Judge:
    """A verdict changes when enough probes in a row speak against it. The first verdict needs as
    many as any other; until then there is none."""

    healthy_threshold: int
    unhealthy_threshold: int
    verdict: Verdict | None = None
    _row: int = field(default=0, init=False)  # how many in a row, below zero for failures

    def hear(self, problem: str) -> bool:
        """One outcome: empty for an answer, else what went wrong. True if the verdict changed."""
        if problem:
            self._row = min(self._row, 0) - 1
            if -self._row < self.unhealthy_threshold:
                return False
            return self._say(False, f"{_times(self.unhealthy_threshold)}: {problem}")
        self._row = max(self._row, 0) + 1
        if self._row < self.healthy_threshold:
            return False
        return self._say(True, f"answered {_times(self.healthy_threshold)}")

    def _say(self, healthy: bool, reason: str) -> bool:
        """The reason holds no count that goes on: with it, every probe would be news."""
        changed = self.verdict is None or self.verdict.healthy is not healthy
        self.verdict = Verdict(healthy, reason)
        return changed


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times in a row"
