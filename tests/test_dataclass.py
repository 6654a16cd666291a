"""Our `dataclass` does what the standard one does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from holdfast import dataclass as ours
from holdfast.engine.claim import Claim
from holdfast.engine.plan import Change


def _both(**options: bool) -> list[Any]:
    def body() -> type[Any]:
        class Lease:
            address: str
            key: str = ours.field(repr=False)
            names: tuple[str, ...] = ()
            more: dict[str, int] = ours.field(default_factory=dict)
            seen: str = ours.field(default="", repr=False, compare=False)

        Lease.__qualname__ = "Lease"
        return Lease

    made: list[Any] = [
        dataclasses.dataclass(**options)(body()),
        ours.dataclass(**options)(body()),
    ]
    assert made[0] is not made[1]
    return made


@pytest.mark.parametrize("frozen", [True, False])
def test_it_shows_compares_and_replaces_alike(frozen: bool) -> None:
    for cls in _both(frozen=frozen, slots=True):
        one, same = cls("192.0.2.1", "secret"), cls("192.0.2.1", "secret", (), {})
        assert one == same
        assert one == cls("192.0.2.1", "secret", seen="today")
        assert one != cls("192.0.2.1", "another")
        assert repr(one) == "Lease(address='192.0.2.1', names=(), more={})"
        assert ours.replace(one, names=("a",)) == cls("192.0.2.1", "secret", ("a",))
        assert ours.asdict(one) == {
            "address": "192.0.2.1", "key": "secret", "names": (), "more": {}, "seen": "",
        }  # fmt: skip
        assert copy.deepcopy(one) == one
        assert not hasattr(one, "__dict__")
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)  # of what is frozen, because of the dict in it
        with pytest.raises(TypeError, match="missing"):
            cls()


def test_the_same_values_in_another_class_are_another_thing() -> None:
    first, second = _both(frozen=True, slots=True)[1], _both(frozen=True, slots=True)[1]
    assert first("a", "b") != second("a", "b")
    assert first("a", "b") != ("a", "b", (), {})


def test_what_is_frozen_can_be_a_key_and_the_rest_cannot() -> None:
    one, same = Change("mtu", 1500, 1400), Change("mtu", 1500, 1400)
    assert {one: "found"}[same] == "found"
    assert hash(one) != hash(Change("mtu", 1500, 1401))
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 (of our own making)
    loose = _both(slots=True)[1]
    assert loose.__hash__ is None
    assert Claim.__hash__ is not None


def test_what_is_compared_by_what_it_is_stays_so() -> None:
    cls = _both(slots=True, eq=False)[1]
    one = cls("a", "b")
    assert one != cls("a", "b")
    assert {one: "found"}[one] == "found"
