"""Kinds of events are declared in one place, and named by their constants everywhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import holdfast
from holdfast.engine import event_kinds
from holdfast.engine.event_kinds import EVENT_KINDS, FIELDS, EventKind

SOURCE = Path(holdfast.__file__).parent
# Words that mean something else, too: a provenance, a state, what became of a number of objects.
_WORDS = {
    "adopted",
    "confirmed",
    "conflict",
    "created",
    "deleted",
    "forgotten",
    "healthy",
    "replaced",
    "reverted",
    "unhealthy",
    "updated",
}


def test_declarations() -> None:
    made = [value for value in vars(event_kinds).values() if isinstance(value, EventKind)]
    assert list(EVENT_KINDS.values()) == made
    for name, kind in EVENT_KINDS.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        assert getattr(event_kinds, name.upper().replace("-", "_")) is kind
        assert kind.meaning.endswith(".")
        assert kind.warning or not kind.failure
        assert set(kind.data) <= FIELDS.keys()
    assert FIELDS.keys() == {name for kind in EVENT_KINDS.values() for name in kind.data}
    assert list(FIELDS) == sorted(FIELDS)
    assert {kind for kind in made if kind.failure} == {
        kind for kind in EVENT_KINDS if kind.endswith("-failed")
    }


def test_no_kind_is_written_out() -> None:
    """`Event("drift", …)`, `event.kind == "drift"`, or a text that only kinds of events have."""
    assert list(_written_out('Event("created", name, said)')) == ["created"]
    assert list(_written_out('if event.kind in ("drift", "created"): pass')) == ["created", "drift"]
    assert list(_written_out('event.kind.endswith("-failed")')) == ["-failed"]
    assert list(_written_out('x = {"created": 1}')) == []
    for path in SOURCE.rglob("*.py"):
        if path != Path(event_kinds.__file__):
            assert list(_written_out(path.read_text())) == [], path


def _written_out(text: str) -> Iterator[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        told: list[ast.expr] = []
        if isinstance(node, ast.Call) and _name(node.func) in ("Event", "_event"):
            told = node.args[:1]
        elif isinstance(node, ast.Compare) and _name(node.left) == "kind":
            told = node.comparators
        words = {word for one in told for word in _texts(one)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= {node.value} - _WORDS
            found |= {node.value} & {"-failed"}
        found |= words & EVENT_KINDS.keys()
    yield from sorted(found)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.expr) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
