"""The plan for a few routes against the plan of a full pass over the same host."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import bulk_changes
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.intent import BulkIntent, Desired, Intent
from holdfast.engine.kinds import route
from holdfast.engine.kinds.route import ROUTE, Nexthop
from holdfast.engine.observed import Observed
from holdfast.engine.partial_pass import FullPassNeeded, context_after
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, scope
from tests.engine.memory_host import MemoryHost, MemoryLedger, Route
from tests.engine.memory_routes import MemoryRoutes, body, pack_prefix
from tests.engine.universe import LINKS, PREFIXES, desired, hosts, templates

TAG = "protocol 72"
POLICY = Policy(epoch="this boot")
FREE = replace(POLICY, allow_mass_delete=True)
GATEWAY = route.template(4, nexthops=(Nexthop("192.0.2.2", "br0"),))
OTHER = route.template(4, nexthops=(Nexthop("192.0.2.3", "br0"),))


def _facts(operations: tuple[Operation, ...]) -> Counter[object]:
    """What operations come to, artifact by artifact, however they are put into batches."""
    found: Counter[object] = Counter()
    for op in operations:
        about = (op.verb, op.owners, op.reason, op.origin, op.proof, op.requires)
        if isinstance(op.subject, Artifact):
            found[about, op.subject.key, str(op.observed)] += 1
            continue
        for key in op.subject.keys:
            old = op.observed.template if isinstance(op.observed, Batch) else None
            found[about, op.changes, op.subject.template, key, old] += 1
    return found


def _routes(made: Plan) -> tuple[Operation, ...]:
    return tuple(op for op in made.operations if op.kind == "route")


def _with_routes(wanted: Desired, other: Desired) -> Desired:
    rest = [one for one in wanted.intents if not isinstance(one, BulkIntent)]
    return Desired((*rest, *bulk_changes.bulk_intents(other)))


def _partial(base: bulk_changes.Settled, wanted: Desired, host: MemoryHost) -> Plan | None:
    """As a caller does it: what is there is known from the last pass alone."""
    touched = base.changed(wanted)
    if bulk_changes.meet(touched, base.unsettled):
        return None
    held = bulk_changes.only(base.seen, touched)
    own = frozenset(body(batch.template, key) for batch in held for key in batch.keys)
    links = frozenset(key.name for key in host.objects if key.kind == "link")
    observed = Observed(bulk={"route": MemoryRoutes(own, links=links)}, standing=base.standing)
    few = Desired(tuple(bulk_changes.intents_at(wanted, touched)), wanted.waiting)
    try:
        return bulk_changes.planned(base, wanted, plan(few, observed, {}, POLICY), POLICY)
    except FullPassNeeded:
        return None


def _settle(wanted: Desired, host: MemoryHost, ledger: MemoryLedger) -> bulk_changes.Settled:
    numbers = itertools.count(1000)
    work = Pass(wanted, host, ledger, FREE, nonce=lambda: str(next(numbers)))
    report = work.run(lambda _: None)
    seen = host.observe(scope(wanted, ledger.claims()))
    standing = context_after(wanted, report.after, seen.sightings).standing
    return bulk_changes.settled(ROUTE, TAG, wanted, report.after, standing)


@pytest.mark.long
@given(desired(), desired(), hosts())
@settings(max_examples=300, deadline=None)
def test_a_few_are_planned_as_all_of_them_are(
    first: Desired, second: Desired, host: MemoryHost
) -> None:
    ledger = MemoryLedger()
    try:
        base = _settle(first, host, ledger)
    except FullPassNeeded:
        return
    wanted = _with_routes(first, second)
    few = _partial(base, wanted, host)
    if few is None:
        return
    claims = ledger.claims()
    full = plan(wanted, host.observe(scope(wanted, claims)), claims, POLICY)
    foreign = {one.identity for one in host.routes if one.protocol != host.tag}
    made = {
        op.subject.scope + key
        for op in few.changes
        if isinstance(op.subject, Batch)
        for key in op.subject.keys
    }
    if foreign & made:
        return  # an exclusive create finds out
    assert _facts(_routes(few)) == _facts(_routes(full))
    assert few.refusal == full.refusal or full.changes != _routes(full)


_KEYS = st.lists(st.sampled_from(PREFIXES), unique=True, max_size=4)
_BATCHES = st.lists(st.builds(route.batch, templates, _KEYS), max_size=4)


@pytest.mark.long
@given(_BATCHES, _BATCHES)
@settings(max_examples=300)
def test_nothing_that_differs_is_overlooked(old: list[Batch], new: list[Batch]) -> None:
    def wanted(batches: list[Batch]) -> set[tuple[object, bytes]]:
        return {(batch.template, key) for batch in batches for key in batch.keys}

    found = bulk_changes.differing(old, new)
    for shared, key in wanted(old) ^ wanted(new):
        assert isinstance(shared, route.RouteTemplate)
        assert key in found[route.scope(shared)]


@given(st.lists(st.integers(0, 400), unique=True), st.lists(st.integers(0, 400), unique=True))
def test_long_lists(old: list[int], new: list[int]) -> None:
    common = [pack_prefix(f"10.{n >> 8}.{n & 255}.0/24") for n in range(1000, 1200)]

    def keys(numbers: list[int]) -> list[bytes]:
        some = [pack_prefix(f"10.{n >> 8}.{n & 255}.0/24") for n in numbers]
        return [*some[::2], *common, *some[1::2]]

    one, other = keys(old), keys(new)
    found = bulk_changes.differing([route.batch(GATEWAY, one)], [route.batch(GATEWAY, other)])
    expected = set(one) ^ set(other)
    assert found.get(route.scope(GATEWAY), set()) == expected


def _declared(*batches: tuple[str, Batch]) -> Desired:
    link = Intent("Interface/br0", Artifact(Key("link", "br0"), {"type": "bridge"}), "a:1")
    bulk = [BulkIntent(owner, one, "a:2", (Key("link", "br0"),)) for owner, one in batches]
    return Desired((link, *bulk))


def _many() -> list[bytes]:
    return [pack_prefix(f"10.0.{number}.0/24") for number in range(200)]


def _host() -> MemoryHost:
    host = MemoryHost()
    host.put(Key("link", "br0"), {"type": "bridge"})
    return host


def _base(wanted: Desired, host: MemoryHost) -> bulk_changes.Settled:
    return _settle(wanted, host, MemoryLedger())


def test_one_more_route_is_one_create() -> None:
    host, keys = _host(), _many()
    base = _base(_declared(("RouteList/a", route.batch(GATEWAY, keys))), host)
    wanted = _declared(("RouteList/a", route.batch(GATEWAY, [*keys, pack_prefix("10.1.0.0/24")])))
    made = _partial(base, wanted, host)
    assert made is not None
    (change,) = made.changes
    assert (change.verb, change.count, change.owners) == (Verb.CREATE, 1, ("RouteList/a",))
    kept = [op for op in made.operations if op.verb is Verb.KEEP and op.kind == "route"]
    assert [op.count for op in kept] == [200]


def test_another_gateway_is_an_update() -> None:
    host, keys = _host(), _many()
    base = _base(_declared(("RouteList/a", route.batch(GATEWAY, keys))), host)
    wanted = _declared(
        ("RouteList/a", route.batch(GATEWAY, keys[1:])),
        ("RouteList/a", route.batch(OTHER, keys[:1])),
    )
    made = _partial(base, wanted, host)
    assert made is not None
    (change,) = made.changes
    assert (change.verb, change.count) == (Verb.UPDATE, 1)
    assert isinstance(change.observed, Batch)
    assert change.observed.template == GATEWAY


def test_a_route_that_another_still_declares_stays() -> None:
    host, keys = _host(), _many()
    list_a, list_b = route.batch(GATEWAY, keys), route.batch(GATEWAY, keys[:2])
    base = _base(_declared(("RouteList/a", list_a), ("RouteList/b", list_b)), host)
    wanted = _declared(("RouteList/a", route.batch(GATEWAY, keys[1:])), ("RouteList/b", list_b))
    made = _partial(base, wanted, host)
    assert made is not None
    assert made.changes == ()


def test_the_guard_counts_all_that_is_owned() -> None:
    host, keys = _host(), _many()
    base = _base(_declared(("RouteList/a", route.batch(GATEWAY, keys))), host)
    few = _partial(base, _declared(("RouteList/a", route.batch(GATEWAY, keys[20:]))), host)
    assert few is not None
    assert few.refusal == ""
    many = _partial(base, _declared(("RouteList/a", route.batch(GATEWAY, keys[150:]))), host)
    assert many is not None
    assert "150 of 200 owned artifacts" in many.refusal


def test_what_others_hold_is_not_built_upon() -> None:
    host, keys = _host(), _many()
    host.routes.append(Route(OTHER, keys[7], 4))
    base = _base(_declared(("RouteList/a", route.batch(GATEWAY, keys))), host)
    assert base.unsettled == {route.scope(GATEWAY): {keys[7]}}
    without = [key for key in keys if key != keys[7]]
    assert _partial(base, _declared(("RouteList/a", route.batch(GATEWAY, without))), host) is None
    more = [*keys, pack_prefix("10.1.0.0/24")]
    made = _partial(base, _declared(("RouteList/a", route.batch(GATEWAY, more))), host)
    assert made is not None
    assert [change.count for change in made.changes] == [1]
    assert made.conflicts == base.plan.conflicts != ()


def test_what_is_still_to_be_done_is_known_to_be_unsettled() -> None:
    keys = _many()
    wanted = _declared(("RouteList/a", route.batch(GATEWAY, keys)))
    made = Pass(wanted, _host(), MemoryLedger(), POLICY).plan()
    base = bulk_changes.settled(ROUTE, TAG, wanted, made, frozenset())
    assert base.unsettled == {route.scope(GATEWAY): set(keys)}
    assert base.batches == ()


def test_what_could_not_be_observed_is_no_ground() -> None:
    wanted = _declared(("RouteList/a", route.batch(GATEWAY, _many())))
    host = _host()
    host.unknown = {"route": "the kernel did not answer"}
    made = Pass(wanted, host, MemoryLedger(), POLICY).plan()
    with pytest.raises(FullPassNeeded, match="route could not be observed"):
        bulk_changes.settled(ROUTE, TAG, wanted, made, frozenset())


def test_what_waits_stays_to_be_done() -> None:
    """A change that a pass left for later, and one that it made."""
    host, keys = _host(), _many()
    base = _base(_declared(("RouteList/a", route.batch(GATEWAY, keys))), host)
    late, soon = pack_prefix("10.1.0.0/24"), pack_prefix("10.2.0.0/24")
    wanted = _declared(("RouteList/a", route.batch(GATEWAY, [*keys, late, soon])))
    touched = base.changed(wanted)
    observed = Observed(bulk={"route": MemoryRoutes()}, standing=base.standing)
    few = Desired((*bulk_changes.intents_at(wanted, {route.scope(GATEWAY): {late}}),))
    after = base.after(wanted, touched, plan(few, observed, {}, POLICY))
    assert after.unsettled == {route.scope(GATEWAY): {late}}
    assert [op.count for op in after.plan.changes] == [1]
    assert [len(batch) for batch in after.seen] == [201]
    # The one that was left is made after all.
    again = after.after(wanted, after.unsettled, Plan(()))
    assert again.unsettled == {}
    assert again.plan.changes == ()
    assert [len(batch) for batch in again.seen] == [202]


def test_a_route_over_a_link_that_was_not_seen_waits_for_a_full_pass() -> None:
    host, keys = _host(), _many()
    base = _base(_declared(("RouteList/a", route.batch(GATEWAY, keys))), host)
    away = route.template(4, nexthops=(Nexthop("192.0.2.2", LINKS[1]),))
    wanted = _declared(("RouteList/a", route.batch(GATEWAY, keys)))
    new = BulkIntent(
        "IPv4Route/b",
        route.batch(away, [pack_prefix("10.1.0.0/24")]),
        "a:3",
        (Key("link", LINKS[1]),),
    )
    assert _partial(base, replace(wanted, intents=(*wanted.intents, new)), host) is None


def test_what_else_is_declared_otherwise_is_named() -> None:
    keys = _many()
    first = _declared(("RouteList/a", route.batch(GATEWAY, keys)))
    moved = replace(first, intents=tuple(replace(one, origin="b:9") for one in first.intents))
    assert bulk_changes.differs_elsewhere(first, moved) == ""
    mtu = Intent("Interface/br0", Artifact(Key("link", "br0"), {"mtu": 1400}), "a:1")
    other = Desired((mtu, *first.intents[1:]))
    assert bulk_changes.differs_elsewhere(first, other) == "link br0 is declared otherwise"
    assert bulk_changes.differs_elsewhere(Desired(first.intents[1:]), first)
