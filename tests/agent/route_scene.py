"""Routes of a few resources in a namespace, passes over a few of them, and who else is at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.agent.route_changes import RouteChanges
from holdfast.agent.watch.hint import Hint
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.drivers import Drivers
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds import route
from holdfast.engine.partial_pass import FullPassNeeded, context_after
from holdfast.engine.plan import Operation
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report, scope
from holdfast.host.netlink.messages import Dump
from holdfast.host.netlink.routes.route_notifications import RouteListener
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.resources.routes.route_line import Defaults
from holdfast.resources.routes.route_lines import read_exactly
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger
from tests.namespace import Namespace

TAG = 72
LINK = Key("link", "wan")


def declared(*lines: str, owner: str = "RouteList/routes") -> Desired:
    """Routes as a RouteList has them."""
    read = read_exactly([lines], Defaults())
    assert not read.faults
    return Desired(
        tuple(
            BulkIntent(owner, route.batch(shared, keys), "routes.txt", (LINK,))
            for shared, keys in read.groups.items()
        )
    )


@dataclass(slots=True)
class RouteScene:
    netns: Namespace
    host: Drivers
    ledger: Ledger
    known: RouteChanges = field(default_factory=RouteChanges)
    dumps: list[str] = field(default_factory=list)
    doubt: str = ""  # why the last pass over a few was none
    _hints: list[Hint] = field(default_factory=list)

    @property
    def policy(self) -> Policy:
        return Policy(epoch=self.host.epoch, allow_mass_delete=True)

    def full(self, desired: Desired) -> Report:
        report = Pass(desired, self.host, self.ledger, self.policy).run(lambda _plan: None)
        seen = self.host.observe(scope(desired, self.ledger.claims(), self.ledger.remembered()))
        context = context_after(desired, report.after, seen.sightings)
        self.known.remember(context, self.policy, TAG)
        return report

    def few(self, desired: Desired) -> Report | None:
        """None: it says that a full pass is needed. Whatever is said, nothing is dumped."""
        hints, self._hints = self._hints, []
        self.dumps.clear()
        self.doubt = ""
        try:
            began = self.known.begin(desired, self.policy, TAG, hints, self.host, self.ledger)
            report = Pass(began.desired, began, began, self.policy).run(began.approve)
        except FullPassNeeded as why:
            self.doubt = str(why)
            return None
        report = began.settled(report)
        self.doubt = began.problem
        return None if began.problem else report

    def left(self, desired: Desired) -> tuple[Operation, ...]:
        """What a look at everything finds to do."""
        return Pass(desired, self.host, self.ledger, self.policy).plan().changes

    @contextmanager
    def others(self) -> Iterator[None]:
        """What happens meanwhile is told as the watch would tell it."""
        with RouteListener() as listener:
            yield
            told = listener.read()
        assert told is not None
        self._hints += [
            Hint("route", None, one.identity, None, one.gone, one.body, one.replaced)
            for one in told
        ]

    def ip(self, *commands: str) -> None:
        with self.others():
            for command in commands:
                self.netns.ip(command)


@contextmanager
def route_scene(netns: Namespace, root: Path, patch: pytest.MonkeyPatch) -> Iterator[RouteScene]:
    netns.veth("wan", "far", "192.0.2.1/24", "2001:db8::1/64")
    paths = Paths(root)
    with Ledger.open(paths, command="test") as ledger, drivers.of_machine(paths, TAG) as host:
        scene = RouteScene(netns, host, ledger)
        dump_runs = NetlinkSocket.dump_runs

        def noting(sock: NetlinkSocket, kind: int, header: bytes, what: str) -> Dump:
            if "routes" in what:
                scene.dumps.append(what)
            return dump_runs(sock, kind, header, what)

        patch.setattr(NetlinkSocket, "dump_runs", noting)
        try:
            yield scene
        finally:
            scene.known.close()


def verbs(report: Report | None) -> list[tuple[str, int]]:
    assert report is not None
    assert report.failures == ()
    return sorted((op.verb.value, op.count) for op in report.before.changes)


def names(report: Report) -> set[str]:
    found = set()
    for op in report.before.changes:
        keys = () if isinstance(op.subject, Artifact) else op.subject.keys
        found |= {route.destination(key) for key in keys}
    return found
