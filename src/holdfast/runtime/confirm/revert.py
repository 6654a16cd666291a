"""The revert: a pass with the state before in the place of a configuration."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence

from holdfast.dataclass import dataclass, replace
from holdfast.engine import event_kinds, planner, snapshot, snapshot_form
from holdfast.engine.artifact import Batch, Key
from holdfast.engine.claim import Claim
from holdfast.engine.difference import Differences
from holdfast.engine.drivers import Drivers
from holdfast.engine.intent import Desired
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report, scope
from holdfast.engine.snapshot import Snapshot
from holdfast.errors import LedgerError, Refused
from holdfast.host.epoch import read_epoch
from holdfast.paths import Paths
from holdfast.runtime import drivers
from holdfast.runtime.confirm import restore_others
from holdfast.runtime.confirm.restore_others import OthersLosses
from holdfast.runtime.preview import Showing
from holdfast.state import journal
from holdfast.state.confirmations import OPEN, Confirmation
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from holdfast.state.values import JSON

_SHOWN = 10
# Attempts, whoever makes them; after the last one what is left is said, and left.
MOST_TRIES = 6
_TRIES = "revert-tries"
_CAUSE = "revert-cause"
# What led to it, for programs to read.
DEADLINE, REBOOT, ASKED, LIFELINE, OPERATOR = "deadline", "reboot", "asked", "lifeline", "operator"
# What putting back others' things takes of ours, or gives to it, settles in the second round.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Reverted:
    generation: int
    before: int
    reason: str
    finished: bool  # False: to be tried again
    left: tuple[str, ...] = ()  # what could not be brought back

    def told(self) -> str:
        """For people to read."""
        what = "was reverted" if self.finished else "is not wholly reverted yet"
        return f"generation {self.generation} {what}: {_told(self.reason, self.left)}"


def revert(
    paths: Paths, ledger: Ledger, reason: str, cause: str = "", *, last: bool = False
) -> Reverted | None:
    """Back to what was before the generation that waits; None where none does.

    reason, cause: used unless the revert was begun already. last: it is over after this, whatever
    is left.
    """
    waiting = ledger.waiting()
    if waiting is None:
        return None
    if waiting.state == OPEN:
        ledger.start_revert(waiting.generation, reason)
        waiting = replace(waiting, reason=reason)
        ledger.put_note(_CAUSE, {"generation": waiting.generation, "cause": cause})
    last = last or _tries(ledger, waiting.generation) >= MOST_TRIES
    epoch = read_epoch()
    before = _unpacked(paths, waiting)
    try:
        others = restore_others.of(before, same_boot=before.boot == epoch.partition("/")[0])
    except ValueError as error:
        raise LedgerError(f"{paths.ledger}: generation {waiting.generation}: {error}") from error
    with drivers.of_machine(paths, before.tag, recorded=others.unchanged()) as host:
        wanted = snapshot.desired(before, ledger.claims(), host.epoch)
        reports = list(_run(ledger, host, wanted, waiting, others))
        after, now = reports[-1].after, ledger.claims()
        left = (*_left(wanted, now, after), *others.failed)
        # What fails may succeed the next time. What somebody else holds by now needs a person, and
        # so does what others lost and cannot have back.
        undone = [op for op in after.changes if not KINDS[op.kind].runs]
        finished = last or not (undone or after.unknown)
        events = [event for report in reports for event in journal.happened(report, waiting.before)]
        events += others.events(waiting.generation, waiting.before)
        if finished:
            put, remove = snapshot.claims_after(before, wanted, now, after, host.epoch)
            ledger.finish_revert(waiting, put, remove)
            events.append(_event(waiting, left, _cause(ledger, waiting.generation)))
    ledger.append_events(events)
    return Reverted(waiting.generation, waiting.before, waiting.reason, finished, left)


def preview(paths: Paths, ledger: Ledger, showing: Showing) -> tuple[Plan, Differences] | None:
    """What a revert would do to what is ours now; None where nothing waits."""
    waiting = ledger.waiting()
    if waiting is None:
        return None
    before = _unpacked(paths, waiting)
    others = restore_others.of(before, same_boot=before.boot == read_epoch().partition("/")[0])
    with drivers.of_machine(paths, before.tag, recorded=others.unchanged()) as host:
        claims = ledger.claims()
        wanted = snapshot.desired(before, claims, host.epoch)
        observed = host.observe(scope(wanted, claims, ledger.remembered()))
        made = planner.plan(wanted, observed, claims, _policy(host))
        return made, showing.read(host, made)


def _unpacked(paths: Paths, waiting: Confirmation) -> Snapshot:
    try:
        return snapshot_form.unpack(waiting.reverse)
    except ValueError as error:
        raise LedgerError(f"{paths.ledger}: generation {waiting.generation}: {error}") from error


def _policy(host: Drivers) -> Policy:
    # What goes was made since; the share of it says nothing about an accident.
    return Policy(epoch=host.epoch, allow_mass_delete=True)


def _tries(ledger: Ledger, generation: int) -> int:
    """How often this was tried before, whoever did. It is counted before it is tried, so that one
    that ends the process every time comes to an end, too."""
    said = ledger.note(_TRIES)
    known = said if isinstance(said, dict) and said.get("generation") == generation else {}
    tries = int(str(known.get("tries", 0)))
    ledger.put_note(_TRIES, {"generation": generation, "tries": tries + 1})
    return tries


def _run(
    ledger: Ledger, host: Drivers, wanted: Desired, waiting: Confirmation, others: OthersLosses
) -> Iterator[Report]:
    """Ours, then what others lost. What that took of ours, or brought, is seen to again."""
    for _ in range(_ROUNDS):
        yield _pass(ledger, host, wanted, waiting)
        if not others.put_back():
            return


def _pass(ledger: Ledger, host: Drivers, wanted: Desired, waiting: Confirmation) -> Report:
    work = Pass(
        wanted,
        host,
        ledger,
        _policy(host),
        generation=waiting.before,
        nonce=lambda: str(secrets.randbelow(2**31 - 1) + 1),
    )

    def approve(plan: Plan) -> None:
        if plan.refusal:
            raise Refused(f"generation {waiting.generation} is not reverted: {plan.refusal}")

    return work.run(approve)


def _left(wanted: Desired, now: Mapping[Key, Claim], plan: Plan) -> Iterator[str]:
    for kind, why in plan.unknown:
        yield f"{kind} could not be observed: {why}"
    for operation in plan.changes:
        if isinstance(operation.subject, Batch):
            first = operation.subject.artifact(operation.subject.keys[0]).key
            more = f" and {operation.count - 1} more" if operation.count > 1 else ""
            yield f"{operation.verb} {first}{more}"
        elif KINDS[operation.kind].runs:
            yield f"{operation.subject.key} does not run"
    for key, why in snapshot.stuck_at(wanted, now, plan):
        yield f"{key}: {why}"


def _told(reason: str, left: Sequence[str]) -> str:
    """No more of what is left than can be read: there may be a hundred thousand routes."""
    if not left:
        return reason
    more = f"; and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return f"{reason}; not brought back: {'; '.join(left[:_SHOWN])}{more}"


def _cause(ledger: Ledger, generation: int) -> str:
    """As whoever began it said: another may have gone on with it."""
    said = ledger.note(_CAUSE)
    known = isinstance(said, dict) and said.get("generation") == generation
    return str(said["cause"]) if known and isinstance(said, dict) else ""


def _event(waiting: Confirmation, left: Sequence[str], cause: str) -> Event:
    data: dict[str, JSON] = {"cause": cause}
    if left:
        data["left"] = list(left)
    subject = f"generation {waiting.generation}"
    return Event(event_kinds.REVERTED, subject, _told(waiting.reason, left), waiting.before, data)
