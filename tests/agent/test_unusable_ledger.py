"""A ledger that cannot be used is not no network: the daemon goes on with what it knows."""

from __future__ import annotations

import os

import pytest

from holdfast.paths import Paths
from holdfast.state import working_copy
from tests.agent.daemon import serve
from tests.agent.test_full_disk import (
    MORE,
    ROUTER,
    declare,
    file,
    foreign_is_there,
    holdfast,
    metric,
    spoil,
    whole,
)
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace
from tests.state.unusable import WAYS, Way, move_away

__all__ = ["holdfast"]  # a fixture

# One of a kind: tests/state/test_known.py goes through all of them. `make soak` does so here.
_SOME = {
    name: way
    for name, way in WAYS.items()
    if os.environ.get("HOLDFAST_SOAK_STEPS")
    or name
    in (
        "a folder that others may write",
        "no bytes at all",
        "a log without its file",
        "a lock that is a folder",
        "a file in the place of the folder",
    )
}


def _troubles(holdfast: Holdfast) -> list[str]:
    told: list[str] = holdfast.run("status", str(file(holdfast.root)), "-o", "json").json[
        "troubles"
    ]
    return told


@pytest.mark.parametrize("way", _SOME.values(), ids=_SOME)
def test_while_it_runs(netns: Namespace, holdfast: Holdfast, way: Way) -> None:
    paths = Paths(holdfast.root)
    with serve(holdfast.root, file(holdfast.root)) as daemon:
        until(lambda: whole(netns), daemon.said())
        daemon.rest()
        way.spoil(paths)
        spoil(netns)
        until(lambda: whole(netns), daemon.said())
        declare(holdfast.root, ROUTER | MORE)
        until(lambda: whole(netns, "10.8.0.0/16"), daemon.said())
        daemon.wait_for("the ledger is not written")
        until(lambda: metric("holdfast_ledger_written") == 0.0, "the metric")
        assert any("the ledger is not written" in one for one in _troubles(holdfast))
        assert "was not carried out" not in daemon.said()
        declare(holdfast.root, ROUTER)  # what it made meanwhile is its own
        until(lambda: whole(netns), daemon.said())
        (way.mend or move_away)(paths)
        daemon.wait_for("ledger-written")
        until(lambda: not working_copy.exists(paths), "it is written")
        assert "sound" in holdfast.ok("ledger", "check").out
        until(lambda: _troubles(holdfast) == [], daemon.said())
    assert "nothing to do" in holdfast.ok("plan", str(file(holdfast.root))).out
    foreign_is_there(netns)


@pytest.mark.parametrize("way", _SOME.values(), ids=_SOME)
def test_when_it_starts(netns: Namespace, holdfast: Holdfast, way: Way) -> None:
    """After a boot, say: nothing of what it made is there."""
    paths = Paths(holdfast.root)
    holdfast.set_up("apply", str(file(holdfast.root)), "--yes")
    spoil(netns)
    netns.ip("route add 10.7.0.0/16 dev wan0 proto 72")  # as if it had made it
    way.spoil(paths)
    with serve(holdfast.root, file(holdfast.root)) as daemon:
        until(lambda: whole(netns, "10.7.0.0/16"), daemon.said())
        daemon.wait_for("nothing of what it held")
        assert metric("holdfast_ledger_written") == 0.0
        assert any("the mark of a Holdfast" in one for one in _troubles(holdfast))
        netns.ip("route del 10.9.0.0/16")
        until(lambda: whole(netns, "10.7.0.0/16"), daemon.said())
        (way.mend or move_away)(paths)
        daemon.wait_for("ledger-written")
        until(lambda: not working_copy.exists(paths), "it is written")
    foreign_is_there(netns)
