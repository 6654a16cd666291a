"""The daemon beside FRR: what is typed is repaired, what ends is noticed, sessions are told of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.paths import Paths
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger
from tests.agent.daemon import Daemon
from tests.cli.served import daemon
from tests.frr.ground import wait_until
from tests.routing.scene import NEIGHBOUR, ROUTING, Scene

BY_HAND = "ip prefix-list BY-HAND seq 5 permit 10.0.0.0/8\n"


@pytest.fixture
def served(scene: Scene) -> Iterator[Daemon]:
    scene.frr.configure(BY_HAND)
    scene.declare(*ROUTING)
    with daemon(scene.holdfast, scene.holdfast.folder / "router.yaml") as running:
        scene.wait_for_routes(2)
        running.rest()
        yield running


def events(scene: Scene, kind: str) -> list[StoredEvent]:
    with Ledger.read(Paths(scene.holdfast.root)) as ledger:
        return [event for event in ledger.events() if event.kind == kind]


def repaired(scene: Scene, subject: str) -> bool:
    return any(event.subject.startswith(subject) for event in events(scene, "repaired"))


def ours(scene: Scene) -> list[str]:
    """Beside what was written by hand, which other daemons know of, too."""
    return sorted(line for line in scene.bgp_lines() if "BY-HAND" not in line)


@pytest.mark.usefixtures("served")
def test_what_is_typed_is_repaired_and_named(scene: Scene) -> None:
    before = scene.bgp_lines()
    scene.frr.configure(f"router bgp 65001\nno neighbor {NEIGHBOUR}\n")
    wait_until("the peer is back", lambda: scene.bgp_lines() == before)
    wait_until("it is told", lambda: repaired(scene, "bgp_peer"))
    scene.frr.configure("no router bgp 65001\n")
    wait_until("all of BGP is back", lambda: sorted(scene.bgp_lines()) == sorted(before))
    wait_until("it is told", lambda: repaired(scene, "bgp_instance default"))
    scene.wait_for_routes(2)


@pytest.mark.usefixtures("served")
def test_a_daemon_that_was_killed_is_configured_anew(scene: Scene) -> None:
    before = ours(scene)
    scene.frr.kill("bgpd")
    wait_until("its end is told", lambda: events(scene, "daemon-ended"))
    status = scene.holdfast.run("status").out
    assert "bgpd of FRR cannot be asked" in status
    scene.frr.start("bgpd")
    wait_until("its return is told", lambda: events(scene, "daemon-back"))
    wait_until("it is configured", lambda: ours(scene) == before)
    scene.wait_for_routes(2)
    # watchfrr has vtysh load frr.conf late, which somebody wrote into once.
    theirs = " neighbor 192.0.2.9 remote-as 65009"
    late = f"router bgp 65001\n neighbor {NEIGHBOUR} description of frr.conf\n{theirs}\nexit\n"
    scene.frr.load(f"{BY_HAND}{late}")
    wait_until("it is as declared, with theirs", lambda: ours(scene) == sorted([*before, theirs]))
    assert BY_HAND.strip() in scene.config()
    scene.wait_for_routes(2)


@pytest.mark.usefixtures("served")
def test_sessions_are_told_of(scene: Scene) -> None:
    status = scene.holdfast.ok("status").out
    assert "established since" in status
    assert "0 prefixes received and 2 sent (IPv4)" in status
    wait_until("the session is told of", lambda: events(scene, "session-up"))
    scene.bird.ask("disable up")
    wait_until("its end is told", lambda: events(scene, "session-down"))
    event = events(scene, "session-down")[-1]
    assert event.subject == f"bgp_peer {NEIGHBOUR}"
    assert event.data["owners"] == ["BGPPeer/upstream"]
    wait_until(
        "status says so",
        lambda: "the session is not established" in scene.holdfast.run("status").out,
    )
    assert scene.holdfast.run("status").code != 0
    scene.bird.ask("enable up")
    wait_until("it is up again", lambda: scene.holdfast.run("status").code == 0)
    wait_until("that is told", lambda: events(scene, "session-up")[-1].sequence > event.sequence)
