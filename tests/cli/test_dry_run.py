"""`--dry-run` of `rollback` and `cleanup`: the plan of the way back, and nothing else."""

from __future__ import annotations

import pytest

from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace

REFUSED = 4
OLD, NEW = route("a", "10.3.0.0/16"), route("a", "10.9.0.0/16")


@pytest.fixture
def applied(holdfast: Holdfast, wan: Namespace) -> Namespace:
    """Two generations of one file."""
    for one in (OLD, NEW):
        holdfast.declare(WAN, WAN_ADDRESS, one)
        holdfast.set_up("apply", "router.yaml", "--yes")
    return wan


def _state(holdfast: Holdfast, netns: Namespace) -> tuple[str, ...]:
    text = (holdfast.folder / "router.yaml").read_text()
    events = holdfast.ok("generations", "-o", "json").out
    return text, events, netns.ip("route show"), netns.ip("-4 address show")


@pytest.mark.parametrize("served", [False, True], ids=["alone", "beside a daemon"])
def test_rollback(holdfast: Holdfast, applied: Namespace, served: bool) -> None:
    router = holdfast.folder / "router.yaml"

    def look() -> None:
        before = _state(holdfast, applied)
        for words in (("rollback",), ("rollback", "--to", "1")):
            done = holdfast.ok(*words, "--dry-run")
            assert "+ route 10.3.0.0/16" in done.out
            assert "- route 10.9.0.0/16" in done.out
            plan = holdfast.ok(*words, "--dry-run", "-o", "json").json
            assert (plan["summary"]["create"], plan["summary"]["delete"]) == (1, 1)
        assert _state(holdfast, applied) == before

    if not served:
        look()
        return
    with daemon(holdfast, router):
        look()


def test_rollback_of_a_trial(holdfast: Holdfast, applied: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, OLD, file="candidate.yaml")
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    before = _state(holdfast, applied)
    done = holdfast.ok("rollback", "--dry-run")
    assert "+ route 10.9.0.0/16" in done.out
    assert "- route 10.3.0.0/16" in done.out
    assert _state(holdfast, applied) == before
    assert "was reverted" in holdfast.ok("rollback").out
    assert "10.9.0.0/16" in applied.ip("route show")


def test_a_rollback_that_would_be_refused(holdfast: Holdfast, applied: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    before = _state(holdfast, applied)
    done = holdfast.run("rollback", "--dry-run")
    assert (done.code, "never applied" in done.err) == (REFUSED, True)
    assert _state(holdfast, applied) == before


@pytest.mark.parametrize("served", [False, True], ids=["alone", "beside a daemon"])
def test_cleanup(holdfast: Holdfast, applied: Namespace, served: bool) -> None:
    def look() -> None:
        before = _state(holdfast, applied)
        done = holdfast.ok("cleanup", "router.yaml", "--dry-run")
        assert "- route 10.9.0.0/16" in done.out
        assert "- address 192.0.2.1/24" in done.out
        assert holdfast.ok("cleanup", "router.yaml", "--dry-run", "-o", "json").json["operations"]
        assert _state(holdfast, applied) == before

    if not served:
        look()
        return
    with daemon(holdfast, holdfast.folder / "router.yaml"):
        look()
