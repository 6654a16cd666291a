"""Sessions and daemons of a real FRR that come and go, told as changes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from holdfast.errors import DriverError
from holdfast.frr.facts import advertised_to
from holdfast.frr.vty import Vty
from holdfast.frr.watch import About, Change, Watch
from tests.frr.ground import Bird, Frr, Ground, bird_bgp, bird_config, wait_until

_FRR = """\
router bgp 65001
 no bgp ebgp-requires-policy
 no bgp network import-check
 bgp log-neighbor-changes
 neighbor 192.0.2.2 remote-as 65002
 address-family ipv4 unicast
  network 198.51.100.0/24
 exit-address-family
exit
bfd
 peer 192.0.2.2 interface core
 exit
exit
interface core
 ip ospf area 0
 ip ospf hello-interval 1
 ip ospf dead-interval 4
exit
router ospf
exit
"""
_OSPF = (
    "protocol ospf v2 backbone { ipv4 { LEARN }; area 0 {"
    ' interface "far" { hello 1; dead 4; }; }; }'
)
_BFD = 'protocol bfd { interface "*" { interval 100 ms; }; neighbor 192.0.2.1 dev "far"; }'
_BGP = bird_bgp("upper", "local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001;")


@pytest.fixture
def instance(frr: Ground) -> Frr:
    return frr.frr("bgpd", "bfdd", "ospfd")


@pytest.fixture
def watch(instance: Frr) -> Iterator[Watch]:
    made = Watch(instance.folder)
    yield made
    made.close()


def _neighbour(frr: Ground, *protocols: str) -> Bird:
    beside = frr.elsewhere()
    beside.veth("core", "far", ("192.0.2.1/24", "192.0.2.2/24"))
    return frr.bird(beside, bird_config(protocols))


def _until(watch: Watch, met: Callable[[Change], bool]) -> Change:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for change in watch.wait(1.0):
            if met(change):
                return change
    raise AssertionError("no such change")


def test_sessions_come_up_and_go_down(frr: Ground, instance: Frr, watch: Watch) -> None:
    bird = _neighbour(frr, _BGP, _BFD, _OSPF)
    instance.configure(_FRR)
    up: set[About] = set()

    def seen(change: Change) -> bool:
        up.update({change.about} if change.is_up else ())
        return {About.PEER, About.BFD, About.OSPF} <= up

    _until(watch, seen)
    state = watch.peers()["default", "192.0.2.2"]
    assert (state.is_up, state.remote_as) == (True, 65002)
    vty = Vty(instance.folder / "bgpd.vty")
    wait_until("it is told", lambda: advertised_to(vty, "198.51.100.0/24") == ("192.0.2.2",))
    assert advertised_to(vty, "203.0.113.0/24") == ()
    vty.close()
    bird.close()
    down = _until(watch, lambda change: change.about is About.PEER and not change.is_up)
    assert (down.name, down.vrf) == ("192.0.2.2", "default")
    assert down.why
    assert down.time


def test_a_neighbour_that_falls_silent_is_told_by_bfd(
    frr: Ground, instance: Frr, watch: Watch
) -> None:
    bird = _neighbour(frr, _BFD)
    instance.configure(_FRR)
    _until(watch, lambda change: change.about is About.BFD and change.is_up)
    os.kill(bird.pid, signal.SIGSTOP)
    down = _until(watch, lambda change: change.about is About.BFD and not change.is_up)
    os.kill(bird.pid, signal.SIGCONT)
    assert down.name == "192.0.2.2 on core"


def test_an_end_that_a_question_met_is_told(instance: Frr, watch: Watch) -> None:
    """The question closes the connection, which is not there to be waited for any more."""
    _until(watch, lambda change: (change.name, change.is_up) == ("bgpd", True))
    instance.kill("bgpd")
    with pytest.raises(DriverError):
        for _ in range(1000):
            watch.configuration("bgpd")
    _until(watch, lambda change: (change.name, change.is_up) == ("bgpd", False))


def test_a_daemon_that_ends_and_comes_back(instance: Frr, watch: Watch) -> None:
    _until(watch, lambda change: (change.name, change.is_up) == ("bgpd", True))
    instance.kill("bgpd")
    _until(watch, lambda change: (change.name, change.is_up) == ("bgpd", False))
    instance.start("bgpd")
    _until(watch, lambda change: (change.name, change.is_up) == ("bgpd", True))
