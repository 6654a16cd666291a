"""Every way by which a source can cause events without end leads through the one rate; what
Holdfast did is told all the same."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from holdfast.agent.configuration import Configuration
from holdfast.agent.event_stream import EventStream
from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.reconciler import Reconciler
from holdfast.agent.web.view import Loop, Seen
from holdfast.config.part import Part
from holdfast.engine import event_kinds
from holdfast.host.facts.read import read_facts
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.dynamic.effective import merge
from holdfast.resources.questions import gateways
from holdfast.resources.router import Router
from holdfast.runtime import sources
from holdfast.runtime.event_rate import MOST
from holdfast.state.events import Event, StoredEvent
from holdfast.state.ledger import Ledger
from tests.namespace import Namespace
from tests.resources.parts import NOW, admitting, part, raw
from tests.resources.routers import load
from tests.runtime.actions.plans import part as proposing
from tests.runtime.actions.plans import plan
from tests.runtime.actions.scene import Scene

SOURCE = "Owner/ci"
TURNS = 20
LINK = ("Interface", "wan", {"ifname": "wan", "managed": False})
CHECK = {"target": "192.0.2.2", "interface": "wan"}


def _counted(paths: Paths, kinds: set[str], caused: int) -> list[StoredEvent]:
    """Those that were kept of a source: so many, and one that says how many were not."""
    with Ledger.read(paths) as ledger:
        events = ledger.events()
    kept = [event for event in events if event.kind in kinds]
    told = [event for event in events if event.kind == event_kinds.EVENTS_LEFT_OUT]
    assert len(kept) == MOST
    assert [event.subject for event in told] == [SOURCE]
    assert _metric(paths) == {SOURCE: caused - MOST}
    return events


def _metric(paths: Paths) -> Mapping[str, int]:
    loop = cast(Loop, SimpleNamespace(paths=paths))
    return Seen(loop, cast(EventStream, None)).events_left_out()


@pytest.fixture
def actions(open_folder: Path) -> Scene:
    made = Scene(open_folder)
    made.prepare()
    return made


def _other_actions(scene: Scene) -> tuple[set[str], int]:
    """Five others every second."""
    scene.policy(requireApproval=True)
    for turn in range(TURNS):
        plans = [plan(f"k{turn}-{number}") for number in range(5)]
        _propose(scene, turn, *plans)
    return {"action-proposed", "action-skipped"}, 5 * TURNS + 5 * (TURNS - 1)


def _the_same_action(scene: Scene) -> tuple[set[str], int]:
    """Changed every time, as if it were another."""
    scene.policy(requireApproval=True)
    for turn in range(2 * TURNS):
        _propose(scene, turn, plan(name=f"app{turn}"))
    return {"action-proposed"}, 2 * TURNS


def _propose(scene: Scene, turn: int, *plans: dict[str, object]) -> None:
    scene.now += 0.1
    scene.parts = [proposing(*plans, generation=turn + 1)]
    scene.run()


@pytest.mark.parametrize("flood", [_other_actions, _the_same_action])
def test_actions(actions: Scene, flood: Callable[[Scene], tuple[set[str], int]]) -> None:
    _counted(actions.paths, *flood(actions))


def test_plans_that_are_refused(actions: Scene) -> None:
    for turn in range(TURNS):
        _propose(actions, turn, *(plan(f"k{one}", name=f"n{turn}-{one}", undo=7) for one in "abc"))
    _counted(actions.paths, {"action-rejected"}, 3 * TURNS)


def test_what_was_done_is_never_left_out(actions: Scene) -> None:
    actions.executor("answer('failed', error='no') if asked % 2 else answer('succeeded')")
    for turn in range(8):
        _propose(actions, turn, *(plan(f"k{turn}-{number}") for number in range(5)))
    events = _counted(actions.paths, {"action-proposed", "action-approved"}, 80)
    kinds = Counter(event.kind for event in events)
    assert (kinds["action-failed"], kinds["action-succeeded"]) == (20, 20)


@pytest.mark.usefixtures("files_are_whole")
def test_parts_that_are_handed_in_and_withdrawn(root: Path) -> None:
    root.mkdir()
    load(root, LINK, admitting())
    configuration = Configuration(Paths(root), root / "router.yaml")
    configuration.read(again=True)
    for turn in range(2 * TURNS):
        given = part(SOURCE, _route(turn), generation=turn + 1, observed=time.time())
        with Ledger.open(configuration.paths, command="test") as ledger:
            sources.put(ledger, given)
        configuration.read(again=False)
        with Ledger.open(configuration.paths, command="test") as ledger:
            sources.withdraw(ledger, SOURCE)
        configuration.read(again=False)
    _counted(configuration.paths, {"part-accepted", "part-ended"}, 4 * TURNS)


def _route(number: int) -> dict[str, object]:
    spec = {"destination": f"10.0.{number}.0/24", "gateway": "192.0.2.2", "interface": "wan"}
    return raw("IPv4Route", f"r{number}", spec)


class Passes:
    def __init__(self, root: Path) -> None:
        self.paths = Paths(root)
        self.file = load(
            root,
            LINK,
            admitting(),
            ("HealthCheck", "b", CHECK),
        )
        self.reconciler = Reconciler(self.paths)

    def run(self, *parts: Part) -> None:
        router: Router | None = merge(self.file, parts, NOW).router
        assert router is not None
        desired = compile_router(router, read_facts(self.paths, (), gateways(router)))
        self.reconciler.full(router, desired, PendingHints())


@pytest.fixture
def passes(netns: Namespace, root: Path) -> Iterator[Passes]:
    root.mkdir()
    netns.veth("wan", "far", "192.0.2.1/24")
    made = Passes(root)
    yield made
    made.reconciler.close()


def test_conflicts_of_what_it_declares(passes: Passes, netns: Namespace) -> None:
    for number in range(2 * TURNS):
        netns.ip(f"route add 10.0.{number}.0/24 via 192.0.2.9 proto static")
    passes.run()
    passes.run(part(SOURCE, *map(_route, range(2 * TURNS))))
    _counted(passes.paths, {"conflict"}, 2 * TURNS)


def test_routes_that_it_made_are_all_told(passes: Passes) -> None:
    passes.run()
    for turn in range(2 * TURNS):
        passes.run(part(SOURCE, _route(turn), generation=turn + 1))
    with Ledger.read(passes.paths) as ledger:
        kinds = Counter(event.kind for event in ledger.events())
    assert (kinds["created"], kinds["deleted"]) == (2 * TURNS, 2 * TURNS - 1)


@pytest.mark.parametrize("declared", ["in a part", "in the file"])
def test_checks_that_flap(passes: Passes, declared: str) -> None:
    name = "HealthCheck/a" if declared == "in a part" else "HealthCheck/b"
    parts = [part(SOURCE, raw("HealthCheck", "a", CHECK))]
    states = itertools.cycle((event_kinds.HEALTHY, event_kinds.UNHEALTHY))
    for state, _ in zip(states, range(2 * TURNS), strict=False):
        passes.reconciler.beside.append(Event(state, name, "as it is"))
    passes.run(*parts)
    if declared == "in a part":
        _counted(passes.paths, {"healthy", "unhealthy"}, 2 * TURNS)
    else:
        assert not _metric(passes.paths)
