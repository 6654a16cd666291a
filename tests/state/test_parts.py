from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.config.part import Directive, Part, Target
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import defaults
from holdfast.state.ledger import Ledger

ROUTE = Target("net.holdfast.dev/v1alpha1", "IPv4Route", "fallback")
PART = Part(
    "Plugin/inventory",
    3,
    900.25,
    1200.5,
    ({"kind": "IPv4Route", "metadata": {"name": "a"}, "spec": {"metric": 5, "über": [None]}},),
    (Directive("mask", ROUTE, "it is somewhere else now"),),
    ({"name": "assign", "provider": "aws"},),
)


def test_a_part_comes_back_as_it_was(ledger: Ledger, paths: Paths) -> None:
    ledger.put_part(PART)
    ledger.put_part(replace(PART, source="Owner/ci", expires=None, directives=()))
    with Ledger.read(paths) as reader:
        assert reader.parts() == [
            replace(PART, source="Owner/ci", expires=None, directives=()),
            PART,
        ]
        assert reader.part_index() == (("Owner/ci", 3, None), ("Plugin/inventory", 3, 1200.5))
        assert reader.check() == []


def test_only_so_many_of_a_source_are_kept(ledger: Ledger) -> None:
    ledger.put_part(replace(PART, source="Owner/ci", generation=1))
    for number in range(1, defaults.KEEP_PARTS + 4):
        ledger.put_part(replace(PART, generation=number))
    kept = [part.generation for part in ledger.parts() if part.source == PART.source]
    assert kept == list(range(defaults.KEEP_PARTS + 3, 3, -1))
    assert [part.ref for part in ledger.parts(newest=True)] == [
        "Owner/ci#1",
        f"Plugin/inventory#{defaults.KEEP_PARTS + 3}",
    ]


def test_one_is_kept_however_far_back_it_lies(ledger: Ledger) -> None:
    for number in range(1, defaults.KEEP_PARTS + 4):
        ledger.put_part(replace(PART, generation=number), 2)
    kept = [part.generation for part in ledger.parts()]
    assert kept == [*range(defaults.KEEP_PARTS + 3, 3, -1), 2]
    assert ledger.part(PART.source, 2) == replace(PART, generation=2)
    assert ledger.part(PART.source, 3) is None
    ledger.forget_parts(PART.source)
    assert ledger.parts() == []


def test_an_end_is_never_put_off(ledger: Ledger) -> None:
    """The time is 1000.5."""
    ledger.put_part(replace(PART, generation=1, expires=950.0))
    ledger.put_part(replace(PART, generation=2, expires=None))
    ledger.put_part(replace(PART, source="Owner/ci"))
    ledger.end_parts(PART.source)
    assert [(part.ref, part.expires) for part in ledger.parts()] == [
        ("Owner/ci#3", 1200.5),
        ("Plugin/inventory#2", 1000.5),
        ("Plugin/inventory#1", 950.0),
    ]


def test_parts_are_exported_and_imported(ledger: Ledger, tmp_path: Path) -> None:
    ledger.put_part(PART)
    data = ledger.export()
    assert data["parts"][0]["observed"] == "1970-01-01T00:15:00.250000Z"
    with Ledger.open(Paths(tmp_path / "other"), command="test") as other:
        other.import_(data)
        assert other.parts() == [PART]
        assert other.export() == data
    data["parts"][0]["resources"][0]["spec"]["metric"] = 6
    data["parts"].append(data["parts"][0])
    with (
        Ledger.open(Paths(tmp_path / "third"), command="test") as third,
        pytest.raises(LedgerError) as caught,
    ):
        third.import_(data)
    assert "parts[0].digest: not that of its resources and directives" in str(caught.value)
    assert "parts[1]: Plugin/inventory#3 is there twice" in str(caught.value)


@pytest.mark.parametrize(
    ("column", "value"),
    [("resources", "[{}]"), ("resources", "5"), ("directives", '[["mask"]]'), ("directives", "{")],
)
def test_a_damaged_part_is_found(ledger: Ledger, paths: Paths, column: str, value: str) -> None:
    ledger.put_part(PART)
    with sqlite3.connect(paths.ledger) as other:
        other.execute(f"UPDATE parts SET {column}=?", (value,))  # noqa: S608 (of the test)
    other.close()
    with pytest.raises(LedgerError, match="part Plugin/inventory#3"):
        ledger.parts()
    assert [line for line in ledger.check() if line.startswith("part Plugin/inventory#3: ")]
