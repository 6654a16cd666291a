"""Commands beside a full disk: what need not be kept for good goes on, and the rest is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.paths import Paths
from holdfast.state import working_copy
from holdfast.state.ledger import Ledger
from tests.agent.two_providers import until
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.disks import Disk, small_disk
from tests.namespace import Namespace

ROUTER = (WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
UNWRITTEN = "warning: the ledger is not written"


@pytest.fixture
def disk(holdfast: Holdfast, wan: Namespace) -> Iterator[Disk]:  # noqa: ARG001 (in its namespace)
    """Of the state folder, with ROUTER applied."""
    with small_disk(holdfast.root / "var") as made:
        holdfast.declare(*ROUTER)
        holdfast.set_up("apply", "router.yaml", "--yes")
        yield made


def _routes(netns: Namespace) -> set[str]:
    return {one["dst"] for one in netns.ip_json("route show proto 72")}


def test_apply_goes_on(holdfast: Holdfast, wan: Namespace, disk: Disk) -> None:
    disk.fill()
    wan.ip("route del 10.1.0.0/16")
    holdfast.declare(*ROUTER, route("b", "10.2.0.0/16"))
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == 0, done
    assert UNWRITTEN in done.err
    assert _routes(wan) == {"10.1.0.0/16", "10.2.0.0/16"}
    # Another command sees the same.
    done = holdfast.ok("plan", "router.yaml")
    assert "nothing to do" in done.out
    assert UNWRITTEN in done.err
    assert "generation 2" in holdfast.ok("status", "router.yaml").out
    assert "kept in" in holdfast.ok("ledger", "check").out
    disk.free()
    holdfast.ok("apply", "router.yaml", "--yes")
    assert not working_copy.exists(Paths(holdfast.root))
    done = holdfast.ok("ledger", "check")
    assert done.out.endswith("state.db: sound\n")
    numbers = [one["number"] for one in holdfast.ok("ledger", "export").json["generations"]]
    assert numbers == [1, 2]


def _refused(holdfast: Holdfast, command: list[str]) -> None:
    done = holdfast.run(*command)
    assert (done.code, "Traceback" in done.err) == (5, False), (command, done)
    assert "Free some space" in done.err, (command, done)


def test_a_promise_for_good_is_refused(holdfast: Holdfast, wan: Namespace, disk: Disk) -> None:
    export = holdfast.folder / "export.json"
    holdfast.set_up("ledger", "export", str(export))
    wan.ip("route add 10.3.0.0/16 via 192.0.2.254 dev wan0 proto static")
    holdfast.declare(*ROUTER, route("c", "10.3.0.0/16"), file="adopt.yaml")
    holdfast.declare(*ROUTER, route("b", "10.2.0.0/16"), file="trial.yaml")
    disk.fill()
    before = _routes(wan)
    adopt = ["adopt", "adopt.yaml", "--apply"]
    trial = ["apply", "trial.yaml", "--yes", "--confirm-within", "1m"]
    others = (
        ["forget", "link wan0", "--yes"],
        ["ledger", "import", "--replace", str(export)],
    )
    for command in (adopt, trial):
        _refused(holdfast, command)
    holdfast.set_up("apply", "router.yaml", "--yes")
    assert working_copy.exists(Paths(holdfast.root))
    for command in (adopt, trial, *others):
        _refused(holdfast, command)
    assert _routes(wan) == before
    with Ledger.read(Paths(holdfast.root)) as ledger:
        assert ledger.waiting() is None
        assert {claim.key.name for claim in ledger.claims().values()} >= {"wan0"}
    disk.free()
    assert holdfast.run("adopt", "adopt.yaml", "--apply").code == 0


def test_a_trial_is_reverted_all_the_same(holdfast: Holdfast, wan: Namespace, disk: Disk) -> None:
    holdfast.declare(*ROUTER, route("b", "10.2.0.0/16"), file="trial.yaml")
    done = holdfast.ok("apply", "trial.yaml", "--yes", "--confirm-within", "10s")
    assert "waits until" in done.err
    disk.fill()
    done = holdfast.run("confirm")
    assert (done.code, "Free some space" in done.err) == (5, True), done
    until(lambda: _routes(wan) == {"10.1.0.0/16"}, "the trial is reverted")
    until(lambda: _states(holdfast)[-1] == "reverted", "it is recorded")
    disk.free()
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "reverted" in _states(holdfast)
    assert holdfast.ok("ledger", "check").out.endswith("state.db: sound\n")


def _states(holdfast: Holdfast) -> list[str]:
    shown = json.loads(holdfast.ok("ledger", "show", "-o", "json").out)
    return [one["state"] for one in sorted(shown["generations"], key=lambda one: one["number"])]


def test_a_look_at_a_read_only_disk_makes_no_copy(holdfast: Holdfast, disk: Disk) -> None:
    """No daemon runs, and nothing was written: a look needs no copy."""
    disk.read_only()
    assert "nothing to do" in holdfast.ok("plan", "router.yaml").out
    assert not working_copy.exists(Paths(holdfast.root))
