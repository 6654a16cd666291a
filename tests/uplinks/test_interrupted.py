"""A pass over policy routing that dies between its stages, and the one after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast.engine.driver import Result
from holdfast.engine.drivers import Drivers
from holdfast.engine.plan import Operation
from tests.child import in_child
from tests.namespace import Namespace
from tests.uplinks.test_policy_routes import SET, VOICE
from tests.uplinks.uplink_network import (
    HEALTH,
    LINKS,
    LTE,
    WAN,
    UplinkNetwork,
    everything,
    facts,
    policy,
)

ROUTER = {
    **LINKS, **HEALTH,
    "IPv4PolicyRouteSet/both": SET,
    "IPv4PolicyRoute/voice": VOICE % "sourceCIDRs: [10.2.0.0/24]",
    "IPv4DefaultRoutePolicy/default": policy(WAN, LTE),
}  # fmt: skip
KILLED = 9


def _die_in(stage: int, *, after: bool, work: Callable[[], object]) -> bool:
    """Whether the pass got as far as to be killed there."""

    def child() -> None:
        apply: Any = Drivers.apply
        count = 0

        def counted(
            host: Drivers, operations: Sequence[Operation], progress: Callable[[int], None]
        ) -> list[Result]:
            nonlocal count
            count += 1
            if count == stage and not after:
                os.kill(os.getpid(), KILLED)
            results: list[Result] = apply(host, operations, progress)
            if count == stage:
                os.kill(os.getpid(), KILLED)
            return results

        setattr(Drivers, "apply", counted)  # noqa: B010 (mypy knows no other way)
        work()

    _, status = os.waitpid(in_child(child), 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_making_failing_over_and_removing(
    place: UplinkNetwork, netns: Namespace, after: bool
) -> None:
    place.apply(LINKS)
    before = everything(netns)
    works: list[tuple[Callable[[], object], Callable[[], object]]] = [
        (lambda: None, lambda: place.apply(ROUTER)),
        (lambda: place.apply(ROUTER), lambda: place.apply(ROUTER, facts(wan=False))),
        (lambda: place.apply(ROUTER), lambda: place.apply(LINKS)),
    ]
    killed = []
    for prepare, work in works:
        for stage in range(1, 10):
            prepare()
            if not _die_in(stage, after=after, work=work):
                break
            killed.append(stage)
            assert place.apply(ROUTER, facts(lte=False)).converged
            assert place.plan(ROUTER, facts(lte=False)).changes == ()
            assert place.way() in ("first", "second")
            assert place.apply(LINKS).converged
            assert everything(netns) == before
        place.apply(LINKS)
    # Tables, routes and rules are made and removed in stages of their own.
    assert killed == [1, 2, 3, 1, 2, 3, 1, 2, 3]
