"""Failures of the netlink socket and of the ledger in the middle of a pass: unknown is never read
as empty, nothing wrong is deleted, and the pass after it makes good."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from holdfast.cli import run
from holdfast.cli.exit import Exit
from holdfast.engine.claim import ClaimState
from holdfast.engine.drivers import Drivers
from holdfast.errors import DriverError, LedgerError
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.resources.facts import NOTHING_KNOWN
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger
from tests.safety import router_scene
from tests.safety.faults import (
    FOREVER,
    Cut,
    Denied,
    Disturbance,
    DoneWithAnError,
    Fault,
    Interrupted,
    Lost,
    LostAtOnce,
    Meanwhile,
    dump,
    write,
)
from tests.safety.kill_cases import CASES, FULL, Case
from tests.safety.router_scene import Scene, Watched
from tests.safety.snapshot import Item

# How each is asked for, and the kind of artifact it tells of.
DUMPS = {
    "links": (dump(18), "link"),
    "addresses": (dump(22), "address"),
    "rules": (dump(34), "rule"),
    "neighbours": (dump(30), "neighbour"),
    "routes4": (dump(26, socket.AF_INET), "route"),
    "routes6": (dump(26, socket.AF_INET6), "route"),
}
PASSING = {"lost": Lost(), "interrupted": Interrupted(), "cut": Cut()}
LASTING = PASSING | {"denied": Denied(), "done": DoneWithAnError(), "broken": LostAtOnce()}
# One or more of each kind less than FULL, and a name that can be set whatever cannot be seen.
WITHDRAWN = (
    "IPv4StaticAddress/two", "IPv4Route/one", "IPv6Route/one", "RoutingRule/four",
    "Neighbour/one", "Sysctl/filter",
)  # fmt: skip
LESS = {name: spec for name, spec in FULL.items() if name not in WITHDRAWN} | {
    "Hostname/one": "{hostname: two}"
}


@pytest.fixture
def scene() -> Iterator[Scene]:
    with router_scene.scene() as made:
        yield made


@pytest.mark.parametrize("fault", LASTING)
@pytest.mark.parametrize("name", DUMPS)
def test_nothing_is_deleted_while_something_cannot_be_seen(
    name: str,
    fault: str,
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert scene.apply(FULL).converged
    before, files = scene.look(), scene.files()
    wanted, kind = DUMPS[name]
    code, said = _command(scene, LESS, Disturbance(wanted, LASTING[fault], FOREVER), monkeypatch)
    assert not before - scene.look(), "something was deleted"
    assert scene.files() == files | {"/etc/hostname": b"two\n"}, "the rest goes on"
    assert code is Exit.FAILED
    report = json.loads(capsys.readouterr().out)
    reasons = {entry["kind"]: entry["reason"] for entry in report["unknown"]}
    assert LASTING[fault].words in reasons[kind]
    assert report["outcome"] == "partial"
    monkeypatch.undo()
    _makes_good(scene, LESS)
    gone = before - scene.look()
    assert {item.what for item in gone} == {"address", "route4", "leg6", "rule", "neighbour"}
    assert said.befallen


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_that_failed_once_is_taken_again(name: str, fault: str, scene: Scene) -> None:
    assert scene.apply(FULL).converged
    disturbed = Disturbance(DUMPS[name][0], PASSING[fault])
    report = scene.apply(LESS, Watched(sock=disturbed.socket))
    assert disturbed.befallen == 1
    assert report.converged, report.after
    assert not scene.apply(LESS).results


@pytest.mark.parametrize("dumped", DUMPS)
@pytest.mark.parametrize("name", CASES)
def test_sight_is_lost_between_plan_and_apply(name: str, dumped: str, scene: Scene) -> None:
    """What needs to be read again just before is not done; it is said, and the pass goes on."""
    case = CASES[name]
    if case.before:
        assert scene.apply(case.before).converged
    disturbed = Disturbance(DUMPS[dumped][0], Lost(), times=0)

    def begin() -> None:
        disturbed.times = FOREVER

    report = scene.apply(case.after, Watched(sock=disturbed.socket, before=begin))
    assert not report.converged
    assert DUMPS[dumped][1] in dict(report.after.unknown)
    _only_ours_is_new(scene, gone=())
    _makes_good(scene, case.after)


def test_what_was_left_of_a_broken_dump_is_not_taken_for_the_next(scene: Scene) -> None:
    """Of the addresses asked for, the answer stays in the socket; rules are asked for next."""
    disturbed = Disturbance(dump(22), LostAtOnce())
    sock = disturbed.socket()
    with pytest.raises(DriverError, match="Input/output error"):
        sock.dump(22, bytes(8), "addresses")
    plain = NetlinkSocket()
    header = bytes((socket.AF_INET,)) + bytes(11)
    assert sock.dump(34, header, "rules") == plain.dump(34, header, "rules")
    sock.close()
    plain.close()
    assert scene.ground


@pytest.mark.parametrize("bytes_lost", range(1, 40))
def test_a_datagram_cut_anywhere_is_noticed(bytes_lost: int, scene: Scene) -> None:
    disturbed = Disturbance(dump(18), Cut(bytes_lost), FOREVER)
    sock = disturbed.socket()
    with pytest.raises(DriverError, match="cut short, 8 times in a row"):
        sock.dump(18, bytes(16), "links")
    sock.close()
    assert scene.ground


def test_a_gateway_that_could_not_be_asked_for_is_not_unreachable(scene: Scene) -> None:
    resources = {"RouteList/few": "{gateway: 10.99.0.254, routes: [10.1.0.0/16, 10.2.0.0/16]}"}
    assert scene.apply(resources).converged
    before = scene.look()
    report = scene.apply(resources, Watched(facts=lambda _router: NOTHING_KNOWN))
    (pending,) = report.after.pending
    assert pending.reason.startswith("waits for the link of gateway 10.99.0.254")
    assert not report.converged
    assert not report.results
    assert scene.look() == before, "what is there stays"
    _makes_good(scene, resources)


@pytest.mark.parametrize("fault", [Lost(), Cut(20), Denied()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("name", CASES)
def test_any_one_write_goes_wrong(name: str, fault: Fault) -> None:
    """Whether the kernel did it and only its answer is missing, or it refused: what is seen
    afterwards is the truth."""
    for number in range(1000):
        with router_scene.scene() as scene:
            case = CASES[name]
            if case.before:
                assert scene.apply(case.before).converged
            disturbed = Disturbance(write(), fault, after=number)
            _disturbed_pass(scene, case, disturbed)
            if not disturbed.befallen:
                break
            _makes_good(scene, case.after)
    assert number > 5


def _disturbed_pass(scene: Scene, case: Case, disturbed: Disturbance) -> None:
    try:
        report = scene.apply(case.after, Watched(sock=disturbed.socket))
    except DriverError as error:  # the marks of links could not be taken off
        assert disturbed.fault.words in str(error)
        return
    if disturbed.befallen:
        told = [failure.error for _, failure in report.failures]
        told += [note for result in report.results for note in result.notes]
        assert any(disturbed.fault.words in words for words in told), told
    if report.converged:
        assert not scene.apply(case.after).results, "it was said to have converged"


@pytest.mark.parametrize("kind", [16, 20, 24, 28, 32])
def test_no_right_to_write(kind: int, scene: Scene) -> None:
    """Every request of a type is refused: nothing of the kind comes to be, or to be claimed."""
    report = scene.apply(FULL, Watched(sock=Disturbance(write(kind), Denied(), FOREVER).socket))
    assert not report.converged
    assert {failure.error for _, failure in report.failures} >= {Denied.words}
    made = scene.look() - scene.ground
    whats = {16: "link", 20: "address", 24: "route4", 28: "neighbour", 32: "rule"}
    assert whats[kind] not in {item.what for item in made}
    _makes_good(scene, FULL)


NIC = {
    "Interface/nic": "{ifname: nic1, mtu: 1400}",
    "IPv4StaticAddress/one": "{interface: nic, address: 198.51.100.1/24}",
    "IPv4Route/one": "{destination: 10.7.0.0/16, gateway: 198.51.100.254, interface: nic}",
    "IPv6Route/one": "{destination: 2001:db8:7::/48, interface: nic}",
    "Neighbour/one": "{interface: nic, address: 198.51.100.9, mac: 02:00:00:00:00:09}",
    "RoutingRule/one": "{priority: 1000, from: 198.51.100.0/24, table: 100}",
}
# Once it was planned (0), or before the first message of a type is sent: links are changed,
# addresses, neighbours, routes and rules made.
STAGES = [0, 16, 20, 28, 24, 32]


def _meanwhile(stage: int, act: Callable[[], object]) -> Watched:
    """Somebody acts at some stage of a pass."""
    if not stage:
        return Watched(before=act)
    return Watched(sock=Disturbance(write(stage), Meanwhile(act)).socket)


@pytest.mark.parametrize("stage", STAGES)
def test_a_nic_vanishes_in_the_middle(stage: int, scene: Scene) -> None:
    report = scene.apply(NIC, _meanwhile(stage, lambda: router_scene.ip("link del nic1\n")))
    assert report.after.pending
    told = [failure.error for _, failure in report.failures]
    assert told or stage == 32, "all that was to be made on it was made already"
    _only_ours_is_new(scene, gone=("nic1", "far1"))
    again = scene.apply(NIC)
    assert again.converged and again.after.pending
    assert not again.results
    router_scene.ip("link add nic1 type veth peer name far1\nlink set nic1 up\nlink set far1 up\n")
    _makes_good(scene, NIC)


RENAMED = "link set nic1 down\nlink set nic1 name was1\nlink set was1 up\n"


def _ours_on(scene: Scene, link: str) -> Counter[Item]:
    found = scene.look()
    return Counter({one: found[one] for one in found if one.protocol == 72 and link in one.where})


@pytest.mark.parametrize("stage", STAGES)
def test_a_nic_is_renamed_in_the_middle(stage: int, scene: Scene) -> None:
    """What was made on it while it had its name stays while what is declared for that name waits:
    without it the router could not be reached, for a name."""
    report = scene.apply(NIC, _meanwhile(stage, lambda: router_scene.ip(RENAMED)))
    assert report.after.pending
    _only_ours_is_new(scene, gone=("nic1",))
    carried = _ours_on(scene, "was1")
    again = scene.apply(NIC)
    assert again.converged and not again.results
    assert _ours_on(scene, "was1") == carried
    router_scene.ip("link set was1 down\nlink set was1 name nic1\nlink set nic1 up\n")
    _makes_good(scene, NIC)


@pytest.mark.parametrize("stage", STAGES)
def test_a_nic_is_renamed_and_no_longer_declared(stage: int, scene: Scene) -> None:
    """It is ours wherever it is now, and nothing waits for its name: it goes."""
    scene.apply(NIC, _meanwhile(stage, lambda: router_scene.ip(RENAMED)))
    _makes_good(scene, {"Interface/other": "{ifname: nic0}"})
    assert not _ours_on(scene, "was1")


@pytest.mark.parametrize("stage", STAGES)
def test_another_link_takes_the_name_in_the_middle(stage: int, scene: Scene) -> None:
    """What is declared for nic1 is declared for whatever bears that name; but what was planned for
    the first one is not done to the second."""

    def exchange() -> None:
        router_scene.ip("link set nic1 down\nlink set nic1 name was1\n")
        router_scene.ip(
            "link add nic1 type veth peer name new1\nlink set nic1 up\nlink set new1 up\n"
        )

    report = scene.apply(NIC, _meanwhile(stage, exchange))
    if not stage:
        told = [failure.error for _, failure in report.failures]
        assert any("no longer what was planned for" in words for words in told), told
    assert [item for item in scene.look() if item.where[0] == "was1"], "it took place"
    _only_ours_is_new(scene, gone=("nic1",))
    _makes_good(scene, NIC)


@pytest.mark.parametrize("stage", [0, 17, 21, 25, 33])
def test_our_bridge_vanishes_while_all_is_deleted(stage: int, scene: Scene) -> None:
    assert scene.apply(FULL).converged
    act = lambda: router_scene.ip("link del hf0\n")  # noqa: E731
    scene.apply(CASES["delete"].after, _meanwhile(stage, act))
    _makes_good(scene, CASES["delete"].after)
    assert not [item for item in scene.look() if item.protocol == 72]


@pytest.mark.parametrize("stage", [0, 16, 20, 24, 25])
@pytest.mark.parametrize("name", ["update", "replace"])
def test_our_bridge_vanishes_while_it_is_changed(name: str, stage: int, scene: Scene) -> None:
    case = CASES[name]
    assert scene.apply(case.before).converged
    act = lambda: router_scene.ip("link del hf0\n")  # noqa: E731
    scene.apply(case.after, _meanwhile(stage, act))
    _only_ours_is_new(scene, gone=())
    _makes_good(scene, case.after)


@pytest.mark.parametrize(
    ("name", "method"),
    [("create", "remember")]  # the tables; only a first pass has any to remember
    + [(name, method) for name in CASES for method in ("begin_generation", "write_claims")],
)
def test_a_ledger_that_cannot_be_written_ahead(name: str, method: str, scene: Scene) -> None:
    """Before anything is asked of the kernel: a full disk changes nothing but itself."""
    case = CASES[name]
    if case.before:
        assert scene.apply(case.before).converged
    before, files, hostname = scene.look(), scene.files(), socket.gethostname()
    with pytest.raises(LedgerError, match="database or disk is full"):
        scene.apply(case.after, Watched(ledger=_full_at(method)))
    assert scene.look() == before
    assert (scene.files(), socket.gethostname()) == (files, hostname)
    _makes_good(scene, case.after)


@pytest.mark.parametrize("name", CASES)
def test_a_ledger_that_cannot_be_written_afterwards(name: str) -> None:
    """What was done is not lost with the record of it."""
    for number in range(1, 100):
        with router_scene.scene() as scene:
            case = CASES[name]
            if case.before:
                assert scene.apply(case.before).converged
            try:
                scene.apply(case.after, Watched(ledger=_full_at("write_claims", number)))
                break
            except LedgerError:
                _makes_good(scene, case.after)
    assert number > 1


def _full_at(method: str, after: int = 0) -> Callable[[Ledger], Ledger]:
    """A ledger whose disk is full from the so-manieth call of a method on."""

    def watch(ledger: Ledger) -> Ledger:
        real, left = getattr(ledger, method), iter(range(after))

        def full(*arguments: Any, **named: Any) -> Any:
            if next(left, None) is None:
                raise LedgerError("cannot commit a change: database or disk is full")
            return real(*arguments, **named)

        setattr(ledger, method, full)
        return ledger

    return watch


def _command(
    scene: Scene,
    resources: dict[str, str],
    disturbed: Disturbance,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[int, Disturbance]:
    """`holdfast apply --yes`, on a socket of ours."""
    path = scene.paths.root / "router_scene.yaml"
    path.write_text(router_scene.document(resources))

    of_machine = drivers.of_machine

    def disturbed_machine(paths: Paths, tag: int, **more: Any) -> Drivers:
        return of_machine(paths, tag, disturbed.socket(), **more)

    monkeypatch.setattr(drivers, "of_machine", disturbed_machine)
    asked = run.Request(scene.paths, path, "test", "json", False, False, False, False, False, 0.0)
    code = run.run(asked)
    path.unlink()
    return code, disturbed


def _makes_good(scene: Scene, resources: dict[str, str]) -> None:
    """The next pass converges, and one after it has nothing to do; nothing is left half done."""
    report = scene.apply(resources)
    assert report.converged, (report.failures, report.after.changes, report.after.blocked)
    assert not scene.apply(resources).results
    with Ledger.read(scene.paths) as ledger:
        unsettled = [
            str(claim.key)
            for claim in ledger.claims().values()
            if claim.state is not ClaimState.OWNED or claim.nonce
        ]
    assert not unsettled
    assert not [str(i) for i in scene.look() if i.what == "link" and i.fields[-1]], "marked links"
    _only_ours_is_new(scene, gone=("nic1", "far1", "was1"))


def _only_ours_is_new(scene: Scene, gone: Iterable[str]) -> None:
    """The ground is as it was, but for links that others took away and what we set on NICs."""
    spared = {"nic0", "nic1", *gone}
    lost = [
        str(item) for item in scene.ground - scene.look() if not spared.intersection(item.where)
    ]
    assert not lost
