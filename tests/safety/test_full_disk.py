"""A pass on a full disk, killed at any point: the next one leaks and steals nothing, whether there
is room by then or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.engine.claim import Lasting
from holdfast.paths import Paths
from holdfast.state import working_copy
from holdfast.state.ledger import Ledger
from tests.disks import Disk, small_disk
from tests.safety import router_scene
from tests.safety.kill_cases import CASES, CHANGED, FULL, GONE, Case
from tests.safety.killing import killed_at
from tests.safety.router_scene import Scene
from tests.safety.test_sigkill import finishes, is_quiet, is_settled, words

# A new file waits until it can be claimed for good.
_NO_FILE = {"Sysctl/filter": "{key: net.ipv4.conf.nic0.rp_filter, value: 1}"}
_CASES = {
    **CASES,
    "create": Case({}, FULL | _NO_FILE, FULL | _NO_FILE),
}
# `make soak` takes all points.
_EVERY = 1 if os.environ.get("HOLDFAST_SOAK_STEPS") else 17
_FILE = "/etc/sysctl.d/90-holdfast-filter.conf"


@contextmanager
def _scene(case: Case) -> Iterator[tuple[Scene, Disk]]:
    with router_scene.scene() as scene, small_disk(scene.paths.state_dir, "8m") as disk:
        if case.before:
            assert scene.apply(case.before).converged
        else:
            Ledger.open(scene.paths, command="test").close()
        disk.fill()
        yield scene, disk


def _is_written(paths: Paths) -> None:
    assert not working_copy.exists(paths)
    with Ledger.read(paths) as ledger:
        assert (ledger.trouble, ledger.lasting) == ("", Lasting.FOR_GOOD)


@pytest.mark.parametrize("room", [True, False], ids=["room again", "still full"])
@pytest.mark.parametrize("name", _CASES)
def test_killed_anywhere(name: str, room: bool) -> None:
    case, point = _CASES[name], 1 + 4 * room
    while True:
        with _scene(case) as (scene, disk):
            where = killed_at(point, scene, case.after)
            if not where:
                break
            try:
                if not room:
                    report = scene.apply(case.then)
                    assert report.converged, words(report)
                    is_settled(scene, report)
                    is_quiet(scene, case)
                    assert working_copy.exists(scene.paths)
                disk.free()
                finishes(scene, case)
                _is_written(scene.paths)
            except AssertionError as error:
                raise AssertionError(f"killed at point {point}, {where}: {error}") from error
        point += _EVERY
    assert point > 10, "the pass must have had something to do"


def test_a_new_file_waits_for_room() -> None:
    with _scene(Case({}, FULL, FULL)) as (scene, disk):
        report = scene.apply(FULL)
        (said,) = {f"{failure.key}: {failure.error}" for _, failure in report.failures}
        assert said.startswith(f"file {_FILE}: not tried: the ledger cannot be written")
        assert _FILE not in scene.files()
        assert [op.kind for op in report.after.changes] == ["file"]
        disk.free()
        finishes(scene, Case({}, FULL, FULL))


def test_a_boot_before_it_was_written() -> None:
    """What outlives it is told to be ours by what was claimed before the disk was full."""
    small = {"Sysctl/filter": FULL["Sysctl/filter"], "Hostname/one": FULL["Hostname/one"]}
    other = {name: CHANGED[name] for name in small}
    for missing in (False, True):
        with _scene(Case(small, other, other)) as (scene, disk):
            if missing:
                scene.paths.under(_FILE).unlink()
            assert scene.apply(other).converged
            assert b"= 2" in scene.files()[_FILE]
            working_copy.remove(scene.paths)  # as the boot does
            disk.free()
            assert scene.apply(other).converged
            assert scene.apply(GONE).converged
            assert _FILE not in scene.files()
