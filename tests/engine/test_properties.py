"""What holds of every plan and every pass, whatever is declared, seen and claimed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import ownership
from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.intent import Action, BulkIntent, Desired
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Plan, Verb
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report, scope
from tests.engine.memory_host import MemoryHost, MemoryLedger
from tests.engine.universe import desired, hosts, waiting

pytestmark = pytest.mark.long

POLICY = Policy(epoch="this boot", allow_mass_delete=True)


def run(wanted: Desired, host: MemoryHost, ledger: MemoryLedger) -> Report:
    numbers = itertools.count(1000 + len(ledger.writes))
    return Pass(wanted, host, ledger, POLICY, nonce=lambda: str(next(numbers))).run(lambda _: None)


def foreign(host: MemoryHost, ledger: MemoryLedger, made: Iterable[int]) -> tuple[object, object]:
    """What others made: no settings, nothing tagged, no link we made, no file we ever claimed."""
    links = set(made)
    claimed = {claim.key for put, _ in ledger.writes for claim in put}
    objects = {
        (key, tuple(sorted(one.fields.items(), key=str)))
        for key, several in host.objects.items()
        for one in several
        if not KINDS[key.kind].setting
        and one.protocol != host.tag
        and one.fields.get("ifindex") not in links
        and not (key.kind == "file" and key in claimed)
    }
    return objects, {one for one in host.routes if one.protocol != host.tag}


def links_made(host: MemoryHost, before: dict[Key, list[Fields]]) -> list[int]:
    old = {one.get("ifindex") for several in before.values() for one in several}
    return [
        int(str(one.fields["ifindex"]))
        for key, several in host.objects.items()
        for one in several
        if key.kind == "link" and one.fields["ifindex"] not in old
    ]


def snapshot(host: MemoryHost) -> dict[Key, list[Fields]]:
    return {key: [one.fields for one in several] for key, several in host.objects.items()}


@given(desired(), desired(), hosts())
@settings(max_examples=300, deadline=None)
def test_passes_converge_and_leave_others_alone(
    first: Desired, second: Desired, host: MemoryHost
) -> None:
    ledger = MemoryLedger()
    made: list[int] = []
    for wanted in (first, second, first):
        before, earlier = snapshot(host), foreign(host, ledger, made)
        run(wanted, host, ledger)
        made += links_made(host, before)
        assert foreign(host, ledger, made) == earlier
        again = Pass(wanted, host, ledger, POLICY)
        assert again.plan().changes == ()
        writes = len(ledger.writes)
        again.run(lambda _: None)
        assert len(ledger.writes) == writes
        assert not any(one.group for several in host.objects.values() for one in several)


@given(desired(), hosts())
@settings(max_examples=200, deadline=None)
def test_nothing_is_deleted_or_changed_without_proof(wanted: Desired, host: MemoryHost) -> None:
    ledger = MemoryLedger()
    run(wanted, host, ledger)
    for empty in (Desired(()), wanted):
        observed = host.observe(scope(empty, ledger.claims()))
        made = plan(empty, observed, ledger.claims(), POLICY)
        for operation in made.changes:
            subject = operation.subject
            if operation.verb not in (Verb.DELETE, Verb.REPLACE):
                continue
            assert operation.proof
            if not isinstance(subject, Artifact):
                mine = {(one.shared, one.key) for one in host.routes if one.protocol == host.tag}
                assert {(subject.template, key) for key in subject.keys} <= mine
            else:
                kind = KINDS[subject.key.kind]
                claim = ledger.claims().get(subject.key)
                seen = observed.sightings[subject.key]
                assert ownership.split(kind, seen, claim, POLICY.epoch)[0]


@given(desired(), hosts())
@settings(max_examples=200, deadline=None)
def test_what_is_required_comes_first(wanted: Desired, host: MemoryHost) -> None:
    made = Pass(wanted, host, MemoryLedger(), POLICY).plan()
    place = {
        operation.subject.key: number
        for number, operation in enumerate(made.operations)
        if isinstance(operation.subject, Artifact) and operation.verb.changes_host
    }
    for number, operation in enumerate(made.changes):
        assert all(place[key] < number for key in operation.requires if key in place)
    verbs = [operation.verb for operation in made.changes]
    assert verbs == sorted(verbs, key=lambda verb: verb is Verb.DELETE)


@given(desired(), hosts())
@settings(max_examples=200, deadline=None)
def test_every_intent_is_answered_for(wanted: Desired, host: MemoryHost) -> None:
    """Nothing declared is dropped: it is an operation, held, a conflict or a candidate."""
    made = Pass(wanted, host, MemoryLedger(), POLICY).plan()
    answered = _answered(made)
    for intent in wanted.intents:
        if isinstance(intent, BulkIntent):
            held = any(one.owner == intent.owner for one in (*made.pending, *made.blocked))
            keys = {intent.batch.artifact(key).key for key in intent.batch.keys}
            assert held or keys <= answered
        elif intent.action is not Action.DELETE:
            assert intent.artifact.key in answered


def _answered(made: Plan) -> set[Key]:
    found = {one.key for one in (*made.pending, *made.blocked) if one.key is not None}
    found |= {one.desired.key for one in made.conflicts}
    found |= {one.desired.key for one in made.candidates}
    for operation in made.operations:
        subject = operation.subject
        if isinstance(subject, Artifact):
            found.add(subject.key)
        else:
            found |= {subject.artifact(key).key for key in subject.keys}
    return found


@given(desired(contradicting=False), hosts(), st.data())
@settings(max_examples=200, deadline=None)
def test_what_waits_for_a_fact_loses_nothing(
    wanted: Desired, host: MemoryHost, data: st.DataObject
) -> None:
    """However long it waits, and whatever goes on meanwhile: with the fact, nothing is to do."""
    ledger = MemoryLedger()
    run(wanted, host, ledger)
    for _ in range(2):
        some = data.draw(waiting(wanted))
        objects, routes, claimed = snapshot(host), set(host.routes), set(ledger.claims())
        run(some, host, ledger)
        assert all(snapshot(host)[key] == several for key, several in objects.items())
        assert routes <= set(host.routes)
        assert claimed <= ledger.claims().keys()
    assert Pass(wanted, host, ledger, POLICY).plan().changes == ()


@given(desired(), hosts())
@settings(max_examples=100, deadline=None)
def test_unknown_is_never_empty(wanted: Desired, host: MemoryHost) -> None:
    """With any one kind unreadable nothing is deleted or forgotten, and nothing of it is made."""
    ledger = MemoryLedger()
    run(wanted, host, ledger)
    for kind in KINDS:
        host.unknown = {kind: "cannot be read"}
        for config in (Desired(()), wanted):
            made = Pass(config, host, ledger, POLICY).plan()
            verbs = {operation.verb for operation in made.operations}
            assert not verbs & {Verb.DELETE, Verb.FORGET}
            assert not any(operation.kind == kind for operation in made.changes)
            assert dict(made.unknown) == host.unknown
