"""Points in time, as documents write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.resources.spec.moments import format_moment, parse_moment

_LAST = 253_402_300_799


@given(st.integers(0, _LAST * 1000))
def test_what_is_written_is_read_again(millis: int) -> None:
    seconds = millis / 1000
    assert parse_moment(format_moment(seconds)) == pytest.approx(seconds, abs=0.001)


@given(st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1)), st.sampled_from("tT"))
def test_any_moment_of_ours_is_read(moment: datetime, between: str) -> None:
    expected = moment.replace(tzinfo=UTC).timestamp()
    assert parse_moment(f"{moment.isoformat(between)}Z") == expected
    assert parse_moment(f"{moment.isoformat(between)}+05:30") == expected - 19_800


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+22:60",
        "1969-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-00:01",  # which is in the year 10000
    ],
)
def test_what_never_was_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no point in time that ever was or will be"):
        parse_moment(text)


@pytest.mark.parametrize(
    "text", ["", "2026-01-01", "2026-01-01T00:00:00", "20260101T000000Z", "2026-01-01T00:00Z"]
)
def test_other_ways_of_writing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a point in time such as 2026-05-29T12:00:00Z"):
        parse_moment(text)


def test_what_lies_beyond_the_last_year_is_told_as_its_end() -> None:
    assert format_moment(_LAST + 1e6) == "9999-12-31T23:59:59Z"
