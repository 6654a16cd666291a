"""What `--confirm-within` adds to a pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.terminal import say
from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.engine.drivers import Drivers
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Plan
from holdfast.runtime import operators
from holdfast.runtime.confirm import deadline, deadline_process, lifelines, revert
from holdfast.runtime.confirm import trial as confirm
from holdfast.runtime.confirm.lifelines import Lifeline
from holdfast.runtime.load import Loaded
from holdfast.state.confirmations import Confirmation
from holdfast.state.ledger import Ledger

if TYPE_CHECKING:
    from holdfast.cli.run import Request


@dataclass(slots=True)
class Confirming:
    request: Request
    loaded: Loaded
    served: Path | None  # the file of a daemon that runs
    waiting: Confirmation | None = None
    _lines: Sequence[Lifeline] = field(init=False)

    def __post_init__(self) -> None:
        router, paths = self.loaded.router, self.request.paths
        if self.served is not None:
            confirm.refuse_misplaced(router, self.served, paths.root)
        came_in = operators.operator(operators.ancestral())
        self._lines = lifelines.working(lifelines.of(router, came_in), router.ownership.tag)

    def ahead(
        self, ledger: Ledger, host: Drivers, generation: Callable[[], int]
    ) -> Callable[[Mapping[Key, Claim], Observed, Plan], None]:
        loaded, paths = self.loaded, self.request.paths
        served = self.served or loaded.path
        ground = confirm.ground(ledger, paths, loaded.router, served)
        candidate = confirm.Candidate(
            paths,
            loaded.router,
            loaded.path,
            self.request.confirm_within,
            self._lines,
            self.served,
            lambda generation: deadline_process.start(paths, generation),
            self._opened,
            lambda warning: say([f"warning: {warning}"], sys.stderr),
        )

        def keep(claims: Mapping[Key, Claim], observed: Observed, plan: Plan) -> None:
            candidate.keep(ledger, host, ground, generation(), (claims, observed, plan))

        return keep

    def judge(self) -> bool:
        """After the pass: what worked before has to work now. False where all was taken back."""
        waiting = self.waiting
        if waiting is None:
            say(["Nothing waits to be confirmed: no other configuration than before."], sys.stderr)
            return True
        problems = lifelines.broken(self._lines, self.loaded.router.ownership.tag)
        if problems:
            say(
                [f"What worked before does not any more: {problem}" for problem in problems]
                + [_taken_back(self.request, problems)],
                sys.stderr,
            )
            return False
        if self._lines:
            say([f"Still works: {', '.join(map(str, self._lines))}."], sys.stderr)
        self.say_waits()
        return True

    def say_waits(self) -> None:
        """Also where the pass ended in the middle: nobody else tells."""
        waiting = self.waiting
        if waiting is not None:
            say(
                [
                    f"Generation {waiting.generation} waits until {deadline.until(waiting)} to be"
                    " confirmed with `holdfast confirm`; else everything goes back to what it was."
                ],
                sys.stderr,
            )

    def _opened(self, waiting: Confirmation) -> None:
        self.waiting = waiting


def _taken_back(request: Request, problems: Sequence[str]) -> str:
    with Ledger.open(request.paths, command=request.command, wait=request.wait) as ledger:
        cause = lifelines.cause(problems)
        done = revert.revert(request.paths, ledger, "; ".join(problems), cause)
    return done.told() if done is not None else "it was reverted meanwhile"
