"""What others hold stays theirs for as long as they like: a conflict that stands takes neither the
way back nor the good name of what was applied beside it."""

from __future__ import annotations

import pytest

from tests.agent.two_providers import until
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace

HELD = route("held", "10.50.0.0/16")


def _states(holdfast: Holdfast) -> list[str]:
    found = holdfast.ok("generations", "list", "-o", "json").json["generations"]
    return [one["state"] for one in reversed(found)]


@pytest.fixture
def conflict(wan: Namespace) -> Namespace:
    wan.ip("link set wan0 up")
    wan.ip("addr add 198.51.100.1/24 dev wan0")
    wan.ip("route add 10.50.0.0/16 via 198.51.100.9 dev wan0")
    return wan


def test_one_goes_back_under_a_conflict(holdfast: Holdfast, conflict: Namespace) -> None:
    for number in (1, 2):
        holdfast.declare(WAN, WAN_ADDRESS, HELD, route("a", f"10.{number}.0.0/16"))
        assert holdfast.run("apply", "router.yaml", "--yes").code == 1
    done = holdfast.run("rollback", "--yes")
    assert "is as in generation 1 again" in done.err, done.err
    routes = conflict.ip("route show")
    assert "10.1.0.0/16" in routes
    assert "10.2.0.0/16" not in routes
    assert "10.50.0.0/16 via 198.51.100.9" in routes


def test_a_generation_that_converged_is_gone_back_to(holdfast: Holdfast, wan: Namespace) -> None:
    """Also where others took the place of something of it since."""
    holdfast.declare(WAN, WAN_ADDRESS, HELD, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    wan.ip("addr add 198.51.100.1/24 dev wan0")
    wan.ip("route replace 10.50.0.0/16 via 198.51.100.9 dev wan0")
    assert holdfast.run("apply", "router.yaml", "--yes").code == 1
    assert _states(holdfast) == ["converged"]
    holdfast.declare(WAN, WAN_ADDRESS, HELD, route("a", "10.2.0.0/16"))
    assert holdfast.run("apply", "router.yaml", "--yes").code == 1
    assert _states(holdfast) == ["converged", "partial"]
    assert "is as in generation 1 again" in holdfast.run("rollback", "--yes").err


def test_what_failed_in_part_is_passed_by(holdfast: Holdfast, wan: Namespace) -> None:
    """Where it can be: one that converged is the better one to go back to."""
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    wan.ip("addr add 198.51.100.1/24 dev wan0")
    wan.ip("route add 10.50.0.0/16 via 198.51.100.9 dev wan0")
    holdfast.declare(WAN, WAN_ADDRESS, HELD, route("a", "10.2.0.0/16"))
    assert holdfast.run("apply", "router.yaml", "--yes").code == 1
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.3.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "is as in generation 1 again" in holdfast.ok("rollback", "--yes").err


@pytest.mark.usefixtures("conflict")
def test_a_pass_of_the_timer_fails_nothing(holdfast: Holdfast) -> None:
    """It finds the conflict that stands, and does nothing: that is no failure."""
    holdfast.declare(WAN, WAN_ADDRESS, HELD, route("a", "10.1.0.0/16"))
    assert holdfast.run("apply", "router.yaml", "--yes").code == 1
    assert holdfast.run("reconcile", "--once", "router.yaml").code == 1
    assert _states(holdfast) == ["partial"]
    status = holdfast.run("status", "-o", "json", "router.yaml").json
    assert status["last_pass"]["outcome"] == "partial"


def test_nor_does_one_of_the_daemon(holdfast: Holdfast, wan: Namespace) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS, HELD, route("a", "10.1.0.0/16"))
    with daemon(holdfast, file):
        wan.ip("addr add 198.51.100.1/24 dev wan0")
        wan.ip("route replace 10.50.0.0/16 via 198.51.100.9 dev wan0")
        until(lambda: holdfast.run("status").code == 1, "the conflict")
        holdfast.run("reconcile", "--once")
        assert _states(holdfast) == ["converged"]
        holdfast.declare(WAN, WAN_ADDRESS, HELD, route("a", "10.2.0.0/16"))
        until(lambda: "10.2.0.0/16" in wan.ip("route show"), "the other route")
        assert "is as in generation 1 again" in holdfast.run("rollback", "--yes").err
