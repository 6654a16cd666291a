"""Actions carried out: taken in from parts in force, past every gate, with the journal first.

The journal says `running`, durably, before the executor is asked. If nobody brings a result within
the deadline that is written with it (the machine or the process went down), the next run asks the
executor again with the same key, which by contract does it once; the claim's new epoch keeps a
late result of the old one out. Where that may not be done any more (the policy has changed, its
part is over), the action has failed, with an outcome that is not known.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import event_kinds
from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.provider_action_policy import ProviderActionPolicy
from holdfast.runtime import event_rate
from holdfast.runtime.actions import intake, protocol
from holdfast.runtime.actions.gates import Gates, Ready
from holdfast.runtime.actions.intake import subject
from holdfast.runtime.actions.plan import DRY_RUN, UNDO, secrets
from holdfast.runtime.actions.policy import Objection
from holdfast.runtime.actions.protocol import Answer, Asked
from holdfast.runtime.actions.undo import undo_of
from holdfast.runtime.plugins import run, sandbox, sanitize
from holdfast.runtime.plugins.protocol import Nonsense
from holdfast.state.actions import APPROVED, FAILED, PENDING, RUNNING, SKIPPED, SUCCEEDED, Action
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger

# How long an executor has; longer where its plugin says so.
TIMEOUT_S = 30.0
# For its end to be seen and its result to be written.
_GRACE_S = 15.0
# Plans that were not taken in, by source: for `action list`.
REFUSED = "refused-actions"
BY_POLICY = ProviderActionPolicy.__name__
_MOST_REFUSED = 20
_ENDED = {
    SUCCEEDED: event_kinds.ACTION_SUCCEEDED,
    FAILED: event_kinds.ACTION_FAILED,
    SKIPPED: event_kinds.ACTION_SKIPPED,
}

LedgerAtHand = Callable[[], AbstractContextManager[Ledger]]
Held = tuple[Objection, ...]
View = Callable[[], Effective]  # the effective config as it is at that moment


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one action."""

    action: Action
    outcome: str  # succeeded, failed, skipped; late: somebody else had taken it over
    reason: str = ""
    answer: Answer | None = None
    held: Held = ()  # of a dry run: what keeps it from being done now


@dataclass(frozen=True, slots=True)
class Engine:
    paths: Paths
    ledger: LedgerAtHand  # for writing, held no longer than the write takes
    clock: Callable[[], float] = time.time
    timeout: float = TIMEOUT_S
    hear: Callable[[Sequence[Event]], None] = field(default=lambda _events: None)

    async def run(self, view: View, only: str = "") -> list[Done]:
        """Takes in what is proposed and executes what may be, one after the other. With `only`,
        that one alone, and Refused where it cannot be."""
        done: list[Done] = []
        while True:
            tried = frozenset(one.action.key for one in done)
            ready = await asyncio.to_thread(self._next, view(), only, tried)
            if ready is None:
                return done
            done.append(await self._execute(ready, view()))

    def idle(self, effective: Effective) -> bool:
        """Whether a run would find nothing to do, found out without holding the ledger."""
        with Ledger.read(self.paths) as ledger:
            taken = intake.take_in(effective.active, ledger.actions(), self.clock())
            if taken.put or taken.remove or _told(taken.rejected) != _noted(ledger):
                return False
            asks = self._gates(ledger, effective).asks
        return not any(
            self._due(action) or (action.state == PENDING and not asks)
            for action in taken.journal.values()
        )

    def next_deadline(self) -> float | None:
        """How many seconds until a claim that is under way now is nobody's any more."""
        with Ledger.read(self.paths) as ledger:
            under_way = [action.deadline for action in ledger.actions() if action.state == RUNNING]
        return max(0.0, min(under_way) - self.clock()) if under_way else None

    def approve(self, view: View, key: str, by: str, digest: str = "") -> Action:
        """Lets an action be executed, once, as it stands in the journal now. digest: of the plan
        that is meant, since a newer part may change it after it was looked at."""
        effective = view()
        with self.ledger() as ledger:
            action = _known(self._take_in(ledger, effective), key)
            if action.state != PENDING:
                raise Refused(f"{key} is {action.state}: there is nothing to approve")
            if digest not in ("", action.digest):
                raise Refused(
                    f"{key} is not approved: its plan has changed and is {action.digest} by now;"
                    f" look at it again: `holdfast action show {key}`"
                )
            against = [
                objection
                for objection in self._gates(ledger, effective).against(action, 0)
                if not objection.passing and not objection.dry_run_may
            ]
            if against:
                raise _refused(key, "cannot be approved", against)
            approved = replace(action, state=APPROVED, changed=self.clock(), approved_by=by)
            ledger.write_actions([approved])
            self._tell(
                ledger, [Event(event_kinds.ACTION_APPROVED, subject(key), f"approved by {by}")]
            )
        return approved

    async def dry_run(self, view: View, key: str, *, undoes: bool = False) -> Done:
        """What the executor would do, or undo. The journal stays as it is."""
        effective = view()
        ready, held = await asyncio.to_thread(self._rehearsal, effective, key, undoes)
        answer, problem = await self._ask(ready, effective, DRY_RUN)
        if answer is None:
            return Done(ready.action, FAILED, problem, held=held)
        reason = answer.error or answer.message
        return Done(ready.action, answer.status, reason, answer, held)

    async def rollback(self, view: View, key: str, by: str) -> Done:
        """Undoes an action that succeeded."""
        await asyncio.to_thread(self._prepare_undo, view(), key, by)
        return (await self.run(view, f"{key}{UNDO}"))[0]

    def _gates(self, ledger: Ledger, effective: Effective) -> Gates:
        return Gates.of(self.paths, effective, ledger, self.clock())

    def _take_in(self, ledger: Ledger, effective: Effective) -> dict[str, Action]:
        taken = intake.take_in(effective.active, ledger.actions(), self.clock())
        if taken.put or taken.remove:
            ledger.write_actions(taken.put, taken.remove)
        self._tell_of_sources(ledger, [*taken.news, *_refusals(ledger, taken.rejected)])
        return dict(taken.journal)

    def _next(self, effective: Effective, only: str, tried: frozenset[str]) -> Ready | None:
        """The next one to execute, claimed."""
        with self.ledger() as ledger:
            journal = self._take_in(ledger, effective)
            gate = self._gates(ledger, effective)
            journal |= self._settle_approvals(ledger, journal, gate)
            if only and not tried:
                return self._claim(ledger, _known(journal, only), gate, 0)
            for action in () if only else journal.values():
                if action.key in tried or not self._due(action):
                    continue
                try:
                    return self._claim(ledger, action, gate, len(tried))
                except Refused:  # others may be let through
                    continue
        return None

    def _due(self, action: Action) -> bool:
        return action.state == APPROVED or (action.state == RUNNING and self._abandoned(action))

    def _abandoned(self, action: Action) -> bool:
        """Nobody can bring its result any more. A clock that was set back must not make this
        wait for as long as it was set back."""
        now = self.clock()
        return now > action.deadline or action.changed > now + _GRACE_S

    def _settle_approvals(
        self, ledger: Ledger, journal: dict[str, Action], gate: Gates
    ) -> dict[str, Action]:
        """The policy approves where nobody has to; what it approved waits where somebody has to
        by now."""
        changed: list[Action] = []
        for action in journal.values():
            if gate.asks and action.state == APPROVED and action.approved_by == BY_POLICY:
                changed.append(replace(action, state=PENDING, approved_by=""))
            elif not gate.asks and action.state == PENDING and not gate.lasting(action):
                changed.append(replace(action, state=APPROVED, approved_by=BY_POLICY))
        if changed:
            ledger.write_actions(changed)
        said = (action for action in changed if action.state == APPROVED)
        message = f"approved by {BY_POLICY}"
        self._tell_of_sources(
            ledger,
            [
                (action.source, Event(event_kinds.ACTION_APPROVED, subject(action.key), message))
                for action in said
            ],
        )
        return {action.key: action for action in changed}

    def _claim(self, ledger: Ledger, action: Action, gate: Gates, done: int) -> Ready:
        """Refused, with every reason, where it cannot be executed now."""
        if not self._due(action):
            raise Refused(_not_due(action))
        against = gate.against(action, done)
        if against:
            lasting = [objection for objection in against if not objection.passing]
            if action.state == RUNNING and lasting:
                self._give_up(ledger, action, lasting)
            raise _refused(action.key, "is not executed", against)
        ready = gate.ready(action)
        deadline = self.clock() + self._limit(ready) + _GRACE_S
        claimed = ledger.claim_action(action, deadline)
        if claimed is None:
            raise Refused(f"{action.key} was taken by another process")
        if action.state == RUNNING:
            message = "nobody brought its result; the executor is asked again with the same key"
            self._tell(ledger, [Event(event_kinds.ACTION_RESUMED, subject(action.key), message)])
        return replace(ready, action=claimed)

    def _give_up(self, ledger: Ledger, action: Action, against: Sequence[Objection]) -> None:
        why = "; ".join(map(str, against))
        reason = f"its outcome is not known: nobody brought its result, and now {why}"
        if ledger.finish_action(action, FAILED, reason, {"unknown": True}):
            self._tell(ledger, [Event(event_kinds.ACTION_FAILED, subject(action.key), reason)])

    def _rehearsal(self, effective: Effective, key: str, undoes: bool) -> tuple[Ready, Held]:
        with Ledger.read(self.paths) as ledger:
            taken = intake.take_in(effective.active, ledger.actions(), self.clock())
            action = _known(taken.journal, key)
            if undoes:
                action = self._undo(ledger, action, "")
            gate = self._gates(ledger, effective)
            against = gate.against(action, 0)
            never = [objection for objection in against if not objection.dry_run_may]
            if never:
                raise _refused(key, "would not be undone" if undoes else "is not tried", never)
            return gate.ready(action), tuple(against)

    def _prepare_undo(self, effective: Effective, key: str, by: str) -> None:
        with self.ledger() as ledger:
            undo = self._undo(ledger, _known(self._take_in(ledger, effective), key), by)
            against = self._gates(ledger, effective).against(undo, 0)
            if against:
                raise _refused(key, "is not undone", against)
            ledger.write_actions([undo])
            self._tell(
                ledger,
                [Event(event_kinds.ACTION_APPROVED, subject(undo.key), f"asked for by {by}")],
            )

    def _undo(self, ledger: Ledger, action: Action, by: str) -> Action:
        before = ledger.action(f"{action.key}{UNDO}")
        undo = undo_of(action, before, by, self.clock())
        if before is not None and before.state == RUNNING and not self._abandoned(before):
            raise Refused(_not_due(before))
        return undo

    def _limit(self, ready: Ready) -> float:
        return max(self.timeout, float(ready.executor.spec.timeout))

    async def _ask(
        self, ready: Ready, effective: Effective, mode: str
    ) -> tuple[Answer | None, str]:
        """What the executor answers, or why that does not count."""
        action, spec = ready.action, ready.executor.spec
        # It may have to parse the startup file, which the event loop does not wait for.
        shown = await asyncio.to_thread(run.shown, spec, effective)
        asked = Asked(
            action.key,
            ready.plan,
            mode,
            self.clock(),
            action.source,
            action.generation,
            shown,
        )
        outcome = await sandbox.run(
            self.paths.under(spec.executable),
            asked.document(),
            timeout=self._limit(ready),
            environment=spec.env or {},
        )
        hidden = secrets(dict(action.plan)) | sanitize.secrets_of(spec.env)
        outcome = replace(outcome, err=sanitize.lines(outcome.err, hidden))
        if outcome.problem:
            return None, run.with_words(outcome)
        try:
            answer = protocol.read_answer(outcome.out, hidden)
        except Nonsense as error:
            return None, sanitize.line(str(error), hidden)
        # It is kept, and becomes part of the plan of an undo.
        return replace(answer, observed=sanitize.struck(dict(answer.observed), hidden)), ""

    async def _execute(self, ready: Ready, effective: Effective) -> Done:
        answer, problem = await self._ask(ready, effective, protocol.EXECUTE)
        return await asyncio.to_thread(self._finish, ready, answer, problem)

    def _finish(self, ready: Ready, answer: Answer | None, problem: str) -> Done:
        action = ready.action
        if answer is None:
            state, result = FAILED, {"unknown": True}
            reason = f"{ready.executor.id}: {problem}; whether it was done is not known"
        else:
            state, result = answer.status, answer.document()
            reason = answer.error or answer.message
        with self.ledger() as ledger:
            if not ledger.finish_action(action, state, reason, result):
                late = f"{state} came too late, and does not count: it was claimed anew meanwhile"
                self._tell(ledger, [Event(event_kinds.ACTION_LATE, subject(action.key), late)])
                return Done(action, "late", late, answer)
            events = [Event(_ENDED[state], subject(action.key), reason or str(ready.plan))]
            if action.undoes and state == SUCCEEDED:
                message = f"undone: {ready.plan}"
                events.append(
                    Event(event_kinds.ACTION_ROLLED_BACK, subject(action.undoes), message)
                )
            self._tell(ledger, events)
            finished = ledger.action(action.key)
        return Done(finished or action, state, reason, answer)

    def _tell_of_sources(self, ledger: Ledger, told: Sequence[tuple[str, Event]]) -> None:
        """What sources brought about before anything was done; of each only so much."""
        self._tell(ledger, event_rate.kept(ledger, told, self.clock()))

    def _tell(self, ledger: Ledger, events: Sequence[Event]) -> None:
        if events:
            ledger.append_events(events)
            self.hear(events)


def _known(journal: Mapping[str, Action], key: str) -> Action:
    if key not in journal:
        raise Refused(f"there is no action {key}; `holdfast action list` shows those there are")
    return journal[key]


def _not_due(action: Action) -> str:
    if action.state == PENDING:
        return f"{action.key} is not approved: `holdfast action approve {action.key}`"
    if action.state == RUNNING:
        return f"{action.key} is under way"
    more = f": {action.reason}" if action.reason else ""
    return f"{action.key} is {action.state}{more}"


def _refused(key: str, what: str, against: Sequence[Objection]) -> Refused:
    return Refused("\n".join([f"{key} {what}:", *(f"  {objection}" for objection in against)]))


def _told(rejected: Sequence[intake.Rejected]) -> dict[str, list[str]]:
    """By source."""
    found: dict[str, list[str]] = {}
    for one in rejected:
        said = found.setdefault(one.part.source, [])
        if len(said) < _MOST_REFUSED:
            said.append(str(one)[:1024])
    return found


def _noted(ledger: Ledger) -> dict[str, list[str]]:
    noted = ledger.note(REFUSED)
    if not isinstance(noted, dict):
        return {}
    return {name: [*map(str, said)] for name, said in noted.items() if isinstance(said, list)}


def _refusals(ledger: Ledger, rejected: Sequence[intake.Rejected]) -> list[tuple[str, Event]]:
    """Notes plans that were not taken in; events for those that were not known, by source."""
    found, known = _told(rejected), _noted(ledger)
    if found == known:
        return []
    ledger.put_note(REFUSED, {source: [*said] for source, said in sorted(found.items())})
    return [
        (source, Event(event_kinds.ACTION_REJECTED, source, line))
        for source, said in found.items()
        for line in said
        if line not in known.get(source, ())
    ]
