"""Plans of the parts in force against the journal: what is new, what is back, what is over. Pure.

- A key that the journal does not know is a new action, and pending.
- One that is pending or approved follows its plan: a changed plan has to be approved again. Once no
  part in force proposes it any more, it is skipped.
- One that failed or was skipped is pending again when its plan has changed, or when a newer
  generation still proposes it and some time has passed: the source has looked again and wants it
  still. An approval counts for one attempt.
- One that succeeded or was rolled back is done. The same key with another plan is rejected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from holdfast.config.part import Part, Raw
from holdfast.dataclass import dataclass, replace
from holdfast.engine import event_kinds
from holdfast.engine.event_kinds import EventKind
from holdfast.runtime.actions.plan import UNDO, ActionPlan, UnfitError, name_of, read_proposed
from holdfast.state import defaults
from holdfast.state.actions import APPROVED, FAILED, PENDING, SKIPPED, Action
from holdfast.state.events import Event

OVER = "no part in force proposes it any more"
# A part with more of them is no proposal that anybody could approve.
MOST_PLANS = 100
_MOST_EVENTS = 10  # of a kind and a source at once; more are told of together
# What failed is tried again no sooner than this, and twice as late each time.
_PAUSE_S, _MOST_PAUSE_S = 30.0, 3600.0


@dataclass(frozen=True, slots=True)
class Proposed:
    part: Part
    raw: Raw
    plan: ActionPlan


@dataclass(frozen=True, slots=True)
class Rejected:
    part: Part
    name: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class Taken:
    journal: Mapping[str, Action]  # as it is from now on
    put: tuple[Action, ...]  # what of it is new or other
    remove: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    news: tuple[tuple[str, Event], ...]  # each with the source that caused it


def take_in(active: Iterable[Part], journal: Sequence[Action], now: float) -> Taken:
    """active: the parts in force, in their order."""
    proposed, rejected = _proposals(part for part in active if not part.expired(now))
    known = {action.key: action for action in journal}
    put: dict[str, Action] = {}
    news: list[tuple[str, Event]] = []  # with the source
    for key, one in proposed.items():
        action = known.get(key)
        objection = _objection(one, action)
        if objection:
            rejected.append(Rejected(one.part, one.plan.name, (objection,)))
            continue
        now_is = _followed(key, one, action, now)
        if now_is is not None and now_is != action:
            put[key] = now_is
            news += ((one.part.source, event) for event in _news(now_is, one.plan, action))
    for action in journal:
        waits = action.state in (PENDING, APPROVED) and not action.undoes
        if waits and action.key not in proposed:
            put[action.key] = replace(action, state=SKIPPED, changed=now, reason=OVER)
            news.append(
                (action.source, Event(event_kinds.ACTION_SKIPPED, subject(action.key), OVER))
            )
    remove = tuple(_outdated(known | put, proposed))
    kept = {key: action for key, action in (known | put).items() if key not in remove}
    return Taken(kept, tuple(put.values()), remove, tuple(rejected), tuple(_gathered(news)))


def _gathered(news: Iterable[tuple[str, Event]]) -> Iterator[tuple[str, Event]]:
    """A source that proposes other things every second shall not drive out all other events."""
    by_source: dict[tuple[str, EventKind], list[Event]] = defaultdict(list)
    for source, event in news:
        by_source[source, event.kind].append(event)
    for (source, kind), events in by_source.items():
        if len(events) <= _MOST_EVENTS:
            yield from ((source, event) for event in events)
        else:
            message = f"{len(events)} actions at once: `holdfast action list` shows them"
            yield source, Event(kind, source, message)


def subject(key: str) -> str:
    return f"Action/{key}"


def _proposals(parts: Iterable[Part]) -> tuple[dict[str, Proposed], list[Rejected]]:
    found: dict[str, Proposed] = {}
    rejected: list[Rejected] = []
    for part in parts:
        for number, raw in enumerate(part.action_plans):
            name = name_of(raw)
            if number == MOST_PLANS:
                reason = f"{len(part.action_plans)} plans in a part, more than {MOST_PLANS}"
                rejected.append(Rejected(part, name, (reason,)))
                break
            try:
                key, plan = read_proposed(raw)
            except UnfitError as error:
                rejected.append(Rejected(part, name, error.reasons))
                continue
            if key in found:
                first = found[key]
                reason = f"idempotencyKey: is that of {first.plan.name} of {first.part.source}"
                rejected.append(Rejected(part, name, (reason,)))
                continue
            found[key] = Proposed(part, raw, plan)
    return found, rejected


def _objection(proposed: Proposed, action: Action | None) -> str:
    if action is None or not action.decided or action.state in (FAILED, SKIPPED):
        return ""
    if dict(action.plan) == dict(proposed.raw):
        return ""
    return f"idempotencyKey: another plan with it is {action.state}; a new action needs a new key"


def _followed(key: str, proposed: Proposed, action: Action | None, now: float) -> Action | None:
    """The action as it is with this proposal; None where that makes no difference."""
    part = proposed.part
    if action is None:
        return Action(key, part.source, part.generation, PENDING, now, now, proposed.raw)
    changed = dict(action.plan) != dict(proposed.raw)
    newer = (part.source, part.generation) != (action.source, action.generation)
    again = replace(
        action,
        source=part.source,
        generation=part.generation,
        state=PENDING,
        changed=now,
        plan=proposed.raw,
        approved_by="",
        reason="",
        result={},
    )
    if action.state in (PENDING, APPROVED):
        if changed:
            return again
        return replace(action, source=part.source, generation=part.generation)
    if action.state in (FAILED, SKIPPED):
        # Its executor did not answer that: no part proposed it for a while.
        back = action.state == SKIPPED and not action.result
        if changed or back or (newer and now >= action.changed + _pause(action.epoch)):
            return again
    return None


def _pause(attempts: int) -> float:
    return min(_PAUSE_S * 2.0 ** min(max(attempts - 1, 0), 16), _MOST_PAUSE_S)


def _news(action: Action, plan: ActionPlan, before: Action | None) -> Iterator[Event]:
    if before is not None and action.state == before.state and action.plan == before.plan:
        return  # the same proposal of a newer generation
    how = "proposes" if before is None else "proposes again"
    yield Event(
        event_kinds.ACTION_PROPOSED,
        subject(action.key),
        f"{action.source} {how}: {plan}",
        0,
        {"name": plan.name, "risk": plan.risk_level or ""},
    )


def _outdated(journal: Mapping[str, Action], proposed: Mapping[str, Proposed]) -> Iterator[str]:
    """Decided ones that lie too far back in their source; an undo goes with what it undoes."""
    kept: dict[str, int] = defaultdict(int)
    for action in sorted(journal.values(), key=lambda action: action.changed, reverse=True):
        if action.undoes or not action.decided or action.key in proposed:
            continue
        kept[action.source] += 1
        undo = journal.get(f"{action.key}{UNDO}")
        if kept[action.source] > defaults.KEEP_ACTIONS and (undo is None or undo.decided):
            yield action.key
            if undo is not None:
                yield undo.key
