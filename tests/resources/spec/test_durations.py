from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.resources.spec.durations import duration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("3s", 3), ("1m30s", 90), ("12h", 43200), ("1.5h", 5400), ("2d", 172800)],
)
def test_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "-3s", "3s ", "3w", "1e3s", 5, None, True])
def test_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        parse_duration(text)


@given(st.integers(0, 10**10))
def test_shown_and_read_again(milliseconds: int) -> None:
    assert round(parse_duration(format_duration(milliseconds / 1000)) * 1000) == milliseconds


def test_limits_are_said() -> None:
    with pytest.raises(ValueError, match="must be from 1s to 1h, not 2h"):
        duration(1, 3600).read("2h")
