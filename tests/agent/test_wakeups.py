"""Nothing that is told is lost; what is told without end does not lead to passes without end."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.agent.wakeups import LONGEST_SPACING_S, TIMER, Wakeups

NEVER_S = 60.0


def test_the_timer_when_nothing_is_told() -> None:
    assert asyncio.run(Wakeups().next(0.01)) == (TIMER,)


def test_told_together_is_one_pass() -> None:
    async def told() -> None:
        wakeups = Wakeups()
        for cause in ("one", "other", "one"):
            wakeups.tell(cause)
        assert await wakeups.next(NEVER_S) == ("one", "other")
        assert await wakeups.next(0.01) == (TIMER,)

    asyncio.run(told())


def test_told_while_a_pass_runs_leads_to_another() -> None:
    async def told() -> None:
        wakeups = Wakeups()
        wakeups.tell("one", 0)
        await wakeups.next(NEVER_S)
        wakeups.tell("other", 0)  # the pass is under way
        assert await wakeups.next(NEVER_S) == ("other",)

    asyncio.run(told())


def test_told_without_end_comes_further_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock of the loop, which goes only while it is waited for."""

    async def told() -> list[float]:
        loop = asyncio.get_running_loop()
        clock = [0.0]
        wait = loop.call_at

        def jump(when: float, *rest: object, **more: object) -> object:
            clock[0] = max(clock[0], when)
            return wait(when, *rest, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "time", lambda: clock[0])
        monkeypatch.setattr(loop, "call_at", jump)
        wakeups, times = Wakeups(), []
        for _ in range(15):
            wakeups.tell_of_many("links")
            await wakeups.next(NEVER_S)
            times.append(clock[0])
        gaps = [after - before for before, after in zip([0.0, *times], times, strict=False)]
        clock[0] += 1000.0  # it is quiet for a while
        await wakeups.next(0)
        wakeups.tell_of_many("links")
        before = clock[0]
        await wakeups.next(NEVER_S)
        return [*gaps, clock[0] - before]

    *gaps, afterwards = asyncio.run(told())
    assert gaps == pytest.approx([min(0.01 * 2**n, LONGEST_SPACING_S) for n in range(15)])
    assert afterwards == pytest.approx(0.01)


def test_what_has_no_patience_does_not_wait_for_the_rest() -> None:
    async def told() -> None:
        wakeups = Wakeups()
        for _ in range(8):
            wakeups.tell_of_many("links")
            wakeups.tell("now", 0)
            await wakeups.next(NEVER_S)
        wakeups.tell_of_many("links")  # more than a second from now
        asyncio.get_running_loop().call_soon(wakeups.tell, "verdict", 0)
        async with asyncio.timeout(1):
            assert await wakeups.next(NEVER_S) == ("links", "verdict")

    asyncio.run(told())
