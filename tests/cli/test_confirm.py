"""Confirm or revert, with nothing but the command line: no daemon runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import cast

import pytest

from holdfast.cli import main
from holdfast.engine.drivers import Drivers
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.resources.spec.moments import parse_moment
from holdfast.runtime.confirm import deadline
from holdfast.state.confirmations import Confirmation
from holdfast.state.ledger import Ledger
from tests.cli import confirm_scene as scene
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.namespace import Namespace


@pytest.fixture
def router(holdfast: Holdfast, netns: Namespace) -> Iterator[Namespace]:
    """As BEFORE says, and something foreign beside it."""
    with scene.router(holdfast, netns):
        yield netns


def test_nobody_confirms(holdfast: Holdfast, router: Namespace) -> None:
    before = scene.state(holdfast, router)
    done = holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "15s")
    assert "waits until" in done.err
    changed = scene.state(holdfast, router)
    assert all(changed[part] != before[part] for part in before), "the candidate changes it all"
    scene.until(lambda: not scene.waiting(holdfast.root), "reverted at the deadline")
    assert scene.state(holdfast, router) == before


def test_confirmed_in_time(holdfast: Holdfast, router: Namespace) -> None:
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "5m")
    changed = scene.state(holdfast, router)
    done = holdfast.ok("confirm")
    assert done.out == "Generation 2 is confirmed.\n"
    keepers = scene.keepers(holdfast.root)
    scene.until(lambda: not any(map(scene.is_alive, keepers)), "its keeper ended")
    assert scene.state(holdfast, router) == changed
    assert holdfast.run("confirm").err.endswith(
        "nothing waits to be confirmed; generation 2 was confirmed\n"
    )


@pytest.mark.parametrize("killed", [False, True], ids=["lives", "is killed"])
def test_asked_in_time_while_the_ledger_is_held(
    holdfast: Holdfast, router: Namespace, killed: bool
) -> None:
    """Past the deadline, by another process: what was asked for in time counts. Also where whoever
    asked does not live to see it, and his keeper comes to it. The deadline leaves a busy machine
    time to start whoever asks."""
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "20s")
    changed = scene.state(holdfast, router)
    with Ledger.open(Paths(holdfast.root), command="a long pass", wait=60):
        asking = holdfast.start("confirm", "--wait", "60")
        scene.until(lambda: scene.asked(holdfast.root), "asked")
        assert not scene.overdue(holdfast.root)
        if killed:
            asking.kill()
            asking.wait()
        scene.until(lambda: scene.overdue(holdfast.root), "the deadline passed")
    if not killed:
        assert asking.wait(scene.LONG_S) == 0
    scene.until(lambda: not scene.waiting(holdfast.root), "decided")
    assert scene.state(holdfast, router) == changed
    assert "generation 2 was confirmed" in holdfast.run("confirm").err


def test_asked_too_late_while_the_ledger_is_held(holdfast: Holdfast, router: Namespace) -> None:
    before = scene.state(holdfast, router)
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "10s")
    with Ledger.open(Paths(holdfast.root), command="a long pass", wait=60):
        scene.until(lambda: scene.overdue(holdfast.root), "the deadline passed")
        asking = holdfast.start("confirm", "--wait", "60")
        scene.until(lambda: scene.asked(holdfast.root), "asked")
    assert asking.wait(scene.LONG_S) == 4
    scene.until(lambda: not scene.waiting(holdfast.root), "reverted")
    assert scene.state(holdfast, router) == before


def test_terminal_closed(holdfast: Holdfast, router: Namespace) -> None:
    """Everything that hangs on the terminal ends with it, the command in the middle of its work."""
    before = scene.state(holdfast, router)
    scene.apply_and_hang_up(holdfast, "candidate.yaml", "6s")
    scene.until(lambda: not scene.waiting(holdfast.root), "reverted at the deadline")
    assert scene.state(holdfast, router) == before


@pytest.mark.parametrize("stage", [0, 1, 5, 12])
def test_killed_in_the_middle(holdfast: Holdfast, router: Namespace, stage: int) -> None:
    """After the way back is stored and before the first change, and later."""
    before = scene.state(holdfast, router)
    arguments = ["apply", str(holdfast.folder / "candidate.yaml"), "--yes", "--confirm-within"]
    scene.killed_at_stage(stage, lambda: main.run(["--root", str(holdfast.root), *arguments, "8s"]))
    assert scene.waiting(holdfast.root)
    scene.until(lambda: not scene.waiting(holdfast.root), "reverted at the deadline")
    assert scene.state(holdfast, router) == before


@pytest.mark.parametrize("stage", [0, 3, 8])
def test_killed_in_the_middle_of_the_revert(
    holdfast: Holdfast, router: Namespace, stage: int
) -> None:
    before = scene.state(holdfast, router)
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    scene.kill(scene.keepers(holdfast.root))
    scene.killed_at_stage(stage, lambda: main.run(["--root", str(holdfast.root), "rollback"]))
    assert scene.waiting(holdfast.root)
    refused = holdfast.run("confirm")
    assert "too late" in refused.err or "nothing waits" in refused.err
    scene.until(lambda: not scene.waiting(holdfast.root), "reverted by the next command")
    assert scene.state(holdfast, router) == before


def test_keeper_killed(holdfast: Holdfast, router: Namespace) -> None:
    """The next command that changes anything finds what is overdue; one that reads says so."""
    before = scene.state(holdfast, router)
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "8s")
    scene.kill(scene.keepers(holdfast.root))
    scene.until(lambda: scene.overdue(holdfast.root), "the deadline passed")
    assert scene.waiting(holdfast.root), "nobody kept it"
    told = "generation 2 is overdue, as nobody confirmed it within 8s"
    assert told in holdfast.run("status", "candidate.yaml").err
    assert told in holdfast.run("plan", "candidate.yaml").err
    assert scene.waiting(holdfast.root), "they only look"
    done = holdfast.run("reconcile", "--once", str(holdfast.folder / "router.yaml"))
    assert done.code == 0, done
    assert "generation 2 was reverted: nobody confirmed it within 8s" in done.err
    assert scene.state(holdfast, router) == before


def test_drift_that_was_there_before(holdfast: Holdfast, router: Namespace) -> None:
    """The state before is what was, not what should have been."""
    router.ip("route del 10.8.0.0/16")
    router.ip("addr add 10.1.0.77/16 dev lan0")
    (holdfast.root / "etc/hosts").write_text("# edited\n127.0.0.1 localhost\n")
    before = scene.state(holdfast, router)
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "8s")
    scene.until(lambda: not scene.waiting(holdfast.root), "reverted at the deadline")
    assert scene.state(holdfast, router) == before


def test_others_write_meanwhile(holdfast: Holdfast, router: Namespace) -> None:
    """What they made stays, and what of ours they changed is not deleted."""
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    router.ip("route add 10.55.0.0/16 via 198.51.100.254 proto static")
    router.ip("addr add 10.2.0.77/24 dev more0")
    (holdfast.root / "etc/resolv.conf").write_text("nameserver 192.0.2.53\n")
    done = holdfast.ok("rollback")
    assert "Generation 2 was reverted: it was taken back by `holdfast rollback`" in done.out
    assert "link more0" in done.out, "it carries an address of somebody else's by now"
    assert "10.55.0.0/16" in router.ip("route show")
    assert "10.2.0.77/24" in router.ip("addr show dev more0")
    assert (holdfast.root / "etc/resolv.conf").exists()
    router.ip("addr del 10.2.0.77/24 dev more0")
    router.ip("link del more0")


def test_the_first_apply_of_all(holdfast: Holdfast, wan: Namespace) -> None:
    """There is no configuration to go back to, and nothing is left."""
    empty = wan.ip("-br addr show dev wan0"), wan.ip("-4 route show table all")
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes", "--confirm-within", "1h")
    assert "10.1.0.0/16" in wan.ip("route show")
    holdfast.ok("rollback")
    assert (wan.ip("-br addr show dev wan0"), wan.ip("-4 route show table all")) == empty
    assert scene.claims(holdfast) == {}


@pytest.mark.usefixtures("wan")
def test_a_trial_that_could_not_begin_is_one_the_next_time(holdfast: Holdfast) -> None:
    """The generation that was begun for it is not in force: nothing of it was ever applied."""
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.2.0.0/16"), file="candidate.yaml")
    runs = holdfast.root / "run/holdfast"
    assert not runs.exists()
    runs.parent.mkdir(exist_ok=True)
    runs.write_text("in the way of the keeper's log")
    words = ("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    refused = holdfast.run(*words)
    assert refused.code == 4
    assert "nothing was touched: nobody could be left to keep the deadline" in refused.err
    runs.unlink()
    done = holdfast.ok(*words)
    assert "waits until" in done.err
    assert scene.waiting(holdfast.root)
    told = holdfast.run("status", "router.yaml", "-o", "json").json["trial"]
    assert (told["generation"], told["state"], told["lifelines"]) == (2, "open", [])
    assert parse_moment(told["deadline"]) > time.time() + 3000
    holdfast.ok("rollback")
    assert holdfast.ok("status", "router.yaml", "-o", "json").json["trial"] is None


def test_what_others_hold_by_then_is_named_and_left_to_them(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.2.0.0/16"), file="candidate.yaml")
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    wan.ip("route add 10.1.0.0/16 via 192.0.2.9 proto static")
    left = "route 10.1.0.0/16: it is held by protocol static"
    done = holdfast.ok("rollback")
    assert done.out.endswith(f"`holdfast rollback`; not brought back: {left}.\n")
    (event,) = holdfast.ok("events", "--kind", "reverted", "-o", "json").json["events"]
    assert event["message"].endswith(f"; not brought back: {left}")
    assert "via 192.0.2.9" in wan.ip("route show 10.1.0.0/16")


@pytest.mark.usefixtures("wan")
def test_a_pass_that_ends_in_the_middle_says_that_it_waits(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))

    def full(*_arguments: object) -> None:
        raise LedgerError("no space left")

    monkeypatch.setattr(Drivers, "apply", full)
    words = ["apply", str(file), "--yes", "--confirm-within", "1h"]
    assert main.run(["--root", str(holdfast.root), *words]) == 5
    said = capfd.readouterr().err.splitlines()
    assert said[0].startswith("Generation 1 waits until ")
    assert said[1] == "holdfast: no space left"
    holdfast.ok("rollback")


def test_a_deadline_of_another_day_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(deadline, "remaining", lambda _waiting: 3600.0)
    waiting = cast(Confirmation, None)
    for now, said in ((1780056000, "13:00:00"), (1780097000, "2026-05-30 00:23:20")):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert deadline.until(waiting) == said
    monkeypatch.undo()
    time.tzset()
