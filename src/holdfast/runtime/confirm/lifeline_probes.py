"""Lifelines while a trial waits: what stops answering takes the change back before its time.

Whoever keeps the deadline asks. What does not answer is asked again and again; only what has not
answered once for a while counts as broken, so that a lost ping takes nothing back.
"""

from __future__ import annotations

from holdfast.dataclass import dataclass
from holdfast.engine import snapshot_form
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.runtime.confirm import confirm_request, deadline, lifelines
from holdfast.runtime.confirm.lifelines import Lifeline
from holdfast.runtime.confirm.revert import Reverted, revert
from holdfast.state.confirmations import OPEN, Confirmation
from holdfast.state.ledger import Ledger

# Between one look at everything and the next.
EVERY_S = 5.0
# How long something may be silent: a gateway that is restarted, a line that comes up again.
PATIENCE_S = 15.0


@dataclass(frozen=True, slots=True)
class LifelineProbes:
    """Of one generation that waits."""

    paths: Paths
    waiting: Confirmation
    lines: tuple[Lifeline, ...]
    tag: int

    async def failing(self) -> list[str]:
        """What is broken. The deadline is not waited past."""
        grace = max(0.0, min(PATIENCE_S, deadline.remaining(self.waiting)))
        return await lifelines.failing(self.lines, self.tag, grace)

    def give_up(self, command: str, wait: float) -> Reverted | None:
        """Takes the change back, if it waits still and something is broken still. A pass may have
        been under way before, and have ended what was in the way; and somebody may have said that
        it is to be kept all the same."""
        with Ledger.open(self.paths, command=command, wait=wait) as ledger:
            now = ledger.waiting()
            if now is None or now.generation != self.waiting.generation or now.state != OPEN:
                return None
            if confirm_request.in_time(self.paths, now):
                return None
            problems = lifelines.broken(self.lines, self.tag)
            if not problems:
                return None
            return revert(self.paths, ledger, "; ".join(problems), lifelines.cause(problems))


def probing(paths: Paths, waiting: Confirmation) -> LifelineProbes:
    """Operators go home: whether the place that one came from answers is asked right after the
    change, and not for the rest of the time. The way there has to be the same throughout, or to
    work."""
    found = lifelines.from_plain(waiting.probes)
    lines = tuple(line for line in found if line.kind not in ("origin", "session"))
    if not lines:
        return LifelineProbes(paths, waiting, (), 0)
    try:
        tag = snapshot_form.unpack(waiting.reverse).tag
    except ValueError as error:
        raise LedgerError(f"{paths.ledger}: generation {waiting.generation}: {error}") from error
    return LifelineProbes(paths, waiting, lines, tag)
