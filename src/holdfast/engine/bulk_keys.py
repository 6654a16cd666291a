"""Long lists of keys that can be asked what they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import filterfalse
from typing import overload

from holdfast.dataclass import dataclass

# Where more than this changed, a set of all keys is made anew.
_MOST_CHANGES = 1000


class Keys(list[bytes]):
    """A list that is not changed once it is made. Whether it holds a key is looked up in a set,
    made the first time that this is asked; a list that was made of another shares that one's set.
    """

    __slots__ = ("_came", "_differing", "_gone", "_made_of", "_set", "_token")

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        super().__init__(keys)
        # Which list it was made of, if of any, and in what it differs from that one. The token
        # stands for a list without keeping it.
        self._token = object()
        self._made_of: object = None
        self._differing: frozenset[bytes] = frozenset()
        self._set: frozenset[bytes] | None = None
        # What differs from the set.
        self._came: frozenset[bytes] = frozenset()
        self._gone: frozenset[bytes] = frozenset()

    def __contains__(self, key: object) -> bool:
        known = self._set if self._set is not None else self.prepare()
        return key in self._came or (key in known and key not in self._gone)

    def prepare(self) -> frozenset[bytes]:
        """Makes the set, for questions that will be in a hurry."""
        if self._set is None:
            self._set = frozenset(self)
        return self._set

    def spliced(self, start: int, end: int, came: Sequence[bytes]) -> Keys:
        """With other keys from `start` to `end`. No key may be in a list twice."""
        found = Keys(self)
        found[start:end] = came
        gone, new = frozenset(self[start:end]), frozenset(came)
        found._made_of, found._differing = self._token, gone ^ new
        if self._set is not None:
            now_came = (self._came - gone) | new
            now_gone = (self._gone | gone) - new
            if len(now_came) + len(now_gone) <= _MOST_CHANGES:
                found._set, found._came, found._gone = self._set, now_came, now_gone
        return found

    def differing(self, other: Keys) -> frozenset[bytes] | None:
        """What one of them holds and the other does not, where one was made of the other; None
        where it was not."""
        if self._made_of is other._token:
            return self._differing
        return other._differing if other._made_of is self._token else None


@dataclass(frozen=True, slots=True)
class Without(Sequence[bytes]):
    """All keys of a list but a few: counted at once, and made only where they are asked for."""

    keys: Sequence[bytes]
    away: frozenset[bytes]  # some of them

    def __len__(self) -> int:
        return len(self.keys) - len(self.away)

    def __iter__(self) -> Iterator[bytes]:
        return filterfalse(self.away.__contains__, self.keys)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return list(self)[index]

    def __contains__(self, key: object) -> bool:
        return key not in self.away and key in self.keys


def few_of(some: Collection[bytes], keys: Sequence[bytes]) -> list[bytes]:
    """Those of a few keys that a list holds; in no order."""
    if isinstance(keys, Keys | Without) or len(some) == 1:
        return [key for key in some if key in keys]
    wanted = some if isinstance(some, set | frozenset) else set(some)
    return list(wanted.intersection(keys))
