"""A partial pass comes to what a full one would, for what it looks at, and takes nothing away."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import partial_pass
from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Scope
from holdfast.engine.intent import Desired, Intent
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import Observed
from holdfast.engine.partial_pass import (
    FullPassNeeded,
    PartialPass,
    PassContext,
    Touched,
    context_after,
    joined,
    touch,
)
from holdfast.engine.plan import AWAITED, Operation, Plan, Verb
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, scope
from tests.engine import case_files
from tests.engine.memory_host import TAGGED, MemoryHost, MemoryLedger, Object, Route
from tests.engine.universe import PREFIXES, artifacts, desired, hosts, templates, waiting

POLICY = Policy(epoch="this boot", allow_mass_delete=True)
WHOLE = ("address", "neighbour", "route", "rule")


def at_rest(wanted: Desired, host: MemoryHost, ledger: MemoryLedger) -> PassContext:
    """A full pass, and what it leaves to stand on."""
    numbers = itertools.count(1000)
    nonce = lambda: str(next(numbers))  # noqa: E731 (short)
    for _ in range(2):  # the second one finds nothing to do, and no marks of the first
        report = Pass(wanted, host, ledger, POLICY, nonce=nonce).run(lambda _: None)
    seen = host.observe(scope(wanted, ledger.claims()))
    return context_after(wanted, report.after, seen.sightings)


def over_a_part(
    context: PassContext, host: MemoryHost, ledger: MemoryLedger, touched: Touched
) -> Pass:
    part = PartialPass(context, touched, host, ledger)
    return Pass(part.desired, part, part, POLICY)


def refused(
    context: PassContext,
    touched: Touched,
    made: Plan | None = None,
    claims: Mapping[Key, Claim] | None = None,
    epoch: str = "",
) -> str:
    """Why a full pass is needed, before a plan or for this one; empty where none is."""
    host, ledger = MemoryHost(), MemoryLedger()
    host.epoch = epoch
    ledger.write_claims((claims or {}).values())
    try:
        part = PartialPass(context, touched, host, ledger)
        if made is not None:
            part.approve(made)
    except FullPassNeeded as why:
        return str(why) or "for no reason"
    return ""


def full_plan(wanted: Desired, host: MemoryHost, claims: dict[Key, Claim]) -> Plan:
    return plan(wanted, host.observe(scope(wanted, claims)), claims, POLICY)


def about(made: Plan, touched: Touched) -> tuple[object, ...]:
    def mine(subject: Artifact | Batch) -> bool:
        if isinstance(subject, Batch):
            return subject.kind.name in touched.kinds
        return subject.key in touched

    return (
        [_said(op) for op in made.operations if mine(op.subject)],
        {str(one.subject) for one in made.orphans if mine(one.subject)},
        {one.desired.key for one in made.conflicts if one.desired.key in touched},
        {one.desired.key for one in made.candidates if one.desired.key in touched},
        {one.key for one in (*made.pending, *made.blocked) if one.key and one.key in touched},
    )


def kept_for_others(part: Plan, whole: Plan) -> set[Key]:
    """What a full pass keeps because something declared in its place waits that was not touched. A
    partial pass knows nothing of that, and leaves every delete to a full one."""
    awaited = [one.subject for one in whole.orphans if one.reason == AWAITED]
    deleted = [op.subject for op in part.operations if op.verb is Verb.DELETE]
    return _single(awaited) & _single(deleted)


def _single(subjects: Iterable[Artifact | Batch]) -> set[Key]:
    return {one.key for one in subjects if isinstance(one, Artifact)}


def _said(op: Operation) -> object:
    subject = op.subject
    if isinstance(subject, Batch):
        named: object = (subject.template, tuple(subject.keys))
    else:
        named = (subject.key, tuple(subject.fields.items()))
    return op.verb, named, op.owners, op.reason, op.proof, op.changes, op.requires


@st.composite
def tampered(draw: st.DrawFn, host: MemoryHost) -> Touched:
    """Others delete, change and make what they like, of some kinds."""
    whole = draw(st.sets(st.sampled_from(WHOLE)))
    singles: set[Key] = set()
    for key in sorted(host.objects):
        if key.kind not in (*whole, "file", "sysctl") or not host.objects.get(key):
            continue
        done = draw(st.sampled_from(["left", "left", "deleted", "changed"]))
        if done != "left":
            singles.add(key)
        if done == "deleted" and not KINDS[key.kind].setting:
            del host.objects[key]
        elif done == "changed":
            host.objects[key] = [_other(one) for one in host.objects[key]]
    for one in draw(st.lists(artifacts(), max_size=3, unique_by=lambda one: one.key)):
        if one.key in host.objects or one.key.kind not in (*whole, "file"):
            continue
        tagged = one.key.kind in TAGGED
        host.put(one.key, one.fields, draw(st.sampled_from([4, 72])) if tagged else 0)
        singles.add(one.key)
    if "route" in whole:
        host.routes = [one for one in host.routes if draw(st.booleans())]
        more = st.tuples(templates, st.sampled_from(PREFIXES), st.sampled_from([4, 72]))
        host.routes += [Route(*one) for one in draw(st.lists(more, max_size=2, unique=True))]
    # Some hints name what they are about, and some only its kind.
    return touch(singles, whole & {"route"} if draw(st.booleans()) else whole)


def _other(one: Object) -> Object:
    changed = {
        name: {"mac": "02::9", "sha256": "cc", "value": "7", "scope": "host"}.get(name, value)
        for name, value in one.fields.items()
    }
    return Object(changed, one.protocol, one.group)


@pytest.mark.long
@given(desired(), hosts(), st.data())
@settings(max_examples=400, deadline=None)
def test_it_plans_what_a_full_pass_would(
    wanted: Desired, host: MemoryHost, data: st.DataObject
) -> None:
    ledger = MemoryLedger()
    if data.draw(st.booleans()):
        wanted = data.draw(waiting(wanted))
    context = at_rest(wanted, host, ledger)
    touched = data.draw(tampered(host))
    whole = full_plan(wanted, host, ledger.claims())
    part = over_a_part(context, host, ledger, touched).plan()
    # Nothing but what was touched is spoken of.
    assert about(part, touched)[0] == [_said(op) for op in part.operations]
    kept = kept_for_others(part, whole)
    if kept:
        with pytest.raises(FullPassNeeded):
            PartialPass(context, touched, host, ledger).approve(part)
        touched = Touched(touched.kinds, touched.keys - kept)
    assert about(part, touched) == about(whole, touched)
    left = joined(context.plan, part, touched)
    if any(key.kind == "address" for key in touched.keys):
        return  # one of others' may speak against one that was not touched
    assert {_text(op) for op in left.operations} == {_text(op) for op in whole.operations}


def _text(op: Operation) -> str:
    return f"{op.verb} {_said(op)}"


@pytest.mark.long
@given(desired(), hosts(), st.data())
@settings(max_examples=300, deadline=None)
def test_carried_out_it_leaves_what_a_full_one_leaves(
    wanted: Desired, host: MemoryHost, data: st.DataObject
) -> None:
    ledger = MemoryLedger()
    context = at_rest(wanted, host, ledger)
    touched = data.draw(tampered(host))
    numbers = itertools.count(5000)
    part = PartialPass(context, touched, host, ledger)
    run = Pass(part.desired, part, part, POLICY, nonce=lambda: str(next(numbers)))
    before = list(host.log)
    try:
        report = run.run(part.approve)
    except FullPassNeeded:
        assert host.log == before
        return
    assert not any(op.verb in (Verb.DELETE, Verb.REPLACE) for op in report.before.changes)
    after = full_plan(wanted, host, ledger.claims())
    # Of what was touched: an address that others took away may have stood in the way of one that
    # was not.
    assert not [op for op in after.changes if _of(op, touched)]


def _of(op: Operation, touched: Touched) -> bool:
    return (
        op.subject.key in touched if isinstance(op.subject, Artifact) else op.kind in touched.kinds
    )


class Strict(MemoryHost):
    """Fails where it is asked for more than was touched."""

    asked: frozenset[str] | None = None

    def observe(self, scope: Scope) -> Observed:
        self.asked = scope.kinds
        return super().observe(scope)


def test_only_what_was_touched_is_looked_at() -> None:
    host = Strict()
    host.put(Key("sysctl", "net.0"), {"value": "0"})
    context = context_after(Desired(()), Plan(()), {})
    touched = touch({Key("sysctl", "net.0"), Key("file", "/etc/1")})
    over_a_part(context, host, MemoryLedger(), touched).plan()
    assert host.asked == frozenset({"sysctl", "file"})


def test_what_it_leaves_to_a_full_pass() -> None:
    context = context_after(Desired(()), Plan(()), {})
    links, rules = touch({Key("link", "br0")}), touch(set(), ["rule"])
    assert "link" in refused(context, links)
    assert not refused(context, rules)
    blind = context_after(Desired(()), Plan((), unknown=(("rule", "lost"),)), {})
    assert refused(blind, rules)
    gone = Artifact(Key("rule", "1: from all lookup 9"), {})
    assert refused(context, rules, Plan((Operation(Verb.DELETE, gone, (), "an orphan"),)))
    assert not refused(context, rules, Plan((Operation(Verb.CREATE, gone, (), "missing"),)))
    assert refused(context, rules, Plan((), unknown=(("rule", "lost"),)))
    assert refused(context, rules, Plan((), refusal="too much")) == "too much"


@pytest.mark.parametrize("kind", ["address", "neighbour"])
def test_what_something_else_waits_for_is_left_to_a_full_pass(kind: str) -> None:
    """The partial pass was not told of what is declared in its place, and would delete it."""
    shapes: dict[str, tuple[str, Fields]] = {
        "address": ("2001:db8::1", {"prefix_length": 64, "scope": "global"}),
        "neighbour": ("192.0.2.9", {"mac": "02::1"}),
    }
    name, fields = shapes[kind]
    there, elsewhere = Key(kind, f"{name} dev br0"), Key(kind, f"{name} dev br1")
    lacking = (Key("link", "br1"),)
    wanted = Desired(
        (Intent("one", Artifact(elsewhere, fields), "router.yaml:1", requires=lacking),)
    )
    host, ledger = MemoryHost(), MemoryLedger()
    context = at_rest(wanted, host, ledger)
    host.put(there, fields, host.tag)
    touched = touch({there})
    part, whole = over_a_part(context, host, ledger, touched).plan(), full_plan(wanted, host, {})
    assert not whole.changes
    assert kept_for_others(part, whole) == {there}
    assert refused(context, touched, part) == f"delete {there}"


def test_what_was_forgotten_is_not_left_to_do() -> None:
    """Else the next partial pass, of whatever, tells of it once more."""
    gone = Artifact(Key("address", "192.0.2.2/24 dev wan0"), {})
    last = Plan((Operation(Verb.FORGET, gone, (), "already gone"),))
    elsewhere = touch({Key("sysctl", "net.0")})
    assert joined(last, Plan(()), elsewhere).operations == ()
    made = Operation(Verb.CREATE, Artifact(Key("sysctl", "net.0"), {}), (), "missing")
    assert joined(last, Plan((made,)), elsewhere).operations == (made,)


@pytest.mark.parametrize("name", case_files.names())
def test_cases_of_the_planner(name: str) -> None:
    """Each kind of a case by itself, while nothing else is to be done in it."""
    case = case_files.load(name)
    whole = plan(case.desired, case.observed, case.claims, case.policy)
    context = context_after(case.desired, whole, case.observed.sightings)
    for kind in sorted(partial_pass.ALONE):
        touched = touch((), [kind])
        others_change = any(op.kind != kind for op in whole.changes)
        if others_change or refused(context, touched, None, case.claims, case.policy.epoch):
            continue
        seen = {key: many for key, many in case.observed.sightings.items() if key.kind == kind}
        bulk = {one: many for one, many in case.observed.bulk.items() if one == kind}
        claims = {key: claim for key, claim in case.claims.items() if key in touched}
        observed = Observed(seen, bulk, standing=context.standing, losses=case.observed.losses)
        part = plan(context.part(touched), observed, claims, case.policy)
        assert about(part, touched) == about(whole, touched), kind
