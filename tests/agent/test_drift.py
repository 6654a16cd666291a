"""What others do to our artifacts is undone by the daemon, and said with their names."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.engine.artifact import Key
from holdfast.paths import Paths
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger
from tests.agent.daemon import Daemon, serve
from tests.agent.drifting import RESOURCES, foreign, ground, tamperings
from tests.agent.storm import Storm, flood
from tests.agent.two_providers import until
from tests.agent.undoer import undoing
from tests.namespace import Namespace
from tests.safety.router_scene import document

ROUTE = "198.51.100.0/24"


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    ground(netns)
    file = root / "router.yaml"
    file.write_text(document(RESOURCES))
    return file


@contextmanager
def at_rest(netns: Namespace, root: Path, file: Path) -> Iterator[Daemon]:
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        until(lambda: all(one.right(netns) for one in tamperings(root)), "all is as declared")
        # The last that the kernel does by itself, and a reason to look.
        until(lambda: "tentative" not in netns.ip("-6 addr show"), "links have their addresses")
        daemon.rest()
        yield daemon


def events(root: Path, kind: str) -> list[StoredEvent]:
    with Ledger.read(Paths(root)) as ledger:
        return [event for event in ledger.events() if event.kind == kind]


def test_everything_is_repaired_every_time(file: Path, root: Path, netns: Namespace) -> None:
    with at_rest(netns, root, file) as daemon:
        before = foreign(netns)
        for _ in range(5):
            for tampering in tamperings(root):
                tampering.do(netns)
                what = f"{tampering.kind} {tampering.what}:\n{daemon.said()}"
                until(lambda: tampering.right(netns), what)  # noqa: B023 (used at once)
        assert foreign(netns) == before
        assert "fault of Holdfast's" not in daemon.said()
        assert daemon.end() == 0
    with Ledger.read(Paths(root)) as ledger:
        assert not ledger.check()
        assert ledger.generations()[0].state == "converged"
        assert len(ledger.generations()) == 1


def test_it_is_said_who_did_what(file: Path, root: Path, netns: Namespace) -> None:
    with at_rest(netns, root, file) as daemon:
        netns.ip("route change 203.0.113.0/24 via 192.0.2.253 metric 50 proto 72")
        daemon.wait_for("repaired route 203.0.113.0/24 metric 50")
        netns.run("nft", "delete", "table", "ip", "holdfast_nat")
        daemon.wait_for("repaired nft ip holdfast_nat")
        assert daemon.end() == 0
    changed, table = events(root, "repaired")
    assert "nexthops changed by " in changed.message
    assert changed.data["owners"] == ["IPv4Route/two"]
    assert changed.data["fields"] == {
        "nexthops": {
            "found": ["via 192.0.2.253 dev wan0"],
            "declared": ["via 192.0.2.254 dev wan0"],
        }
    }
    writer = changed.data["writer"]
    assert isinstance(writer, dict)
    assert writer["name"] in ("ip", "")  # it may be gone before it can be asked
    assert isinstance(changed.data["milliseconds"], int)
    assert "was deleted by nft (process " in table.message


def test_others_in_the_place_of_ours(file: Path, root: Path, netns: Namespace) -> None:
    """Theirs stays; that it is there is told once."""
    with at_rest(netns, root, file) as daemon:
        netns.ip(f"route replace {ROUTE} via 192.0.2.253 proto static")
        daemon.wait_for(f"conflict: route {ROUTE} for IPv4Route/one is held by protocol static")
        netns.ip("rule del priority 100")
        until(lambda: "fwmark 0x7" in netns.ip("rule show"), "the rule is back")
        assert "192.0.2.253" in netns.ip(f"route show {ROUTE}")
        assert daemon.end() == 0
    (conflict,) = events(root, "conflict")
    assert conflict.subject == f"route {ROUTE}"
    assert conflict.message == "is held by protocol static now"
    assert isinstance(conflict.data["writer"], dict)


def test_nothing_is_written_while_nothing_happens(file: Path, root: Path, netns: Namespace) -> None:
    """Not even by the timer: hints about nothing of ours come and go."""
    with at_rest(netns, root, file) as daemon:
        daemon.rest()  # what the start brought about is over
        state = written(root)
        said = daemon.said()
        for number in range(20):
            netns.ip(f"route add 10.50.{number}.0/24 dev far0")
            netns.ip(f"rule add priority {1000 + number} lookup 77")
        netns.ip("link set far0 mtu 1400")
        daemon.rest()
        assert daemon.said() == said
        assert written(root) == state


def written(root: Path) -> list[tuple[int, int]]:
    found = (path.stat() for path in ledger_files(root))
    return [(one.st_mtime_ns, one.st_size) for one in found]


def ledger_files(root: Path) -> list[Path]:
    return sorted((root / "var/lib/holdfast").glob("state.db*"))


def test_orphan_that_somebody_makes_under_our_name(
    file: Path, root: Path, netns: Namespace
) -> None:
    with at_rest(netns, root, file) as daemon:
        netns.ip("rule add priority 300 lookup 9 protocol 72")
        netns.ip("route add 10.60.0.0/16 dev wan0 proto 72")
        until(lambda: "300:" not in netns.ip("rule show"), "the rule is gone")
        until(lambda: "10.60." not in netns.ip("route show"), "the route is gone")
        daemon.wait_for("repaired rule 300: from all lookup 9: was added by")


def test_routes_that_go_silently_with_an_address(file: Path, root: Path, netns: Namespace) -> None:
    with at_rest(netns, root, file):
        for _ in range(3):
            netns.ip("addr flush dev wan0 scope global")
            until(lambda: all(one.right(netns) for one in tamperings(root)), "all of it is back")


def test_link_that_goes_down_and_one_that_vanishes(
    file: Path, root: Path, netns: Namespace
) -> None:
    with at_rest(netns, root, file) as daemon:
        for _ in range(3):
            netns.ip("link set wan0 down")
            netns.ip("link set wan0 up")
            until(lambda: all(one.right(netns) for one in tamperings(root)), "all of it is back")
        netns.ip("link del wan0")
        daemon.wait_for("link wan0 is not there yet")
        assert daemon.process.poll() is None
        netns.veth("wan0", "far0")
        until(lambda: all(one.right(netns) for one in tamperings(root)), daemon.said())


def test_a_writer_that_undoes_one_route_for_ever(file: Path, root: Path, netns: Namespace) -> None:
    with at_rest(netns, root, file) as daemon:
        before = foreign(netns)
        with undoing(ROUTE) as undoer:
            until(lambda: bool(events(root, "fight")), "it is named")
            time.sleep(10)
            (fight,) = events(root, "fight")
            assert f"(process {undoer}) deletes it again and again" in fight.message
            assert fight.data["owners"] == ["IPv4Route/one"]
            late = [one for one in events(root, "repaired") if one.time > fight.time]
            assert len(late) <= 8
            assert len(events(root, "repaired")) < 50
            # Nothing else has to wait for it.
            netns.ip("rule del priority 100")
            until(lambda: "fwmark 0x7" in netns.ip("rule show"), "the rule is back")
        until(lambda: ROUTE in netns.ip("route show proto 72"), "the route, in the end")
        assert foreign(netns) == before
        assert daemon.end() == 0


def test_a_storm_of_others(file: Path, root: Path, netns: Namespace) -> None:
    with at_rest(netns, root, file) as daemon:
        storm = Storm(netns, dev="far0", own=ROUTE, each=100)
        before = foreign(netns)
        storm.blow(3.0)
        storm.close()
        until(lambda: all(one.right(netns) for one in tamperings(root)), "all is as declared")
        assert storm.left() == storm.expected
        assert foreign(netns) == before
        assert daemon.end() == 0


def test_more_hints_than_the_kernel_keeps(file: Path, root: Path, netns: Namespace) -> None:
    """Lost ones lead to a look at everything."""
    with at_rest(netns, root, file) as daemon:
        daemon.signal(signal.SIGSTOP)
        # No longer than it takes: in half a minute the timer would be a reason to look, too.
        while not dropped():
            flood("10.99.0.")
        netns.ip(f"route del {ROUTE}")
        netns.ip("rule del priority 100")
        daemon.signal(signal.SIGCONT)
        until(lambda: all(one.right(netns) for one in tamperings(root)), "all is as declared")
        daemon.wait_for("because of hints that were lost")


def dropped() -> bool:
    """Whether messages to somebody who listens in this namespace were lost."""
    lines = Path("/proc/self/net/netlink").read_text().splitlines()
    head, *sockets = (line.split() for line in lines)
    groups, drops = head.index("Groups"), head.index("Drops")
    return any(int(one[groups], 16) and int(one[drops]) for one in sockets)


def test_the_ledger_held_by_another_command(file: Path, root: Path, netns: Namespace) -> None:
    with at_rest(netns, root, file):
        with Ledger.open(Paths(root), command="test", wait=60):
            netns.ip(f"route del {ROUTE}")
            time.sleep(0.5)
            assert ROUTE not in netns.ip("route show")
        until(lambda: ROUTE in netns.ip("route show proto 72"), "once it is let go")


def test_a_ledger_that_somebody_replaces(file: Path, root: Path, netns: Namespace) -> None:
    with at_rest(netns, root, file) as daemon:
        ledger = root / "var/lib/holdfast/state.db"
        with Ledger.open(Paths(root), command="test", wait=60):
            for path in ledger_files(root):
                path.rename(root / path.name)
        netns.ip("rule del priority 100")
        until(lambda: "fwmark 0x7" in netns.ip("rule show"), "the rule is back")
        until(ledger.exists, "there is a ledger")
        until(lambda: "rule" in {key.kind for key in claims(root)}, "with a claim on the rule")
        assert daemon.end() == 0


def claims(root: Path) -> list[Key]:
    with Ledger.read(Paths(root)) as ledger:
        return list(ledger.claims())


def test_what_fails_is_tried_again_and_the_rest_goes_on(
    file: Path, root: Path, netns: Namespace
) -> None:
    """A gateway that is nowhere: the kernel refuses the route."""
    bad = {"IPv4Route/bad": "{destination: 10.77.0.0/16, gateway: 10.78.0.1, interface: wan}"}
    file.write_text(document({**RESOURCES, **bad}))
    with serve(root, file) as daemon:
        daemon.wait_for("create-failed route 10.77.0.0/16 for IPv4Route/bad")
        netns.ip("rule del priority 100")
        until(lambda: "fwmark 0x7" in netns.ip("rule show"), "the rule is back")
        time.sleep(3)
        assert len(events(root, "create-failed")) == 1
        assert not events(root, "drift")
        assert "could not be observed" not in daemon.said()
        netns.ip("addr add 10.78.0.2/24 dev wan0")
        until(lambda: "10.77.0.0/16" in netns.ip("route show"), "once the gateway is reachable")
        assert daemon.end() == 0


def test_what_failed_for_long_is_tried_as_soon_as_it_may_succeed(
    file: Path, root: Path, netns: Namespace
) -> None:
    bad = {"IPv4Route/bad": "{destination: 10.77.0.0/16, gateway: 10.78.0.1, interface: wan}"}
    file.write_text(document({**RESOURCES, **bad}))
    with serve(root, file) as daemon:
        daemon.wait_for("create-failed route 10.77.0.0/16 for IPv4Route/bad")
        # The sixth try of its own is over by now, the seventh is more than a second away.
        time.sleep(22.5)
        netns.ip("addr add 10.78.0.2/24 dev wan0")
        daemon.wait_for("because of addresses: 1 created")
        assert "10.77.0.0/16" in netns.ip("route show proto 72")
        assert daemon.end() == 0


def test_several_at_once(file: Path, root: Path, netns: Namespace) -> None:
    with at_rest(netns, root, file) as daemon:
        for times in range(1, 6):
            batch = f"route del {ROUTE}\nrule del priority 100\n"
            subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)
            netns.run("nft", "delete", "table", "ip", "holdfast_nat")
            until(lambda: all(one.right(netns) for one in tamperings(root)), daemon.said())
            # What is undone before the pass that repairs it has looked again is left, and no drift.
            for kind in ("route", "rule", "nft"):
                daemon.wait_for(f"repaired {kind} ", times)
        assert daemon.end() == 0
    repaired = Counter(event.subject.split()[0] for event in events(root, "repaired"))
    assert repaired == {"route": 5, "rule": 5, "nft": 5}
