"""Lists of keys that know what they hold, however they came about."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.bulk_keys import Keys, Without, few_of

_KEYS = [number.to_bytes(2, "big") for number in range(40)]
_SOME = st.lists(st.sampled_from(_KEYS), unique=True, max_size=20)


@given(_SOME, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5), _SOME), max_size=6))
def test_edited_lists_hold_what_they_say(
    first: list[bytes], edits: list[tuple[int, int, list[bytes]]]
) -> None:
    keys, plain = Keys(first), list(first)
    for start, count, some in edits:
        assert [key in keys for key in _KEYS] == [key in plain for key in _KEYS]
        left = plain[:start] + plain[start + count :]
        came = [key for key in some if key not in left]
        old, keys = keys, keys.spliced(start, start + count, came)
        before = set(plain)
        plain[start : start + count] = came
        assert keys == plain
        differing = frozenset(before ^ set(plain))
        assert keys.differing(old) == old.differing(keys) == differing
    assert [key in keys for key in _KEYS] == [key in plain for key in _KEYS]
    assert sorted(few_of(_KEYS[:10], keys)) == sorted(set(_KEYS[:10]) & set(plain))
    assert sorted(few_of(set(_KEYS), plain)) == sorted(plain)


def test_a_list_that_was_never_asked_makes_no_set() -> None:
    keys = Keys(_KEYS)
    assert keys.spliced(1, 3, [])._set is None
    keys.prepare()
    assert keys.spliced(1, 3, [])._set is keys._set


@given(_SOME, _SOME)
def test_all_but_a_few(keys: list[bytes], some: list[bytes]) -> None:
    away = frozenset(some) & frozenset(keys)
    found = Without(Keys(keys), away)
    left = [key for key in keys if key not in away]
    assert len(found) == len(left)
    assert list(found) == left
    assert [key in found for key in _KEYS] == [key in left for key in _KEYS]
    if left:
        assert found[0] == left[0]
        assert found[:2] == left[:2]
