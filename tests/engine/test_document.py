"""The plan as a document, and its digest."""

from __future__ import annotations

from dataclasses import replace

from holdfast.engine import document
from holdfast.engine.document import FileDigest
from holdfast.engine.kinds.route import Nexthop, batch, template
from holdfast.engine.plan import Change, Operation, Plan, Verb
from tests.cli.plans import TRANSIT, everything, keys

FILES = (FileDigest("/etc/r.yaml", "00"),)


def _digest(plan: Plan) -> str:
    return document.digest(plan, FILES)


def test_the_order_of_operations_is_not_part_of_the_digest() -> None:
    plan = everything()
    turned = replace(plan, operations=plan.operations[::-1])
    assert _digest(turned) == _digest(plan)


def test_what_does_not_change_the_host_is_not_part_of_the_digest() -> None:
    plan = everything()
    quiet = tuple(op for op in plan.operations if op.verb.changes_host)
    assert len(quiet) < len(plan.operations)
    assert _digest(replace(plan, operations=quiet)) == _digest(plan)


def test_everything_that_would_be_done_is_part_of_the_digest() -> None:
    def of(operation: Operation) -> str:
        return _digest(Plan((operation,)))

    first = Operation(Verb.CREATE, batch(TRANSIT, keys(3)), ("RouteList/a",), "why")
    other_gateway = template(4, nexthops=(Nexthop("192.0.2.2", "wan0"),))
    moved = Operation(
        Verb.UPDATE,
        batch(other_gateway, keys(3)),
        ("RouteList/a",),
        "why",
        observed=batch(TRANSIT, keys(3)),
    )
    third_gateway = template(4, nexthops=(Nexthop("192.0.2.3", "wan0"),))
    digests = {
        of(first),
        of(moved),
        of(replace(moved, observed=batch(third_gateway, keys(3)))),
        of(replace(first, verb=Verb.DELETE)),
        of(replace(first, subject=batch(TRANSIT, keys(4)))),
        of(replace(first, subject=batch(other_gateway, keys(3)))),
        of(replace(first, subject=first.subject.artifact(keys(1)[0]))),  # type: ignore[union-attr]
        _digest(Plan(())),
        document.digest(Plan(()), (FileDigest("/etc/r.yaml", "01"),)),
    }
    assert len(digests) == 9
    assert of(replace(first, reason="another", owners=())) == of(first)


def test_a_batch_becomes_an_operation_per_artifact() -> None:
    operation = Operation(Verb.CREATE, batch(TRANSIT, keys(3)), ("RouteList/a",), "why")
    entries = list(document.operations([operation]))
    assert [entry["artifact"]["name"] for entry in entries] == [
        "10.0.0.0/24",
        "10.0.1.0/24",
        "10.0.2.0/24",
    ]
    assert entries[1] == document.operation(operation, operation.subject.artifact(keys(2)[1]))  # type: ignore[union-attr]


def test_a_batch_that_changes_becomes_an_operation_per_artifact_with_its_changes() -> None:
    old = template(4, nexthops=(Nexthop("192.0.2.2", "wan0"),))
    change = Change("nexthops", ("via 192.0.2.2 dev wan0",), ("via 192.0.2.1 dev wan0",))
    operation = Operation(
        Verb.UPDATE,
        batch(TRANSIT, keys(2)),
        ("RouteList/a",),
        "why",
        changes=(change,),
        observed=batch(old, keys(2)),
    )
    entries = list(document.operations([operation]))
    assert [(entry["action"], entry["artifact"]["name"]) for entry in entries] == [
        ("update", "10.0.0.0/24"),
        ("update", "10.0.1.0/24"),
    ]
    for entry in entries:
        assert entry["fields"]["nexthops"] == ("via 192.0.2.1 dev wan0",)
        assert entry["changes"] == document.changes([change])


def test_the_summary_counts_artifacts() -> None:
    counts = document.summary(everything())
    assert counts == {
        "create": 1234,
        "update": 1,
        "replace": 1,
        "delete": 1,
        "keep": 1,
        "forget": 1,
        "orphans_kept": 1,
        "conflicts": 1,
        "adoption_candidates": 2,
        "recoverable": 0,
        "pending": 1,
        "blocked": 1,
        "unknown": 1,
    }
