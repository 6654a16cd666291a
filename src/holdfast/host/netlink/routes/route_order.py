"""Dumped routes compared with declared ones in the order of both, as far as it is the same.

The kernel dumps routes in the order of their addresses. Where most are declared in that order,
comparing memory is many times faster than looking each of them up; the few that stand elsewhere
are told apart one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from holdfast.host.netlink.messages import Dump, Run
from holdfast.host.netlink.routes.route_codec import Shape

# Shorter batches are looked up: they stand anywhere.
_SHORT = 64
# So many routes in a row may be declared elsewhere than they are dumped.
_AHEAD = 4
# Of more that stand elsewhere, all are looked up.
_MOST = 2000


class Wanted(NamedTuple):
    shape: Shape
    keys: Sequence[bytes]


def same(wanted: Iterable[Wanted], dump: Dump) -> bool:
    """Is each of the routes wanted in the dump, and nothing else? False: not, or not so simply."""
    long: list[Wanted] = []
    loose: set[bytes] = set()
    for one in wanted:
        if len(one.keys) < _SHORT:
            loose.update(one.shape.bodies(one.keys))
        else:
            long.append(one)
    compared = _Compared(long, loose)
    return all(map(compared.take, dump.runs)) and compared.is_complete()


class _Compared:
    def __init__(self, long: Sequence[Wanted], loose: set[bytes]) -> None:
        self._long = long
        self._part = 0
        self._done = 0  # keys of that part
        self._loose = loose  # wanted, and not dumped yet
        self._early: set[bytes] = set()  # dumped, and not yet come upon among those wanted
        self._most = len(loose) + _MOST

    def take(self, run: Run) -> bool:
        if self._part < len(self._long):
            shape, keys = self._long[self._part]
            part = keys[self._done : self._done + run.count]
            if len(part) == run.count and shape.is_run(run, part):
                self._go_on(run.count)
                return True
        for body in run.bodies():
            self._take_one(body)
        return len(self._early) + len(self._loose) <= self._most

    def _take_one(self, body: bytes) -> None:
        if body in self._loose:
            self._loose.discard(body)
            return
        for skipped, expected in enumerate(self._following()):
            if expected == body:
                for other in self._following(skipped):
                    self._put_off(other)
                self._go_on(skipped + 1)
                return
        self._early.add(body)

    def is_complete(self) -> bool:
        while self._part < len(self._long):
            shape, keys = self._long[self._part]
            left = len(keys) - self._done
            if left > self._most:
                return False
            for body in shape.bodies(keys[self._done :]):
                self._put_off(body)
            self._go_on(left)
        return not self._loose and not self._early

    def _put_off(self, body: bytes) -> None:
        if body in self._early:
            self._early.discard(body)
        else:
            self._loose.add(body)

    def _following(self, most: int = _AHEAD) -> Iterator[bytes]:
        """The next ones wanted, of one part."""
        if self._part < len(self._long):
            shape, keys = self._long[self._part]
            yield from shape.stream(keys[self._done : self._done + most])

    def _go_on(self, count: int) -> None:
        self._done += count
        if self._done == len(self._long[self._part].keys):
            self._part, self._done = self._part + 1, 0
