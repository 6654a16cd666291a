"""The daemon at work: a provider falls silent and comes back, with flows under way."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import CHECK, PORT, ROUTER, SERVER, Flow, TwoProviders, until
from tests.namespace import Namespace
from tests.safety.router_scene import document

DOWN = "HealthCheck/wan is unhealthy: 2 times in a row: no answer from 192.0.2.254 within 0.1 s"
UP = "HealthCheck/wan is healthy: answered 2 times in a row"


@contextmanager
def at_work(root: Path, resources: Mapping[str, str] = ROUTER) -> Iterator[Daemon]:
    file = root / "router.yaml"
    file.write_text(document(resources))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        daemon.wait_for(UP)
        yield daemon


def takes(place: TwoProviders, provider: str) -> None:
    until(lambda: place.way(0.2) == provider, f"new flows go over the {provider} provider")


@contextmanager
def datagrams(place: TwoProviders) -> Iterator[socket.socket]:
    with place.client.inside():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with made:
        made.connect((SERVER, PORT))
        yield made


def way_of(place: TwoProviders, flow: socket.socket) -> str:
    place.drain()
    flow.send(b"again")
    return place.arrival()[1]


@contextmanager
def connected(place: TwoProviders) -> Iterator[Flow]:
    flow = place.connect()
    try:
        yield flow
    finally:
        flow.close()


def test_new_flows_go_to_the_second_provider_and_back(place: TwoProviders, root: Path) -> None:
    with (
        at_work(root) as daemon,
        connected(place) as old,
        datagrams(place) as moved,
        datagrams(place) as later,
    ):
        assert place.way() == way_of(place, moved) == "first"
        place.cut()
        takes(place, "second")
        assert DOWN in daemon.said()
        # Its way is down: it goes on by the other one, and stays there.
        old.talk()
        assert way_of(place, moved) == "second"
        with connected(place) as young:
            assert way_of(place, later) == "second"
            place.mend()
            takes(place, "first")
            assert way_of(place, moved) == way_of(place, later) == "second"
            young.talk()
        old.talk()
        daemon.wait_for(UP, 2)
        assert daemon.end() == 0
    assert place.way() == "first"
    with Ledger.read(Paths(root)) as ledger:
        told = [event for event in ledger.events() if event.subject == "HealthCheck/wan"]
    assert [event.kind for event in told] == ["healthy", "unhealthy", "healthy"]
    assert DOWN.endswith(f": {told[1].message}") and told[1].generation == 1


def test_a_candidate_that_only_its_check_misses(place: TwoProviders, root: Path) -> None:
    """The verdict counts, not what still gets through: flows leave it, none is lost."""
    with at_work(root), connected(place) as flow, datagrams(place) as other:
        assert way_of(place, other) == "first"
        place.cut("ip protocol icmp drop")
        takes(place, "second")
        flow.talk()
        assert way_of(place, other) == "second"


def test_flows_of_a_healthy_candidate_do_not_notice(place: TwoProviders, root: Path) -> None:
    """Those over the second stay while the first comes and goes; nothing of theirs is lost."""
    with at_work(root) as daemon:
        place.cut()
        takes(place, "second")
        with connected(place) as flow, datagrams(place) as other:
            assert way_of(place, other) == "second"
            for times in (1, 2):
                place.mend()
                takes(place, "first")
                flow.talk()
                place.cut()
                daemon.wait_for("is unhealthy", times + 1)
                takes(place, "second")
                flow.talk()
                assert way_of(place, other) == "second"


def test_target_behind_the_provider(place: TwoProviders, root: Path) -> None:
    """While another candidate is the default no route leads there but that of the check's own."""
    check = f"{{target: {SERVER}, interface: wan, {CHECK}}}"
    with at_work(root, {**ROUTER, "HealthCheck/wan": check}):
        assert place.way() == "first"
        place.cut()
        takes(place, "second")
        place.mend()
        takes(place, "first")


def test_killed_and_started_again(place: TwoProviders, root: Path, netns: Namespace) -> None:
    """A verdict outlives the daemon: it does not go back to a provider that is still silent."""
    with at_work(root) as daemon:
        place.cut()
        takes(place, "second")
        daemon.wait_for("because of HealthCheck/wan")
        daemon.signal(signal.SIGKILL)
        daemon.process.wait()
    assert place.way() == "second"
    before = (netns.run("nft", "list", "ruleset"), netns.ip("rule show"))
    with Ledger.read(Paths(root)) as ledger:
        claims = ledger.claims()
    with connected(place) as flow, serve(root, root / "router.yaml") as daemon:
        daemon.wait_for("read: ")
        until(lambda: '"wan"' in verdicts(root), "the verdicts are written again")
        for _ in range(20):
            assert place.way() == "second"
        assert (netns.run("nft", "list", "ruleset"), netns.ip("rule show")) == before
        with Ledger.read(Paths(root)) as ledger:
            assert ledger.claims().keys() == claims.keys()
        flow.talk()
        place.mend()
        takes(place, "first")
        assert daemon.end() == 0
    with Ledger.read(Paths(root)) as ledger:
        assert not ledger.check()


def verdicts(root: Path) -> str:
    return (root / "run/holdfast/verdicts.json").read_text()
