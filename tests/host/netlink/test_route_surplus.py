"""Routes of ours that somebody made say more than was declared, or put others beside."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import reconcile, snapshot, snapshot_form
from holdfast.engine.plan import Verb
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Report
from holdfast.paths import Paths
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger
from tests.namespace import Namespace
from tests.safety.router_scene import TAG, Scene, document, load

RESOURCES = {
    "Interface/lan": "{ifname: lan}",
    "IPv4StaticAddress/a": "{interface: lan, address: 192.0.2.1/24}",
    "IPv6StaticAddress/b": "{interface: lan, address: 'fd00::1/64'}",
    "IPv4Route/one": "{destination: 10.0.0.0/8, gateway: 192.0.2.254}",
    "IPv4Route/two": "{destination: 172.16.0.0/12, gateway: 192.0.2.254, mtu: 1400}",
    "IPv6Route/three": "{destination: 'fd01::/48', gateway: 'fd00::fe'}",
    "IPv6Route/four": "{destination: 'fd02::/48', gateway: 'fd00::fe', mtu: 1400}",
}


@pytest.fixture
def scene(netns: Namespace, root: Path) -> Scene:
    netns.veth("lan", "far")
    netns.run("sysctl", "-qw", "net.ipv6.conf.lan.accept_dad=0")
    scene = Scene(Paths(root))
    report = scene.apply(RESOURCES)
    assert report.converged, report.after
    return scene


def ours(netns: Namespace) -> list[str]:
    told = (netns.ip(f"-d -{version} route show proto 72") for version in "46")
    return sorted(line for text in told for line in text.splitlines())


def changes(report: Report) -> list[tuple[Verb, list[tuple[str, Any]]]]:
    return [
        (op.verb, [(change.field, change.before) for change in op.changes])
        for op in report.before.changes
    ]


@pytest.mark.parametrize(
    ("command", "other"),
    [
        ("route change 10.0.0.0/8 via 192.0.2.254 proto 72 advmss 1300", "advmss 1300"),
        ("route change 10.0.0.0/8 via 192.0.2.254 proto 72 initcwnd 30", "initcwnd 30"),
        ("route change 172.16.0.0/12 via 192.0.2.254 proto 72 mtu lock 1400", "lock 0x4"),
        ("route change 10.0.0.0/8 via 192.0.2.254 proto 72 realm 5", "realm 05000000"),
        ("-6 route change fd01::/48 via fd00::fe proto 72 advmss 1300", "advmss 1300"),
        ("-6 route change fd02::/48 via fd00::fe proto 72 mtu 1400 hoplimit 9", "hoplimit 9"),
        ("-6 route change fd01::/48 via fd00::fe proto 72 expires 600", "expires"),
        ("-6 route change fd01::/48 via fd00::fe proto 72 pref high", "pref 1"),
    ],
)
def test_what_nobody_declared_is_taken_off(
    scene: Scene, netns: Namespace, command: str, other: str
) -> None:
    before = ours(netns)
    netns.ip(command)
    assert ours(netns) != before
    report = scene.apply(RESOURCES)
    assert changes(report) == [(Verb.UPDATE, [("other", other)])]
    assert report.converged and not report.failures
    assert ours(netns) == before
    assert not scene.apply(RESOURCES).results


def test_a_route_for_another_tos_is_another_route(scene: Scene, netns: Namespace) -> None:
    """It once passed for the one declared, which was then deleted as a copy of it."""
    before = ours(netns)
    netns.ip("route add 10.0.0.0/8 via 192.0.2.254 tos 4 proto 72")
    netns.ip("route change 10.0.0.0/8 via 192.0.2.253 proto 72")
    report = scene.apply(RESOURCES)
    assert sorted(verb for verb, _ in changes(report)) == [Verb.DELETE, Verb.UPDATE]
    assert report.converged and not report.failures
    assert ours(netns) == before


def test_a_route_for_another_tos_does_not_do(scene: Scene, netns: Namespace) -> None:
    before = ours(netns)
    netns.ip("route del 10.0.0.0/8")
    netns.ip("route add 10.0.0.0/8 via 192.0.2.254 tos 4 proto 72")
    report = scene.apply(RESOURCES)
    assert sorted(verb for verb, _ in changes(report)) == [Verb.CREATE, Verb.DELETE]
    assert report.converged and not report.failures
    assert ours(netns) == before


def test_a_route_from_elsewhere_does_not_do(scene: Scene, netns: Namespace) -> None:
    before = ours(netns)
    netns.ip("-6 route del fd01::/48")
    netns.ip("-6 route add fd01::/48 from fd09::/64 via fd00::fe proto 72")
    report = scene.apply(RESOURCES)
    assert sorted(verb for verb, _ in changes(report)) == [Verb.CREATE, Verb.DELETE]
    assert report.converged and not report.failures
    assert ours(netns) == before


def test_the_way_back_asks_for_nothing_that_cannot_be_declared(
    scene: Scene, netns: Namespace
) -> None:
    netns.ip("route add 10.0.0.0/8 via 192.0.2.7 tos 4 proto 72")
    _, desired = load(document(RESOURCES))
    with (
        Ledger.open(scene.paths, command="test") as ledger,
        drivers.of_machine(scene.paths, TAG) as host,
    ):
        claims = ledger.claims()
        observed = host.observe(reconcile.scope(desired, claims, ledger.remembered()))
        made = plan(desired, observed, claims, Policy(host.epoch))
        before = snapshot.take(made, observed, claims, host.epoch, TAG, {}, lambda _seen: b"")
    kept = snapshot_form.unpack(snapshot_form.pack(before)).batches
    keys = [(batch.scope, key) for batch in kept for key in batch.keys]
    assert len(keys) == len(set(keys)) == 4


def test_links_whose_names_are_no_text_are_told_apart(scene: Scene, netns: Namespace) -> None:
    before = ours(netns)
    for number, name in enumerate((b"odd\xff", b"odd\xfe")):
        route = b"10.200.%d.0/24" % number
        for command in (
            (b"link", b"add", b"name", name, b"type", b"bridge"),
            (b"link", b"set", b"dev", name, b"up"),
            (b"route", b"add", route, b"dev", name, b"proto", b"72"),
        ):
            subprocess.run([b"ip", *command], check=True)
    report = scene.apply(RESOURCES)
    assert report.converged and not report.failures
    assert ours(netns) == before


def test_a_default_route_of_others_in_front_is_told(scene: Scene, netns: Namespace) -> None:
    resources = RESOURCES | {"IPv4Route/way": "{destination: 0.0.0.0/0, gateway: 192.0.2.254}"}
    assert scene.apply(resources).converged
    netns.ip("route append default via 192.0.2.7 proto static")
    assert scene.apply(resources).converged  # behind it
    netns.ip("route del default via 192.0.2.7")
    netns.ip("route prepend default via 192.0.2.7 proto static")
    report = scene.apply(resources)
    assert not report.converged and not report.results
    ((owner, reason),) = [(held.owner, held.reason) for held in report.after.blocked]
    assert owner == "IPv4Route/way"
    assert "another's stands before it (protocol static) and is used" in reason
    netns.ip("route del default via 192.0.2.7")
    assert scene.apply(resources).converged
