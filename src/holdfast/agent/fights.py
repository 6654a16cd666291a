"""Fights: somebody undoes the same thing again and again. Named, and backed off from.

An operator who deletes a route a few times is no fight; a program that does so for seconds on end
is one, and so is one that comes back every minute. What went because its link did was undone by
nobody. What the router is not safe or of no use without is put back at once all the same, however
long a fight for it lasts. Pure: the caller has the clock and the dice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from holdfast.agent.watch.hint import Writer
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.artifact import Key

# Undone so often, without a pause longer than this, and at its pace for so many seconds by the next
# time: a script that tries things out a hundred times is over by then, and whoever goes on is named
# within ten seconds.
_TIMES, _LASTING_S, _PAUSE_S = 4, 9.6, 7.0
# The next time may come a little later than the pace says.
_LATE = 1.2
# Somebody who takes his time is named after so many times, and within fifteen seconds.
_SLOW_TIMES = 3
# Somebody with a timer of his own: outbursts that come back.
_OUTBURSTS, _WITHIN_S = 10, 300.0
# How far apart repairs are in a fight: at first, and at most.
_SPACING_S, _LONGEST_S = 2.0, 60.0
_JITTER = 0.2
# The same for what is urgent. Four times a second takes a small part of a core, and no flow that is
# set up anew for long.
_URGENT_SPACING_S = 0.25
# Nobody undid it for so long: the fight is over.
_QUIET_S = 60.0
# More than this are not told apart any more; the oldest are forgotten.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Undoing:
    """What was found undone, and by whom."""

    subject: str
    owners: tuple[str, ...]
    how: str  # "deletes it", "sets mtu to 1400"
    writer: Writer | None = None  # None: nobody knows
    urgent: str = ""  # what suffers for as long as it stays undone
    same_process: bool = False  # as the time before

    @property
    def who(self) -> str:
        return str(self.writer) if self.writer is not None else "another program"

    @property
    def habitual(self) -> str:
        """Without the number of a process that is another one each time."""
        if self.writer is None or not self.writer.name:
            return "another program"
        if self.same_process:
            return f"{self.writer.name} (process {self.writer.pid})"
        return f"{self.writer.name} of {self.writer.of}" if self.writer.of else self.writer.name

    def after(self, other: Undoing) -> Undoing:
        """A command that was gone before it could be asked is taken for the one before it, and so
        is who ran it."""
        writer, known = self.writer, other.writer
        if known is None:
            return self
        if writer is None or not writer.name:
            return replace(self, writer=known)
        if writer.pid and writer.pid == known.pid:
            return replace(self, same_process=True)
        if writer.name == known.name and not writer.of:
            return replace(self, writer=writer._replace(of=known.of))
        return self


@dataclass(slots=True)
class _Streak:
    last: Undoing
    outbursts: deque[float] = field(default_factory=lambda: deque(maxlen=_OUTBURSTS))
    since: float = 0.0  # when it began to go on without a pause
    row: int = 0  # how often since then
    when: float = 0.0  # the last time
    undone: bool = False  # found so, and not repaired since
    repaired: float = 0.0
    count: int = 0
    spacing: float = 0.0  # above zero in a fight
    due: float = 0.0

    def is_fight(self, now: float) -> bool:
        if self.row >= _TIMES:
            lasting = now - self.since
            pace = lasting / (self.row - 1)
            if lasting + _LATE * pace >= _LASTING_S:
                return True
        if self.row >= _SLOW_TIMES and now - self.since >= _LASTING_S:
            return True
        return len(self.outbursts) == _OUTBURSTS and now - self.outbursts[0] <= _WITHIN_S


@dataclass(frozen=True, slots=True)
class Fight:
    """What is to be told of one."""

    undoing: Undoing
    times: int
    spacing: float
    over: bool = False

    def __str__(self) -> str:
        undoing = self.undoing
        return (
            f"a fight for {undoing.subject}: {undoing.habitual} {undoing.how} again and again,"
            f" {self.consequence}"
        )

    @property
    def consequence(self) -> str:
        if self.undoing.urgent:
            return f"and as {self.undoing.urgent} depends on it, it is put back each time"
        return "so it is not put back each time"


@dataclass(slots=True)
class Fights:
    jitter: Callable[[float, float], float]  # one number between two
    quiet: float = _QUIET_S
    _streaks: dict[Hashable, _Streak] = field(default_factory=dict)
    _links: dict[Key, float] = field(default_factory=dict)  # when each changed last
    _explained: dict[Hashable, float] = field(default_factory=dict)  # by a change of that moment

    def link_changed(self, link: Key, now: float) -> None:
        _make_room(self._links)
        self._links[link] = now

    def went_with(self, name: Hashable, links: Iterable[Key]) -> bool:
        """Did one of these links, which it stands on, change since it was last put back? One change
        explains one loss: who deletes it again later is somebody."""
        streak = self._streaks.get(name)
        since = streak.repaired if streak is not None else 0.0
        changed = max((self._links.get(link, -1.0) for link in links), default=-1.0)
        if changed < since or self._explained.get(name) == changed:
            return False
        _make_room(self._explained)
        self._explained[name] = changed
        return True

    def undone(self, name: Hashable, undoing: Undoing, now: float) -> Fight | None:
        """Somebody undid it. A fight, where that makes it one."""
        streak = self._streaks.get(name)
        if streak is None:
            _make_room(self._streaks)
            streak = self._streaks[name] = _Streak(undoing)
        if streak.undone:
            return None  # the same as before: it was not repaired yet
        if not streak.count or now - streak.when > _PAUSE_S:
            streak.since, streak.row = now, 0
            streak.outbursts.append(now)
        streak.row += 1
        undoing = undoing.after(streak.last)
        streak.undone, streak.last = True, undoing
        streak.when = now
        streak.count += 1
        if streak.spacing:
            self._space(streak, 2 * streak.spacing, now)
        elif streak.is_fight(now):
            self._space(streak, _SPACING_S, now)
            return Fight(undoing, streak.count, streak.spacing)
        return None

    def row(self, name: Hashable) -> int:
        """How often it was undone by now without a pause."""
        streak = self._streaks.get(name)
        return streak.row if streak is not None else 0

    def is_undone(self, name: Hashable) -> bool:
        """Found so, and not repaired since."""
        streak = self._streaks.get(name)
        return streak is not None and streak.undone

    def in_fight(self, name: Hashable) -> bool:
        streak = self._streaks.get(name)
        return streak is not None and streak.spacing > 0

    def repaired(self, name: Hashable, now: float) -> None:
        streak = self._streaks.get(name)
        if streak is not None:
            streak.undone, streak.repaired = False, now

    def postpone(self, name: Hashable, now: float) -> None:
        """The repair itself failed."""
        streak = self._streaks.get(name)
        if streak is not None and streak.spacing and streak.due <= now:
            self._space(streak, streak.spacing, now)

    def waits(self, name: Hashable, now: float) -> bool:
        """Is it too soon to repair it again?"""
        streak = self._streaks.get(name)
        return streak is not None and streak.spacing > 0 and now < streak.due

    def due(self) -> Iterator[tuple[Hashable, float]]:
        """What waits to be repaired, and until when."""
        for name, streak in self._streaks.items():
            if streak.spacing and streak.undone:
                yield name, streak.due

    def standing(self) -> list[Fight]:
        return [
            Fight(streak.last, streak.count, streak.spacing)
            for streak in self._streaks.values()
            if streak.spacing
        ]

    def over(self, now: float) -> list[Fight]:
        """Fights that ended; what happened long ago is forgotten."""
        ended = []
        for name, streak in list(self._streaks.items()):
            if streak.undone:
                continue
            if streak.spacing and now - streak.repaired >= max(self.quiet, 2 * streak.spacing):
                ended.append(Fight(streak.last, streak.count, streak.spacing, over=True))
                del self._streaks[name]
            elif not streak.spacing and now - streak.when > _WITHIN_S:
                del self._streaks[name]
        return ended

    @property
    def any(self) -> bool:
        return bool(self._streaks)

    def _space(self, streak: _Streak, spacing: float, now: float) -> None:
        if streak.last.urgent:
            streak.spacing = _URGENT_SPACING_S
            streak.due = max(now, streak.repaired + _URGENT_SPACING_S)
            return
        streak.spacing = min(spacing, _LONGEST_S)
        streak.due = now + streak.spacing * self.jitter(1 - _JITTER, 1 + _JITTER)


def _make_room(kept: dict[Any, Any]) -> None:
    """The oldest is forgotten."""
    if len(kept) >= _MOST:
        del kept[next(iter(kept))]
