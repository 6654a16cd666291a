"""Nothing that is told is lost; what is told without end does not lead to passes without end."""

from __future__ import annotations

import asyncio
import math

import pytest

from holdfast.agent.pass_schedule import TIMER, PassSchedule, Reason
from holdfast.agent.watch.hint import Hint, Writer
from holdfast.engine.artifact import Key

NEVER_S = 60.0
RULE = Hint("rule", Key("rule", "1: from all lookup 9"), writer=Writer(7, "ip"))


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def causes(reason: Reason) -> tuple[str, ...]:
    assert reason.full
    return reason.causes


class Clock:
    """That of the loop, which goes only while it is waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        loop = asyncio.get_running_loop()
        wait = loop.call_at

        def jump(when: float, *rest: object, **more: object) -> object:
            self.now = max(self.now, when)
            return wait(when, *rest, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "time", lambda: self.now)
        monkeypatch.setattr(loop, "call_at", jump)


def test_the_timer_when_nothing_is_told() -> None:
    async def wait() -> Reason:
        return await PassSchedule().next(later(0.01))

    assert causes(asyncio.run(wait())) == (TIMER,)


def test_told_together_is_one_pass() -> None:
    async def told() -> None:
        wakeups = PassSchedule()
        for cause in ("one", "other", "one"):
            wakeups.tell(cause)
        assert causes(await wakeups.next(later(NEVER_S))) == ("one", "other")
        assert causes(await wakeups.next(later(0.01))) == (TIMER,)

    asyncio.run(told())


def test_told_while_a_pass_runs_leads_to_another() -> None:
    async def told() -> None:
        wakeups = PassSchedule()
        wakeups.tell("one", 0)
        await wakeups.next(later(NEVER_S))
        wakeups.tell("other", 0)  # the pass is under way
        wakeups.hint(RULE)
        assert causes(await wakeups.next(later(NEVER_S))) == ("other",)

    asyncio.run(told())


def test_a_hint_leads_to_a_partial_pass_and_a_full_one_still_comes() -> None:
    async def told() -> None:
        wakeups = PassSchedule()
        wakeups.tell("links", 0.1)
        wakeups.hint(RULE)
        reason = await wakeups.next(later(NEVER_S))
        assert not reason.full
        assert reason.gathered.touched.keys == {RULE.key}
        assert reason.gathered.writer(RULE.key, "rule") == Writer(7, "ip")
        reason = await wakeups.next(later(NEVER_S))
        assert causes(reason) == ("links",)
        assert not reason.gathered

    asyncio.run(told())


def test_a_full_pass_takes_what_was_gathered_along() -> None:
    async def told() -> None:
        wakeups = PassSchedule()
        wakeups.hint(RULE)
        wakeups.tell("links", 0)
        reason = await wakeups.next(later(NEVER_S))
        assert causes(reason) == ("links",)
        assert reason.gathered.all_kinds == {"rule"}
        assert causes(await wakeups.next(later(0.01))) == (TIMER,)

    asyncio.run(told())


def test_who_it_was_is_known_though_the_pass_found_it_before_the_hint_came() -> None:
    async def told() -> None:
        wakeups = PassSchedule()
        wakeups.tell("links", 0)
        found = (await wakeups.next(later(NEVER_S))).gathered
        assert found.writer(RULE.key, "rule") is None
        wakeups.hint(RULE)  # the pass is under way
        assert found.writer(RULE.key, "rule") == Writer(7, "ip")
        assert found.writer(Key("rule", "2: from all lookup 9"), "rule") is None
        assert not found  # and what came since is left to the next one
        assert (await wakeups.next(later(NEVER_S))).gathered.all_kinds == {"rule"}

    asyncio.run(told())


def test_passes_without_end_take_a_share_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told() -> tuple[list[float], float]:
        clock = Clock(monkeypatch)
        wakeups, times = PassSchedule(), []
        for number in range(400):
            (wakeups.tell_of_many("links") if number % 2 else wakeups.hint(RULE))
            reason = await wakeups.next(later(NEVER_S))
            times.append(clock.now)
            wakeups.spent(reason, 0.01)
            clock.now += 0.01
        clock.now += 1000.0  # it is quiet for a while
        wakeups.hint(RULE)
        before = clock.now
        await wakeups.next(later(NEVER_S))
        return times, clock.now - before

    times, afterwards = asyncio.run(told())
    # The first few at once, the rest so that they take a fifth of the time.
    assert times[20] < 0.6
    assert 0.04 < (times[-1] - times[100]) / 299 < 0.06
    assert afterwards < 0.005


def test_something_to_be_tried_again_wakes_it() -> None:
    async def told() -> None:
        reason = await PassSchedule().next(later(NEVER_S), later(0.01))
        assert not reason.full
        assert not reason.gathered

    asyncio.run(told())


def test_what_has_no_patience_does_not_wait_for_the_rest() -> None:
    async def told() -> None:
        wakeups = PassSchedule()
        wakeups.hint(RULE)
        wakeups.spent(await wakeups.next(later(NEVER_S)), 10.0)
        wakeups.tell_of_many("links")  # five seconds from now
        asyncio.get_running_loop().call_soon(wakeups.tell, "verdict", 0)
        async with asyncio.timeout(3):
            assert causes(await wakeups.next(later(NEVER_S))) == ("links", "verdict")

    asyncio.run(told())


def test_more_than_can_be_told_apart() -> None:
    async def told() -> None:
        wakeups = PassSchedule()
        for number in range(2000):
            wakeups.hint(Hint("file", Key("file", f"/etc/{number}")))
        for number in range(25_000):
            wakeups.hint(Hint("route", identity=number.to_bytes(4, "big")))
        reason = await wakeups.next(math.inf)
        assert {"file", "route"} <= reason.gathered.touched.kinds
        assert len(reason.gathered.keys) <= 1000
        assert len(reason.gathered.routes) <= 20_000

    asyncio.run(told())


def test_what_nobody_else_gave_cause_for_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told() -> None:
        clock = Clock(monkeypatch)
        wakeups = PassSchedule()
        wakeups.tell("the start", 0)
        wakeups.tell_of_many("links")
        wakeups.spent(await wakeups.next(later(NEVER_S)), 100.0)
        wakeups.hint(RULE)
        before = clock.now
        assert not (await wakeups.next(later(NEVER_S))).full
        assert clock.now < before + 1

    asyncio.run(told())


def test_the_next_one_comes_within_seconds_whatever_the_last_one_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def told() -> float:
        clock = Clock(monkeypatch)
        wakeups = PassSchedule()
        wakeups.hint(RULE)
        wakeups.spent(await wakeups.next(later(NEVER_S)), 100.0)
        wakeups.hint(RULE)
        before = clock.now
        await wakeups.next(later(NEVER_S))
        return clock.now - before

    assert 4 < asyncio.run(told()) < 6
