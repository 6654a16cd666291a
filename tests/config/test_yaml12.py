"""YAML 1.2 scalars and what libyaml alone would let through."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import yaml12
from holdfast.config.yaml12 import Construction, Trouble, UnreadableError


def read(text: str) -> tuple[Any, list[Trouble]]:
    node = yaml12.compose(text)
    assert node is not None
    construction = Construction()
    return construction.build(node), construction.troubles


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-7", -7),
        ("+7", 7),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("12:34:56:10:20:30", "12:34:56:10:20:30"),
        ("190:20:30", "190:20:30"),
        ("2001-12-14", "2001-12-14"),
        ("2001:db8::1", "2001:db8::1"),
        ("10.0.0.1", "10.0.0.1"),
        ("192.0.2.0/24", "192.0.2.0/24"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("-.inf", -math.inf),
        ("=", "="),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
    ],
)
def test_scalar(text: str, value: object) -> None:
    found, troubles = read(f"a: {text}\n")
    assert troubles == []
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


def test_keys_are_text() -> None:
    found, troubles = read("1: a\n? [x]\n: b\nc: d\n")
    assert found == {"c": "d"}
    assert [trouble.position for trouble in troubles] == [(1, 1), (2, 3)]


def test_equal_keys_in_nested_mappings_are_all_found() -> None:
    _, troubles = read("a: {b: 1, b: 2}\nc: [{d: 1, d: 2}]\na: 3\n")
    assert [trouble.position for trouble in troubles] == [(1, 11), (2, 12), (3, 1)]
    assert "first on line 1, column 5" in troubles[0].message


def test_aliases_are_expanded() -> None:
    found, troubles = read("a: &x {b: 1}\nc: *x\n")
    assert found == {"a": {"b": 1}, "c": {"b": 1}}
    assert troubles == []


def test_numbers_too_long_for_python() -> None:
    found, troubles = read("a: " + "9" * 5000 + "\n")
    assert found == {"a": None}
    assert troubles[0].position == (1, 4)


@pytest.mark.parametrize("opener", ["[", "{a: ", "- "])
def test_depth_is_bounded(opener: str) -> None:
    with pytest.raises(UnreadableError, match="levels deep"):
        yaml12.compose(opener * 100_000)


def test_depth_that_is_enough() -> None:
    found, _ = read("[" * 60 + "]" * 60 + "\n")
    for _ in range(59):
        (found,) = found
    assert found == []


@given(st.text(alphabet=" \t\n-:{}[]&*!|>'\"%@`#?,ab1<.~", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        node = yaml12.compose(text)
        if node is not None:
            Construction().build(node)
    except UnreadableError as error:
        assert error.trouble.position >= (1, 1)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("!!bool yes", "true or false"),
        ("!!bool 'no'", "true or false"),
        ("!!bool ~", "true or false"),
        ("!!null nothing", "null"),
        ("!!int many", "a number"),
        ("!!float 1,5", "a number"),
        ("9" * 6000, "a number"),
    ],
)
def test_a_tag_does_not_make_a_value_of_anything(text: str, kind: str) -> None:
    value, troubles = read(text)
    assert value is None
    assert [trouble.message for trouble in troubles] == [f"cannot be read as {kind}"]


def test_a_tag_that_fits() -> None:
    assert read("[!!bool 'true', !!bool FALSE, !!null '~']") == ([True, False, None], [])


def test_keys_that_are_there_twice_by_the_thousand() -> None:
    """Once the first of each was looked for anew: for minutes."""
    keys = [f"k{number}: 1" for number in range(20_000)] * 2
    value, troubles = read("{" + ", ".join(keys) + "}")
    assert len(value) == 20_000
    first, *_, last = troubles
    assert first.message == "'k0' is given twice, first on line 1, column 2"
    assert last.message == "and 19950 more that are given twice"
