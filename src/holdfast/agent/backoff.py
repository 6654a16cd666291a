"""Operations that failed are tried again, each further and further apart; the others go on.

Pure: the caller has the clock and the dice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from holdfast.dataclass import dataclass, field

# What fails for a moment only (a link that is being made) is worth a second try soon.
_FIRST_S, _LONGEST_S = 0.25, 60.0
_JITTER = 0.25


@dataclass(slots=True)
class _Wait:
    said: str
    delay: float
    due: float


@dataclass(slots=True)
class Backoff:
    jitter: Callable[[float, float], float]  # one number between two
    _waits: dict[Hashable, _Wait] = field(default_factory=dict)
    _said: dict[Hashable, str] = field(default_factory=dict)  # of what is being tried at once

    def failed(self, name: Hashable, said: str, now: float) -> bool:
        """said: what failed, and how. True where that is news."""
        known = self._waits.get(name)
        delay = _FIRST_S if known is None else min(2 * known.delay, _LONGEST_S)
        due = now + delay * self.jitter(1 - _JITTER, 1 + _JITTER)
        self._waits[name] = _Wait(said, delay, due)
        before = self._said.pop(name, known.said if known is not None else None)
        return before != said

    def done(self, name: Hashable) -> None:
        self._waits.pop(name, None)
        self._said.pop(name, None)

    def reset(self, names: Iterable[Hashable]) -> None:
        """Something changed about these: they are tried at once. What was said of them before is
        no news if it happens again."""
        for name in names:
            wait = self._waits.pop(name, None)
            if wait is not None:
                self._said[name] = wait.said

    def clear(self) -> None:
        self._waits.clear()
        self._said.clear()

    def waits(self, name: Hashable, now: float) -> bool:
        wait = self._waits.get(name)
        return wait is not None and now < wait.due

    def due(self) -> Iterator[tuple[Hashable, float]]:
        for name, wait in self._waits.items():
            yield name, wait.due

    def standing(self) -> list[str]:
        """What failed when it was last tried."""
        return [wait.said for wait in self._waits.values()]

    @property
    def any(self) -> bool:
        return bool(self._waits or self._said)
