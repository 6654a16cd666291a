"""The daemon's passes over a few routes: what they record, and when they leave it to a full one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.reconciler import Done, Reconciler
from holdfast.agent.watch.hint import Hint
from holdfast.engine.intent import Desired
from holdfast.engine.partial_pass import Touched
from holdfast.engine.plan import Plan
from holdfast.errors import Refused
from holdfast.host.facts.read import read_facts
from holdfast.host.netlink.routes.route_notifications import RouteListener
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.questions import gateways
from holdfast.resources.router import Router, load_router
from holdfast.state.ledger import Ledger
from tests.namespace import Namespace

CONFIG = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: wan}
      spec: {ifname: wan, managed: false}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: RouteList
      metadata: {name: routes}
      spec: {file: routes.txt, gateway: 192.0.2.2, interface: wan}
"""
LINES = [f"10.0.{number}.0/24" for number in range(100)]


@dataclass(slots=True)
class Scene:
    netns: Namespace
    folder: Path
    paths: Paths
    reconciler: Reconciler
    router: Router | None = None
    hints: list[Hint] = field(default_factory=list)

    def load(self, lines: list[str], config: str = CONFIG) -> Router:
        (self.folder / "router.yaml").write_text(config)
        (self.folder / "routes.txt").write_text("".join(f"{line}\n" for line in lines))
        file = self.folder / "router.yaml"
        self.router = load_router(file, self.paths.root, again=self.router)
        return self.router

    def compiled(self, router: Router) -> Desired:
        return compile_router(router, read_facts(self.paths, (), gateways(router)))

    def full(self, router: Router) -> Done:
        return self.reconciler.full(router, self.compiled(router), self._gathered())

    def routes(self, router: Router, refusal: str = "") -> Done | None:
        return self.reconciler.partial(
            self._gathered(), router, self.compiled(router), guard=lambda _plan: refusal
        )

    def partial(self) -> Done | None:
        return self.reconciler.partial(self._gathered())

    def ip(self, command: str) -> None:
        with RouteListener() as listener:
            self.netns.ip(command)
            for one in listener.read() or ():
                hint = Hint("route", None, one.identity, None, one.gone, one.body, one.replaced)
                self.hints.append(hint)

    def there(self) -> set[str]:
        return {one["dst"] for one in self.netns.ip_json("route show proto 72")}

    def _gathered(self) -> PendingHints:
        found = PendingHints()
        for hint in self.hints:
            found.add(hint, 1.0)
        self.hints = []
        return found


@pytest.fixture
def scene(netns: Namespace, tmp_path: Path) -> Iterator[Scene]:
    netns.veth("wan", "far", "192.0.2.1/24")
    reconciler = Reconciler(Paths(tmp_path / "root"))
    try:
        yield Scene(netns, tmp_path, reconciler.paths, reconciler)
    finally:
        reconciler.close()


def test_an_edit_is_recorded_as_any_pass_is(scene: Scene) -> None:
    first = scene.full(scene.load(LINES))
    router = scene.load([*LINES, "198.51.100.0/24"])
    done = scene.routes(router)
    assert done is not None
    assert done.partial
    assert done.generation == first.generation + 1
    assert done.report.converged
    assert "198.51.100.0/24" in scene.there()
    with Ledger.read(scene.paths) as ledger:
        assert ledger.generations(1)[0].state == "converged"
        stored = ledger.generation_files(done.generation)
        assert stored[str(scene.folder / "routes.txt")].endswith(b"198.51.100.0/24\n")
        last = ledger.events()[-1]
    assert (last.kind, last.subject) == ("created", "route 198.51.100.0/24")
    assert last.generation == done.generation
    assert last.data["owners"] == ["RouteList/routes"]


def test_what_is_left_is_told_of_everything(scene: Scene) -> None:
    scene.full(scene.load(LINES))
    done = scene.routes(scene.load(LINES[1:]))
    assert done is not None
    kept = [op for op in done.report.after.operations if op.kind == "route"]
    assert sum(op.count for op in kept) == 99


def test_edits_that_are_not_of_routes_are_left_to_a_full_pass(scene: Scene) -> None:
    scene.full(scene.load(LINES))
    more = CONFIG + (
        "    - apiVersion: net.holdfast.dev/v1alpha1\n"
        "      kind: IPv4StaticAddress\n"
        "      metadata: {name: more}\n"
        "      spec: {interface: wan, address: 203.0.113.1/24}\n"
    )
    assert scene.routes(scene.load(LINES, more)) is None


def test_a_refusal_touches_nothing(scene: Scene) -> None:
    scene.full(scene.load(LINES))
    before = scene.there()
    with pytest.raises(Refused, match="80 of 100 owned"):
        scene.routes(scene.load(LINES[:20]))
    with pytest.raises(Refused, match="the operator"):
        scene.routes(scene.load(LINES[1:]), refusal="the operator would be cut off")
    assert scene.there() == before
    # What only leads somewhere is not asked about.
    assert scene.routes(scene.load([*LINES, "198.51.100.0/24"]), refusal="not this") is not None


def test_another_command_that_applied_something_is_noticed(scene: Scene) -> None:
    scene.full(scene.load(LINES))
    other = scene.load(LINES[1:])
    with Ledger.open(scene.paths, command="test") as ledger:
        ledger.begin_generation(other.files)
    assert scene.routes(scene.load([*LINES, "198.51.100.0/24"])) is None


def test_drift_is_repaired_and_told(scene: Scene) -> None:
    scene.full(scene.load(LINES))
    before = scene.there()
    scene.ip("route del 10.0.7.0/24")
    done = scene.partial()
    assert done is not None
    assert done.partial
    assert [event.kind for event in done.events] == ["repaired"]
    assert scene.there() == before


def test_a_route_that_is_fought_over_is_left_and_looked_at_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By looks at that route alone."""
    scene.full(scene.load(LINES))
    there, now = scene.there(), 1000.0
    scene.reconciler.clock = lambda: now
    monkeypatch.setattr(Reconciler, "full", lambda *_arguments, **_options: pytest.fail("full"))
    kinds: list[str] = []
    left: list[int] = []
    while not left and now < 1100:
        now += 0.1
        scene.ip("route del 10.0.7.0/24")
        done = scene.partial()
        assert done is not None
        kinds += [event.kind for event in done.events]
        left = [op.count for op in done.report.after.changes]
    assert left == [1]
    assert "fight" in kinds
    assert scene.there() == there - {"10.0.7.0/24"}
    # Others are repaired meanwhile.
    scene.ip("route del 10.0.8.0/24")
    done = scene.partial()
    assert done is not None
    assert [op.count for op in done.report.after.changes] == [1]
    assert scene.there() == there - {"10.0.7.0/24"}
    # Its time comes, and a look at it finds out what is there now.
    now += 3600
    gathered = PendingHints()
    gathered.touch(Touched(), scene.reconciler.patience.overdue_routes(now), now)
    done = scene.reconciler.partial(gathered)
    assert done is not None
    assert done.report.after.changes == ()
    assert scene.there() == there


@pytest.mark.parametrize("interface", [", interface: wan", ""])
def test_a_route_that_cannot_be_made_is_tried_again_alone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, interface: str
) -> None:
    """As its gateway is nowhere. That is no reason to look at everything, and it is told once."""
    config = CONFIG.replace(", interface: wan", interface)
    now = 1000.0
    scene.reconciler.clock = lambda: now
    first = scene.full(scene.load([*LINES, "10.200.0.0/16 via 203.0.113.1 dev wan"], config))
    assert "create-failed" in [event.kind for event in first.events]
    monkeypatch.setattr(Reconciler, "full", lambda *_arguments, **_options: pytest.fail("full"))

    def again() -> Done:
        nonlocal now
        now += 100
        gathered = PendingHints(overdue=now)
        gathered.touch(Touched(), scene.reconciler.patience.overdue_routes(now), now)
        done = scene.reconciler.partial(gathered)
        assert done is not None
        assert not done.untried
        assert not done.report.after.unknown
        return done

    for _ in range(3):
        done = again()
        assert [op.count for op in done.report.after.changes] == [1]
        assert done.events == ()
        # One that was deleted is repaired as ever.
        scene.ip("route del 10.0.7.0/24")
        done_meanwhile = scene.partial()
        assert done_meanwhile is not None
        assert [event.kind for event in done_meanwhile.events] == ["repaired"]
    scene.netns.ip("addr add 203.0.113.2/24 dev wan")
    done = again()
    assert done.report.after.changes == ()
    assert "10.200.0.0/16" in scene.there()


def test_a_route_that_waits_for_its_link_is_in_nobodys_way(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No link has its gateway, though a default route leads there."""
    scene.netns.veth("ppp0", "farp")
    scene.netns.ip("route add default dev ppp0")
    lines = [*LINES, "10.200.0.0/16 via 203.0.113.1"]
    first = scene.full(scene.load(lines))
    assert [event.kind for event in first.events] == ["created"]
    (held,) = first.report.after.pending
    assert held.reason.startswith("waits for the link of gateway 203.0.113.1")
    assert "10.200.0.0/16" not in scene.there()
    with monkeypatch.context() as patch:
        patch.setattr(Reconciler, "full", lambda *_arguments, **_options: pytest.fail("full"))
        scene.ip("route del 10.0.7.0/24")
        done = scene.partial()
        assert done is not None
        assert [event.kind for event in done.events] == ["repaired"]
        assert done.report.after.pending == (held,)
        router = scene.load([*lines, "198.51.100.0/24"])
        done = scene.routes(router)
        assert done is not None
        assert done.report.after.pending == (held,)
    scene.netns.ip("addr add 203.0.113.2/24 dev wan")
    done = scene.full(router)
    assert done.report.converged and not done.report.after.pending
    assert "10.200.0.0/16" in scene.there()


def test_what_other_kinds_lack_is_not_forgotten_over_routes(scene: Scene) -> None:
    """A rule that is fought over and left for now, and then a route that somebody deletes."""
    rule = (
        "    - apiVersion: net.holdfast.dev/v1alpha1\n"
        "      kind: RoutingRule\n"
        "      metadata: {name: marked}\n"
        "      spec: {priority: 100, fwmark: 7, table: 100}\n"
    )
    now = 1000.0
    scene.reconciler.clock = lambda: now
    scene.full(scene.load(LINES, CONFIG + rule))

    def over_rules() -> Done:
        gathered = PendingHints()
        gathered.add(Hint("rule"), now)
        done = scene.reconciler.partial(gathered)
        assert done is not None
        return done

    done = over_rules()
    while done.report.converged:
        now += 0.1
        scene.netns.ip("rule del priority 100")
        done = over_rules()
    for _ in range(2):
        scene.ip("route del 10.0.7.0/24")
        done = scene.partial() or pytest.fail("a look at single routes will do")
        assert [op.kind for op in done.report.after.changes] == ["rule"]
        assert not done.report.converged
        assert [event.kind for event in done.events] == ["repaired"]
    # Nor is it found again as if it were news.
    assert not [event for event in over_rules().events if event.kind == "drift"]


def test_a_foreign_route_in_the_way_leads_to_a_full_pass(scene: Scene) -> None:
    scene.full(scene.load(LINES))
    scene.netns.ip("route add 198.51.100.0/24 via 192.0.2.9 proto static")
    router = scene.load([*LINES, "198.51.100.0/24"])
    done = scene.routes(router)
    assert done is not None
    assert done.untried
    assert not done.report.converged
    assert scene.routes(router) is None
    assert len(scene.full(router).report.after.conflicts) == 1


def test_a_pass_that_fails_leaves_nothing_to_build_upon(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.full(scene.load(LINES))
    router = scene.load([*LINES, "198.51.100.0/24"])

    def broken(_ledger: Ledger, _files: object) -> int:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "begin_generation", broken)
        with pytest.raises(OSError, match="no space"):
            scene.routes(router)
    assert scene.routes(router) is None
    assert scene.full(router).report.converged


def test_another_tag_is_left_to_a_full_pass(scene: Scene) -> None:
    scene.full(scene.load(LINES))
    other = CONFIG.replace("spec:\n  resources", "spec:\n  ownership: {tag: 77}\n  resources", 1)
    assert scene.routes(scene.load([*LINES, "198.51.100.0/24"], other)) is None


def test_before_the_first_pass_nothing_is_known(scene: Scene) -> None:
    assert scene.routes(scene.load(LINES)) is None
    assert scene.there() == set()


def test_a_plan_is_made_for_what_was_asked_about(scene: Scene) -> None:
    """The guard sees everything, as that of a full pass does."""
    scene.full(scene.load(LINES))
    seen: list[Plan] = []

    def guard(plan: Plan) -> str:
        seen.append(plan)
        return ""

    router = scene.load(LINES[1:])
    scene.reconciler.partial(PendingHints(), router, scene.compiled(router), guard=guard)
    (plan,) = seen
    assert [op.verb.value for op in plan.changes] == ["delete"]
    assert sum(op.count for op in plan.operations if op.verb.value == "keep") == 99
