"""What others lose by a change on trial is there again once the change is reverted."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from holdfast.cli import apply, main
from holdfast.engine.drivers import Drivers
from holdfast.host import steps
from holdfast.host.foreign_state import reading
from holdfast.host.foreign_state.restore import _Restoring
from holdfast.paths import Paths
from holdfast.runtime.confirm import revert
from holdfast.state.ledger import Ledger
from tests.child import in_child
from tests.cli import confirm_scene as trials
from tests.cli import others_scene as scene
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast
from tests.namespace import Namespace

# Where a plan that others lose something by is refused unless it is asked for, it is asked for.
ALLOW = tuple(
    option
    for one in apply.command.params
    for option in one.opts
    if option == "--allow-side-effects"
)
WAN6 = ("IPv6StaticAddress", "wan", "{interface: wan, address: '2001:db8::1/64'}")
DOWN = ("Interface", "wan", "{ifname: wan0, adminUp: false, mtu: 1500}")
NARROW = ("Interface", "wan", "{ifname: wan0, adminUp: true, mtu: 1200}")

NO_IPV6 = ("Sysctl", "no", '{key: net.ipv6.conf.wan0.disable_ipv6, value: "1"}')


@pytest.fixture
def router(holdfast: Holdfast, netns: Namespace) -> Iterator[Namespace]:
    """wan0 with one address of ours in each family."""
    scene.unchecked()
    netns.veth("wan0", "isp0")
    holdfast.declare(WAN, WAN_ADDRESS, WAN6)
    holdfast.set_up("apply", "router.yaml", "--yes")
    yield netns
    for pid in trials.keepers(holdfast.root):
        os.kill(pid, signal.SIGKILL)


def on_trial(holdfast: Holdfast, *resources: tuple[str, str, str], within: str = "1h") -> None:
    holdfast.declare(*resources, file="candidate.yaml")
    done = holdfast.run("apply", "candidate.yaml", "--yes", "--confirm-within", within, *ALLOW)
    assert trials.waiting(holdfast.root), done


def same(netns: Namespace, before: dict[str, Any]) -> None:
    """Once the kernel has done what it does by itself: link-local addresses, carriers."""
    with suppress(AssertionError):
        trials.until(lambda: scene.everything(netns) == before, "as it was", 10.0)
    now = scene.everything(netns)
    for part in now:
        assert now[part] == before[part], part


def events(holdfast: Holdfast, kind: str) -> list[str]:
    found = holdfast.ok("events", "-o", "json").json["events"]
    return [f"{one['subject']}: {one['message']}" for one in found if one["kind"] == kind]


@pytest.mark.parametrize("change", [[DOWN], [NARROW], [WAN, NO_IPV6]], ids=["down", "narrow", "no"])
def test_all_that_goes_with_a_link(
    holdfast: Holdfast, router: Namespace, change: list[tuple[str, str, str]]
) -> None:
    scene.make(router, *scene.FOREIGN)
    before = trials.settled(lambda: scene.everything(router))
    on_trial(holdfast, *change, WAN_ADDRESS, WAN6)
    assert scene.everything(router) != before
    done = holdfast.ok("rollback")
    assert "not brought back" not in done.out
    same(router, before)
    restored = events(holdfast, "restored")
    said = ": protocol static; lost with generation 2"
    assert any("route" in one and one.endswith(said) for one in restored), restored
    assert any(one.startswith("neighbour 2001:db8::9 dev wan0") for one in restored)


def test_what_others_made_of_it_since_stays(holdfast: Holdfast, router: Namespace) -> None:
    scene.make(router, "route add 10.99.0.0/16 via 192.0.2.254 proto static")
    scene.make(router, "route add 10.98.0.0/16 via 192.0.2.254 proto static")
    on_trial(holdfast, DOWN, WAN_ADDRESS, WAN6)
    scene.make(router, "route add 10.99.0.0/16 dev isp0 proto bird")
    done = holdfast.ok("rollback")
    assert "not brought back: route 10.99.0.0/16: another is in its place by now" in done.out
    assert "10.99.0.0/16 dev isp0 proto bird" in router.ip("route show")
    assert "10.98.0.0/16 via 192.0.2.254" in router.ip("route show")
    assert not trials.waiting(holdfast.root), "what others lost for good is named, and that is all"


def test_what_would_be_over_by_now(holdfast: Holdfast, router: Namespace) -> None:
    scene.make(router, "addr add 2001:db8:5::5/64 dev wan0 valid_lft 2 preferred_lft 1 nodad")
    on_trial(holdfast, DOWN, WAN_ADDRESS, WAN6, within="4s")
    trials.until(lambda: not trials.waiting(holdfast.root), "reverted at the deadline")
    assert "2001:db8:5::5" not in router.ip("addr show dev wan0")
    assert "2001:db8::1" in router.ip("addr show dev wan0")


def test_more_than_is_kept(
    holdfast: Holdfast, router: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A routing daemon's are left out before those of people, and that is said."""
    scene.make(router, "route add 10.99.0.0/16 via 192.0.2.254 proto static")
    scene.make(router, *(f"route add 10.1.{n}.0/24 via 192.0.2.254 proto bgp" for n in range(9)))
    holdfast.declare(DOWN, WAN_ADDRESS, WAN6, file="candidate.yaml")
    monkeypatch.setattr(reading, "MOST_ROUTES", 5)
    holdfast.set_up("apply", "candidate.yaml", "--yes", "--confirm-within", "1h", *ALLOW)
    monkeypatch.undo()
    holdfast.ok("rollback")
    left = router.ip("route show proto bgp")
    assert "10.99.0.0/16 via 192.0.2.254" in router.ip("route show proto static")
    assert left == ""


_STEPS = (
    *("links", "ports", "addresses", "order", "nexthops", "routes", "neighbours"),
    *("groups", "settings"),
)


@pytest.mark.parametrize("step", _STEPS)
def test_killed_while_it_is_put_back(holdfast: Holdfast, router: Namespace, step: str) -> None:
    scene.make(router, *scene.FOREIGN)
    before = trials.settled(lambda: scene.everything(router))
    on_trial(holdfast, DOWN, WAN_ADDRESS, WAN6)
    trials.kill(trials.keepers(holdfast.root))

    def killed() -> None:
        real = getattr(_Restoring, step)

        def half(self: Any) -> None:
            calls = itertools.count()
            sock = self.sock
            transact = sock.transact

            def counted(*arguments: Any) -> Any:
                answer = transact(*arguments)
                if next(calls) == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return answer

            sock.transact = counted
            real(self)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(_Restoring, step, half)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main.run(["--root", str(holdfast.root), "rollback"])

    _, status = os.waitpid(in_child(killed), 0)
    assert os.WIFSIGNALED(status)
    assert trials.waiting(holdfast.root)
    holdfast.ok("reconcile", "--once", str(holdfast.folder / "router.yaml"))
    assert not trials.waiting(holdfast.root)
    same(router, before)


def test_a_revert_comes_to_an_end(
    holdfast: Holdfast, router: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be brought back, whoever tries, is named after some attempts, and left."""
    scene.make(router, "route add 10.99.0.0/16 via 192.0.2.254 proto static")
    on_trial(holdfast, DOWN, WAN_ADDRESS, WAN6)
    trials.kill(trials.keepers(holdfast.root))
    monkeypatch.setattr(
        Drivers, "apply", lambda _host, todo, _told: [steps.failed(op, "no") for op in todo]
    )
    tried = []
    while trials.waiting(holdfast.root):
        with Ledger.open(Paths(holdfast.root), command="test") as ledger:
            done = revert.revert(Paths(holdfast.root), ledger, "to see it end")
        assert done is not None
        tried.append(done)
    assert len(tried) == revert.MOST_TRIES + 1
    assert [one.finished for one in tried] == [False] * revert.MOST_TRIES + [True]
    said = tried[-1].told()
    assert "link wan0: update failed" in said
    assert "route 10.99.0.0/16: " in said


def test_renumbered_and_nobody_there(holdfast: Holdfast, router: Namespace) -> None:
    """Whoever kept the deadline was killed; the next command takes it back, all in one."""
    scene.make(router, "route add 10.99.0.0/16 via 192.0.2.254 proto static")
    before = trials.settled(lambda: scene.everything(router))
    other = ("IPv4StaticAddress", "wan", "{interface: wan, address: 198.51.100.1/24}")
    on_trial(holdfast, WAN, other, WAN6, within="4s")
    assert "192.0.2.1/24" not in router.ip("addr show dev wan0"), "there is another address first"
    assert "10.99.0.0/16" in router.ip("route show")
    trials.kill(trials.keepers(holdfast.root))
    trials.until(lambda: trials.overdue(holdfast.root), "the deadline passed")
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert "was reverted: nobody confirmed it within 4s\n" in done.err
    same(router, before)


@pytest.mark.parametrize("promote", ["0", "1"])
def test_the_order_of_addresses(holdfast: Holdfast, router: Namespace, promote: str) -> None:
    """Ours was the primary of others', and the first of all."""
    router.run("sysctl", "-q", f"net.ipv4.conf.wan0.promote_secondaries={promote}")
    secondary = ["addr add 192.0.2.77/24 dev wan0"] if promote == "1" else []
    scene.make(router, *secondary, "addr add 198.51.100.7/24 dev wan0")
    scene.make(router, "addr add 2001:db8::7/64 dev wan0 nodad")
    scene.make(router, "route add default dev wan0 proto static src 198.51.100.7")
    before = trials.settled(lambda: scene.everything(router))
    four = ("IPv4StaticAddress", "wan", "{interface: wan, address: 192.0.2.2/24}")
    six = ("IPv6StaticAddress", "wan", "{interface: wan, address: '2001:db8::2/64'}")
    on_trial(holdfast, WAN, four, six)
    assert "192.0.2.1/" not in router.ip("addr show dev wan0")
    done = holdfast.ok("rollback")
    assert "not brought back" not in done.out
    same(router, before)


def test_links_that_were_made_anew(holdfast: Holdfast, router: Namespace) -> None:
    """On a kernel whose bridges know no VLANs a bridge is made without a word about them."""
    lan = ("Interface", "lan", "{ifname: lan0, type: bridge, adminUp: true}")
    pair = ("Interface", "pair", "{ifname: pair0, type: veth, veth: {peer: pair1}, adminUp: true}")
    holdfast.declare(WAN, WAN_ADDRESS, WAN6, lan, pair)
    holdfast.ok("apply", "router.yaml", "--yes")
    before = trials.settled(lambda: scene.everything(router))
    gone = (
        ("Interface", "lan", "{ifname: lan0, state: absent}"),
        ("Interface", "pair", "{ifname: pair0, state: absent}"),
    )
    on_trial(holdfast, WAN, WAN_ADDRESS, WAN6, *gone)
    assert "pair1" not in router.ip("link show")
    holdfast.ok("rollback")
    same(router, before)
