"""Hints gathered until the next pass: what was touched, and by whom."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from holdfast.agent.watch.hint import Hint, Writer
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.partial_pass import Touched, touch

# More routes than this are not told apart any more: to look at all of them is cheaper.
_MOST_ROUTES = 20_000
# A look at other kinds is a look at all of one anyway.
_MOST_KEYS = 1_000
_BEFORE_ROUTES = frozenset({ROUTE.name, *ROUTE.after})


@dataclass(slots=True)
class PendingHints:
    since: float = 0.0  # when the first of them came
    lost: bool = False  # anything may have changed
    overdue: float = -math.inf  # all that was to be tried again by then is in here
    routes: list[Hint] = field(default_factory=list)  # in order
    kinds: dict[str, Writer | None] = field(default_factory=dict)  # without a name, or too many
    keys: dict[Key, Hint] = field(default_factory=dict)
    writers: dict[Hashable, Writer] = field(default_factory=dict)
    told: set[Key | bytes] = field(default_factory=set)  # what somebody else was at
    meanwhile: PendingHints | None = None  # what comes while a pass runs over these

    def add(self, hint: Hint, now: float) -> None:
        if not self:
            self.since = now
        if not hint.kind:
            self.lost = True
            return
        name = hint.identity if hint.kind == ROUTE.name else hint.key
        if name is None:
            self._whole(hint.kind, hint.writer)
            return
        self.told.add(name)
        if hint.writer is not None:
            self.writers[name] = hint.writer
        if isinstance(name, Key):
            self.keys[name] = hint
            if len(self.keys) > _MOST_KEYS:
                for key in self.keys:
                    self._whole(key.kind, None)
                self.keys.clear()
        else:
            self.routes.append(hint)
            if len(self.routes) > _MOST_ROUTES:
                self._whole(ROUTE.name, None)
                self.routes.clear()
                self.told.clear()
                self.writers.clear()

    def touch(self, touched: Touched, routes: Iterable[bytes], now: float) -> None:
        """To be looked at again, though nobody told of it."""
        if not self:
            self.since = now
        self.routes += (Hint(ROUTE.name, None, identity) for identity in routes)
        for kind in touched.kinds:
            self._whole(kind, None)
        for key in touched.keys:
            self.keys.setdefault(key, Hint(key.kind, key))

    def __bool__(self) -> bool:
        return bool(self.lost or self.routes or self.kinds or self.keys)

    @property
    def touched(self) -> Touched:
        """Without single routes: those are told by their hints."""
        return touch(self.keys.keys(), self.kinds)

    @property
    def all_kinds(self) -> frozenset[str]:
        found = {*self.kinds, *(key.kind for key in self.keys)}
        return frozenset(found | {ROUTE.name} if self.routes else found)

    @property
    def heard(self) -> frozenset[bytes] | None:
        """The routes that somebody was at; None where it may have been any."""
        if self.lost or ROUTE.name in self.kinds:
            return None
        return frozenset(hint.identity for hint in self.routes if hint.identity is not None)

    def parts(self) -> list[PendingHints]:
        """Single routes apart from the rest: looked at together with other kinds, all of them would
        have to be. Not where what routes build on was touched, which has to be repaired first."""
        kinds = self.touched.all_kinds
        if not self.routes or not kinds or self.lost or not kinds.isdisjoint(_BEFORE_ROUTES):
            return [self]
        # Neither looks at all that is to be tried again by now.
        apart = replace(self, overdue=-math.inf)
        return [replace(apart, kinds={}, keys={}), replace(apart, routes=[])]

    def writer(self, name: Hashable, kind: str) -> Writer | None:
        """Who was last seen at it, or at its kind where nobody tells of single ones. A pass for
        another reason may find a change before its hint is read."""
        found = self.writers.get(name) or self.kinds.get(kind)
        if found is None and self.meanwhile is not None:
            return self.meanwhile.writers.get(name)
        return found

    def _whole(self, kind: str, writer: Writer | None) -> None:
        self.kinds[kind] = writer or self.kinds.get(kind)
