"""What worked before a change on trial has to work after it, or the change is taken back."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from holdfast.paths import Paths
from holdfast.resources.router import load_router
from holdfast.runtime import operators
from holdfast.runtime.confirm import lifeline_probes, lifelines
from holdfast.runtime.confirm.lifelines import Lifeline
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.cli import confirm_scene as scene
from tests.cli.conftest import HEAD, Holdfast
from tests.firewall.hosts import Host, new_host
from tests.namespace import Namespace

WAN = "net Interface wan {ifname: wan0, adminUp: true}"
ADDRESS = "net IPv4StaticAddress wan {interface: wan, address: 192.0.2.1/24}"
OTHER = "net IPv4StaticAddress wan {interface: wan, address: 192.0.3.1/24}"
BESIDE = "net IPv4StaticAddress beside {interface: wan, address: 192.0.3.1/24}"
DEFAULT = "net IPv4Route default {destination: 0.0.0.0/0, gateway: 192.0.2.254}"
MOVED = "net IPv4Route default {destination: 0.0.0.0/0, gateway: 192.0.2.253}"
AWAY = "net IPv4Route away {destination: 198.51.100.0/24, type: blackhole}"
TARGETS = HEAD.replace("spec:\n", "spec:\n  confirm: {targets: ['198.51.100.9:7', 198.51.100.9]}\n")
TAG = 72


@pytest.fixture
def provider(holdfast: Holdfast, netns: Namespace) -> Iterator[Host]:
    """It is two gateways, and leads to a server. The router reaches both by what is declared."""
    with new_host() as host:
        netns.ip(
            f"link add wan0 type veth peer name isp0 netns /proc/{os.getpid()}/fd/{host.namespace}"
        )
        host.ip(
            "link set isp0 up",
            "addr add 192.0.2.254/24 dev isp0",
            "addr add 192.0.2.253/24 dev isp0",
            "addr add 198.51.100.9/32 dev lo",
        )
        declare(holdfast, "router.yaml", WAN, ADDRESS, DEFAULT)
        holdfast.ok("apply", "router.yaml", "--yes")
        yield host


def declare(holdfast: Holdfast, name: str, *resources: str, head: str = HEAD) -> None:
    (holdfast.folder / name).write_text(scene.document(resources, head))


def on_trial(holdfast: Holdfast, **environment: str) -> tuple[int, str]:
    arguments = ("apply", "candidate.yaml", "--yes", "--allow-lockout", "--confirm-within", "1h")
    done = holdfast.run(*arguments, **environment)
    return done.code, done.err


@pytest.mark.usefixtures("provider")
def test_default_gateway(holdfast: Holdfast, netns: Namespace) -> None:
    before = netns.ip("route show")
    declare(holdfast, "candidate.yaml", WAN, OTHER)
    code, said = on_trial(holdfast)
    assert code == 1
    assert "does not any more: the IPv4 default gateway: there is none" in said
    assert "generation 2 was reverted: the IPv4 default gateway: there is none" in said
    assert not scene.waiting(holdfast.root)
    assert netns.ip("route show") == before


def test_another_default_gateway_will_do(holdfast: Holdfast, provider: Host) -> None:
    """To move it is what many changes are for."""
    declare(holdfast, "candidate.yaml", WAN, ADDRESS, MOVED)
    code, said = on_trial(holdfast)
    assert (code, "Still works: the IPv4 default gateway." in said) == (0, True), said
    holdfast.ok("rollback")
    provider.ip("addr del 192.0.2.253/24 dev isp0")
    code, said = on_trial(holdfast)
    assert code == 1
    assert "the IPv4 default gateway: no answer from 192.0.2.253" in said


def test_configured_targets(holdfast: Holdfast, provider: Host, netns: Namespace) -> None:
    declare(holdfast, "candidate.yaml", WAN, ADDRESS, DEFAULT, AWAY, head=TARGETS)
    with provider.listen("198.51.100.9", 7):
        code, said = on_trial(holdfast)
    assert code == 1
    assert "198.51.100.9 port 7: " in said
    assert "198.51.100.9: " in said
    assert "blackhole" not in netns.ip("route show")


def test_what_failed_before_does_not_count(holdfast: Holdfast, provider: Host) -> None:
    provider.ip("addr del 198.51.100.9/32 dev lo")
    declare(holdfast, "candidate.yaml", WAN, ADDRESS, DEFAULT, AWAY, head=TARGETS)
    code, said = on_trial(holdfast)
    assert (code, "Still works: the IPv4 default gateway." in said) == (0, True), said
    holdfast.ok("rollback")


def test_the_operators_connection(holdfast: Holdfast, provider: Host, netns: Namespace) -> None:
    """The way back to where the operator is goes into nothing, or the address is gone."""
    connection = "198.51.100.9 40000 192.0.2.1 22"
    declare(holdfast, "candidate.yaml", WAN, ADDRESS, DEFAULT, AWAY)
    code, said = on_trial(holdfast, SSH_CONNECTION=connection)
    assert code == 1
    told = "the operator's connection from 198.51.100.9 to 192.0.2.1: answers go `blackhole"
    assert told in said
    assert "blackhole" not in netns.ip("route show")
    provider.ip("addr add 192.0.3.254/24 dev isp0")
    gateway = "net IPv4Route default {destination: 0.0.0.0/0, gateway: 192.0.3.254}"
    declare(holdfast, "candidate.yaml", WAN, OTHER, gateway)
    code, said = on_trial(holdfast, SSH_CONNECTION=connection)
    assert code == 1
    assert "192.0.2.1 is no address of this host any more" in said
    assert "192.0.2.1/24" in netns.ip("addr show dev wan0")


FROM_OWN = "net RoutingRule own {priority: 100, from: 192.0.2.1/32, table: 100}"
LAN = "net Interface lan {ifname: lan0, adminUp: true}"
ELSEWHERE = "net IPv4Route own {destination: default, interface: lan, table: 100}"


def test_answers_that_go_elsewhere(holdfast: Holdfast, provider: Host, netns: Namespace) -> None:
    """A rule for the router's own address: nothing but what comes from there takes another way."""
    netns.veth("lan0", "far0")
    declare(holdfast, "candidate.yaml", WAN, LAN, ADDRESS, DEFAULT, FROM_OWN, ELSEWHERE)
    arguments = ("apply", "candidate.yaml", "--yes")
    connection = "198.51.100.9 40000 192.0.2.1 22"
    done = holdfast.run(*arguments, SSH_CONNECTION=connection)
    assert (done.code, "this may cut the connection" in done.err) == (4, True), done.err
    assert "--allow-lockout, or try it with --confirm-within" in done.err
    done = holdfast.run(*arguments, "--confirm-within", "1h", SSH_CONNECTION=connection)
    assert done.code == 1, done.err
    where = "answers go `198.51.100.9 from 192.0.2.1 dev lan0` now, and there is no answer"
    assert f"the operator's connection from 198.51.100.9 to 192.0.2.1: {where}" in done.err
    assert "192.0.2.1" not in netns.ip("rule show")
    # Another way may well be what a change is for.
    declare(holdfast, "candidate.yaml", WAN, ADDRESS, MOVED)
    done = holdfast.run(*arguments, "--confirm-within", "1h", SSH_CONNECTION=connection)
    assert done.code == 0, done.err
    assert "Still works: the IPv4 default gateway, the operator's connection" in done.err
    # It has to go on working.
    provider.ip("addr del 198.51.100.9/32 dev lo")
    lines = [Lifeline("operator", 4, "198.51.100.9", 22, "192.0.2.1", "wan0", "192.0.2.254")]
    assert "via 192.0.2.253 dev wan0` now, and there is" in lifelines.broken(lines, TAG, 0)[0]
    holdfast.ok("rollback")
    assert lifelines.broken(lines, TAG, 0) == []


def test_what_is_sent_to_the_operator(holdfast: Holdfast, provider: Host, netns: Namespace) -> None:
    """The way is the same, and nothing arrives all the same; the operator answers no pings."""
    provider.run("nft", "add table ip quiet { chain c { type filter hook input priority 0; }; }")
    provider.run("nft", "add rule ip quiet c ip daddr 192.0.2.253 icmp type echo-request drop")
    wrong = 'net Neighbour wrong {interface: wan, address: 192.0.2.253, mac: "02:00:00:00:00:77"}'
    declare(holdfast, "candidate.yaml", WAN, ADDRESS, DEFAULT, wrong)
    with (
        socket.create_server(("192.0.2.1", 22)) as server,
        provider.connect("192.0.2.1", 22, source=("192.0.2.253", 0)) as theirs,
    ):
        ours, (_, port) = server.accept()
        with ours, sending(ours):
            assert theirs.recv(1)
            code, said = on_trial(holdfast, SSH_CONNECTION=f"192.0.2.253 {port} 192.0.2.1 22")
            assert code == 1, said
            assert f"any more: what is sent to 192.0.2.253 port {port}: sent " in said
    assert "02:00:00:00:00:77" not in netns.ip("neigh show")


@contextmanager
def sending(sock: socket.socket) -> Iterator[None]:
    """As the output of a command is sent to who started it."""
    over = threading.Event()

    def send() -> None:
        while not over.wait(0.05):
            sock.sendall(b"x")

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_the_gateway_that_comes_back_in_time(provider: Host) -> None:
    """Neighbours are asked for anew: one lost answer is no verdict."""
    provider.run("nft", "add table ip cut { chain c { type filter hook input priority 0; }; }")
    provider.run("nft", "add rule ip cut c limit rate over 20/minute burst 1 packets drop")
    lines = lifelines.working([Lifeline("gateway", 4)], TAG) or [Lifeline("gateway", 4)]
    assert lifelines.broken(lines, TAG, grace=scene.LONG_S) == []


@pytest.mark.parametrize("daemon", [False, True], ids=["its keeper", "a daemon"])
def test_what_stops_working_while_it_waits(
    holdfast: Holdfast, provider: Host, netns: Namespace, daemon: bool
) -> None:
    """Long before the time is up. By whoever keeps the deadline."""
    served = serve(holdfast.root, holdfast.folder / "router.yaml")
    with served if daemon else nullcontext() as running:
        if running is not None:
            running.wait_for("read: ")
        before = netns.ip("route show")
        declare(holdfast, "candidate.yaml", WAN, ADDRESS, MOVED)
        code, said = on_trial(holdfast)
        assert code == 0, said
        if daemon:
            scene.kill(scene.keepers(holdfast.root))
        provider.ip("addr del 192.0.2.253/24 dev isp0")
        scene.until(lambda: not scene.waiting(holdfast.root), "taken back")
        assert netns.ip("route show") == before
    told = holdfast.ok("generations").out
    assert "2  reverted: the IPv4 default gateway: no answer from 192.0.2.253" in told


def trial(holdfast: Holdfast, lines: list[Lifeline]) -> lifeline_probes.LifelineProbes:
    paths = Paths(holdfast.root)
    declare(holdfast, "candidate.yaml", WAN, ADDRESS, MOVED)
    assert on_trial(holdfast)[0] == 0
    scene.kill(scene.keepers(holdfast.root))
    with Ledger.read(paths) as ledger:
        waiting = ledger.waiting()
    assert waiting is not None
    return lifeline_probes.probing(paths, replace(waiting, probes=lifelines.plain(lines)))


@pytest.mark.usefixtures("provider")
def test_what_answers_again_takes_nothing_back(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = trial(holdfast, [Lifeline("gateway", 4)])
    silent = iter(["no answer"] * 3)

    async def ask(_line: Lifeline, _tag: int, _watched: float) -> str:
        return next(silent, "")

    monkeypatch.setattr(lifelines, "_ask", ask)
    assert asyncio.run(asked.failing()) == []
    # A pass was under way while nothing answered: what was wrong is over once it is.
    assert asked.give_up("test", 10) is None
    assert scene.waiting(holdfast.root)
    silent = itertools.repeat("no answer")
    monkeypatch.setattr(lifelines, "GRACE_S", 0.0)
    done = asked.give_up("test", 10)
    assert done is not None
    assert done.reason == "the IPv4 default gateway: no answer"
    # It was decided meanwhile.
    assert asked.give_up("test", 10) is None


@pytest.mark.usefixtures("provider")
def test_operators_may_go_home(holdfast: Holdfast) -> None:
    """Whether they answer is asked right after the change alone; the way there, all the time."""
    came_in = operators.operator("198.51.100.9 40000 192.0.2.1 22")
    with_operator = lifelines.of(load_router(holdfast.folder / "router.yaml"), came_in)
    assert {line.kind for line in with_operator} == {"gateway", "operator", "session", "origin"}
    asked = trial(holdfast, with_operator)
    assert {line.kind for line in asked.lines} == {"gateway", "operator"}
    holdfast.ok("rollback")


def test_lines_as_json() -> None:
    lines = [Lifeline("operator", 6, "2001:db8::1", 22, "2001:db8::2", "wan0", "fe80::1", 40000)]
    assert lifelines.from_plain(lifelines.plain(lines)) == lines
    # As an older version kept it.
    assert lifelines.from_plain([["operator", 4, "192.0.2.9", 0, "192.0.2.1", "wan0"]]) == [
        Lifeline("operator", 4, "192.0.2.9", local="192.0.2.1", ifname="wan0")
    ]
