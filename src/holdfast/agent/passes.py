"""One pass as the daemon runs it: nobody is asked, and what is refused is only said."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass

from holdfast.engine.intent import Desired
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.errors import LedgerError, Refused
from holdfast.host.host import LinuxHost
from holdfast.paths import Paths
from holdfast.resources.router import Router
from holdfast.state import journal
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger

# A command that holds the ledger is waited for: its pass is as good as ours.
_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Done:
    report: Report
    generation: int
    events: tuple[Event, ...]


def run(paths: Paths, router: Router, desired: Desired) -> Done:
    """Raises Refused, LedgerError or DriverError; what was half done is for the next pass."""
    with (
        Ledger.open(paths, command="holdfast serve", wait=_WAIT_S) as ledger,
        LinuxHost(paths, router.ownership.tag) as host,
    ):
        policy = Policy(
            epoch=host.epoch,
            max_delete_share=router.ownership.max_delete_share,
            doubt=router.doubt,
        )
        work = Pass(
            desired,
            host,
            ledger,
            policy,
            nonce=lambda: str(secrets.randbelow(2**31 - 1) + 1),
        )

        def approve(plan: Plan) -> None:
            if plan.refusal:
                raise Refused(plan.refusal)
            work.generation = ledger.begin_generation(router.files)

        try:
            report = work.run(approve)
        except BaseException:
            if work.generation:
                with suppress(LedgerError):
                    ledger.finish_generation(work.generation, "failed")
            raise
        events = journal.record(ledger, report, work.generation)
        return Done(report, work.generation, tuple(events))
