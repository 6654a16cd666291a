"""Fights: told from a few changes by hand, backed off from, and over some day."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from holdfast.agent.fights import Fight, Fights, Undoing
from holdfast.agent.watch.hint import Writer
from holdfast.engine.artifact import Key

UNDOING = Undoing("route 198.51.100.0/24", ("IPv4Route/one",), "deletes it", Writer(7, "undoer"))


class Ring:
    """One artifact, one opponent, and a clock."""

    def __init__(self, undoing: Undoing = UNDOING) -> None:
        self.undoing = undoing
        self.fights = Fights(lambda low, high: (low + high) / 2)
        self.now = 1000.0
        self.repairs: list[float] = []
        self.told: list[Fight] = []

    def undo(self) -> None:
        fight = self.fights.undone("it", self.undoing, self.now)
        if fight is not None:
            self.told.append(fight)

    def repair(self) -> None:
        if not self.fights.waits("it", self.now):
            self.fights.repaired("it", self.now)
            self.repairs.append(self.now)

    def go_on(self, seconds: float, every: float) -> None:
        """It is undone as soon as it is there and so much time has passed."""
        end = self.now + seconds
        while self.now < end:
            self.undo()
            self.repair()
            self.now += every


def test_a_hundred_times_by_hand_is_none() -> None:
    ring = Ring()
    ring.go_on(9.0, 0.09)
    assert len(ring.repairs) >= 100
    ring.now += 10
    ring.go_on(9.0, 0.09)
    assert not ring.told
    assert not ring.fights.standing()


def test_a_few_times_by_hand_is_none() -> None:
    for times, every in ((2, 6.0), (3, 2.0), (3, 4.0), (8, 1.0)):
        ring = Ring()
        ring.go_on((times - 0.5) * every, every)
        assert len(ring.repairs) == times
        assert not ring.told, (times, every)


def test_one_that_takes_his_time_is_named_within_fifteen_seconds() -> None:
    for every in (3.0, 3.5, 4.0, 5.0, 5.5, 6.0, 6.9):
        ring = Ring()
        ring.go_on(15.0, every)
        assert len(ring.told) == 1, every


def test_what_is_urgent_is_put_back_at_once_for_ever() -> None:
    """At a bounded rate, and with the other named as ever."""
    for every in (0.001, 0.1, 1.0, 2.5, 5.0):
        ring = Ring(replace(UNDOING, urgent="the firewall"))
        ring.go_on(15.0, every)
        assert len(ring.told) == 1, every
        named, before = ring.now, len(ring.repairs)
        ring.go_on(60.0, every)
        after = [when for when in ring.repairs if when > named]
        gaps = [later - earlier for earlier, later in pairwise(after)]
        assert max(gaps) <= max(every, 0.25) + every, "it is never away for long"
        assert len(ring.repairs) - before <= 60 / 0.25 + 1
        assert str(ring.fights.standing()[0]).endswith(
            "and as the firewall depends on it, it is put back each time"
        )


def test_what_went_with_its_link_was_undone_by_nobody() -> None:
    fights, link = Fights(lambda low, high: (low + high) / 2), Key("link", "lan0")
    assert not fights.went_with("it", [link])
    fights.link_changed(link, 5.0)
    assert fights.went_with("it", [link])
    assert not fights.went_with("it", [Key("link", "wan0")])
    fights.undone("it", UNDOING, 6.0)
    fights.repaired("it", 6.0)
    assert not fights.went_with("it", [link]), "it was put back since"
    fights.link_changed(link, 7.0)
    assert fights.went_with("it", [link])


def test_one_change_of_a_link_explains_one_loss() -> None:
    """Links change at each start: whoever deletes something later is not the link."""
    fights, link = Fights(lambda low, high: (low + high) / 2), Key("link", "lan0")
    fights.link_changed(link, 5.0)
    assert fights.went_with("it", [link])
    assert fights.went_with("another", [link])
    assert not fights.went_with("it", [link])
    fights.link_changed(link, 7.0)
    assert fights.went_with("it", [link])


@pytest.mark.parametrize(
    ("writers", "named"),
    [
        ([Writer(7, "python3", "bash (process 3)"), Writer(7, "python3")], "python3 (process 7)"),
        ([Writer(7, "nft", "bash (process 3)"), Writer(8, "nft")], "nft of bash (process 3)"),
        ([Writer(7, "nft", "bash (process 3)"), Writer(8)], "nft of bash (process 3)"),
        ([Writer(7, "nft", "bash (process 3)"), None], "nft of bash (process 3)"),
        ([Writer(7, "nft"), Writer(8, "ip")], "ip"),
        ([Writer(7, "nft"), Writer(8, "nft")], "nft"),
        ([None, None], "another program"),
    ],
)
def test_who_fights(writers: list[Writer | None], named: str) -> None:
    """A process that stays is told by its number, a command that comes anew by who runs it."""
    first, then = (replace(UNDOING, writer=writer) for writer in writers)
    assert then.after(first).habitual == named


def test_named_within_ten_seconds_and_backed_off_from() -> None:
    for every in (0.001, 0.1, 0.7, 1.0, 1.7, 1.9, 2.0, 2.2, 2.4, 2.5, 2.9):
        ring = Ring()
        ring.go_on(10.0, every)
        assert len(ring.told) == 1, every
        assert ring.told[0].undoing.writer == Writer(7, "undoer")
        named = ring.now
        ring.go_on(300.0, every)
        after = [when for when in ring.repairs if when > named]
        gaps = [later - earlier for earlier, later in pairwise(after)]
        assert 4 <= len(after) <= 12
        assert min(gaps) >= 2.0
        assert max(gaps) <= 75.0
        assert len(ring.told) == 1
        assert "undoer (process 7) deletes it again and again" in str(ring.fights.standing()[0])


def test_one_that_comes_back_every_quarter_of_a_minute() -> None:
    ring = Ring()
    ring.go_on(200.0, 15.0)
    assert len(ring.told) == 1


def test_over_once_it_is_left_alone() -> None:
    ring = Ring()
    ring.go_on(20.0, 0.1)
    assert not ring.fights.over(ring.now)
    due = dict(ring.fights.due())["it"]
    ring.now = due
    ring.repair()
    assert not list(ring.fights.due())
    assert not ring.fights.over(ring.now + 30)
    (over,) = ring.fights.over(ring.now + 121)
    assert over.over
    assert over.times > ring.told[0].times
    assert not ring.fights.standing()
    # Afterwards it is repaired at once, as anything is.
    ring.now += 200
    ring.undo()
    assert not ring.fights.waits("it", ring.now)


def test_what_happened_long_ago_is_forgotten() -> None:
    ring = Ring()
    ring.undo()
    ring.repair()
    assert ring.fights.any
    assert not ring.fights.over(ring.now + 301)
    assert not ring.fights.any


def test_repairs_that_fail_in_a_fight_are_not_tried_without_end() -> None:
    ring = Ring()
    ring.go_on(20.0, 0.1)
    ring.now = dict(ring.fights.due())["it"]
    ring.fights.postpone("it", ring.now)
    assert dict(ring.fights.due())["it"] > ring.now + 1


def test_one_that_was_gone_before_it_could_be_asked() -> None:
    ring = Ring()
    ring.undo()
    ring.repair()
    nameless = Undoing("route 198.51.100.0/24", ("IPv4Route/one",), "deletes it", Writer(8))
    for _ in range(20):
        ring.now += 1
        fight = ring.fights.undone("it", nameless, ring.now)
        ring.repair()
        if fight is not None:
            assert fight.undoing.who == "undoer (process 7)"
            return
    raise AssertionError("nobody was named")
