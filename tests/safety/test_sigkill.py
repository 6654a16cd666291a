"""SIGKILL at any point between claim, write and record: the next pass leaks and steals nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from holdfast.engine.claim import ClaimState
from holdfast.engine.reconcile import Report
from holdfast.state.ledger import Ledger
from tests.safety import router_scene
from tests.safety.kill_cases import (
    CASES,
    FOREIGN_FILE,
    FOREIGN_LINKS,
    FOREIGN_REST,
    FOREIGN_RULES,
    FOREIGN_RULES6,
    GONE,
    UNDONE,
    Case,
)
from tests.safety.killing import killed_at
from tests.safety.router_scene import Scene
from tests.safety.snapshot import Item

_LEFTOVER = re.compile(r"/\.[^/]*\.holdfast-[0-9a-f]+$")
_ORIGINALS = {"link": {"mtu": 1500, "alias": ""}, "sysctl": {"value": "0"}}


def _kill_everywhere(case: Case, check: Callable[[Scene, Case], None]) -> None:
    point = 0
    while True:
        point += 1
        with router_scene.scene() as scene:
            if case.before:
                assert scene.apply(case.before).converged
            where = killed_at(point, scene, case.after)
            if not where:
                break
            try:
                check(scene, case)
            except AssertionError as error:
                raise AssertionError(f"killed at point {point}, {where}: {error}") from error
    assert point > 10, "the pass must have had something to do"


@pytest.mark.parametrize("name", CASES)
def test_the_next_pass_finishes_and_leaks_nothing(name: str) -> None:
    _kill_everywhere(CASES[name], finishes)


@pytest.mark.parametrize("name", UNDONE)
def test_the_pass_after_it_takes_back_what_was_begun(name: str) -> None:
    _kill_everywhere(UNDONE[name], finishes)


@pytest.mark.parametrize("name", CASES)
def test_what_others_put_in_its_place_meanwhile_stays_theirs(name: str) -> None:
    _kill_everywhere(CASES[name], lambda scene, case: _steals_nothing(scene, case, _put_the_rest))


def test_what_others_put_in_place_of_what_was_deleted_stays_theirs() -> None:
    """Also where it is declared again."""
    case = UNDONE["delete"]
    _kill_everywhere(case, lambda scene, case: _steals_nothing(scene, case, _put_the_rest))


@pytest.mark.parametrize("name", ["create", "replace", "delete"])
def test_links_that_others_made_meanwhile_stay_theirs(name: str) -> None:
    _kill_everywhere(CASES[name], lambda scene, case: _steals_nothing(scene, case, _put_links))


def finishes(scene: Scene, case: Case) -> None:
    report = scene.apply(case.then)
    assert report.converged, words(report)
    is_settled(scene, report)
    is_quiet(scene, case)
    _remembers_originals(scene)
    report = scene.apply(GONE)
    assert report.converged, words(report)
    is_settled(scene, report)
    left = scene.look()
    assert _comparable(left) == _comparable(scene.ground), _difference(left, scene.ground)
    assert set(scene.files()) <= {"/etc/hostname"}


def _steals_nothing(scene: Scene, case: Case, put: Callable[[Scene, Case], None]) -> None:
    before, files = scene.look(), scene.files()
    put(scene, case)
    theirs = scene.look() - before
    their_files = {path: text for path, text in scene.files().items() if path not in files}
    in_the_way = their_files or any(item.what != "rule" for item in theirs)
    for resources in (case.then, case.then, GONE):
        report = scene.apply(resources)
        now = scene.look()
        assert not theirs - now, _difference(theirs, now)
        assert not _comparable(scene.ground) - _comparable(now), _difference(scene.ground, now)
        assert their_files.items() <= scene.files().items()
        is_settled(scene, report)
        if in_the_way and resources is not GONE:
            _says_so(report)


def _put_links(_scene: Scene, case: Case) -> None:
    """At the names that are declared, as links or as peers."""
    text = router_scene.document(case.then)
    commands = [line for name, line in FOREIGN_LINKS.items() if f": {name}," in text]
    router_scene.ip("".join(commands), "-force")


def _put_the_rest(scene: Scene, _case: Case) -> None:
    router_scene.ip(FOREIGN_REST + FOREIGN_RULES, "-force")
    router_scene.ip(FOREIGN_RULES6, "-6", "-force")
    place = scene.paths.under(FOREIGN_FILE)
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        place.write_text("# somebody else's\n")


def is_settled(scene: Scene, report: Report) -> None:
    """Nothing is left half done but what was refused, because others stand on it."""
    refused = {failure.key for _, failure in report.failures}
    with Ledger.read(scene.paths) as ledger:
        assert ledger.check() == []
        unsettled = [
            (str(claim.key), claim.state, claim.nonce)
            for claim in ledger.claims().values()
            if (claim.state is not ClaimState.OWNED or claim.nonce) and claim.key not in refused
        ]
    assert not unsettled
    marked = [str(item) for item in scene.look() if item.what == "link" and item.fields[-1]]
    assert not marked, "links still carry a mark"
    assert not [path for path in scene.files() if _LEFTOVER.search(path)]


def is_quiet(scene: Scene, case: Case) -> None:
    with Ledger.read(scene.paths) as ledger:
        claims = ledger.claims()
    again = scene.apply(case.then)
    assert not again.results
    with Ledger.read(scene.paths) as ledger:
        assert ledger.claims() == claims


def _remembers_originals(scene: Scene) -> None:
    """What a setting was before the first of the passes, killed or not."""
    with Ledger.read(scene.paths) as ledger:
        found = ledger.claims()
    for key, claim in found.items():
        if key.name in ("nic0", "net.ipv4.conf.nic0.rp_filter"):
            assert claim.original == _ORIGINALS[key.kind], key
        if key.kind == "hostname":
            assert claim.original == {"hostname": f"{scene.hostname} (no name in /etc/hostname)"}


def _says_so(report: Report) -> None:
    after = report.after
    assert after.conflicts or after.candidates or after.blocked or report.failures, words(report)


def _comparable(items: Counter[Item]) -> Counter[Item]:
    """nic0 without what Holdfast is told to set on it, which stays as it was set."""
    found: Counter[Item] = Counter()
    for item, count in items.items():
        if item.where[0] == "nic0" and item.what == "link":
            item = item._replace(fields=item.fields[:2])
        found[item] += count
    return found


def _difference(was: Counter[Item], now: Counter[Item]) -> str:
    was, now = _comparable(was), _comparable(now)
    return "\n".join(f"  - {item}" for item in was - now)


def words(report: Report) -> str:
    after = report.after
    lines = [f"{failure.key}: {failure.error}" for _, failure in report.failures]
    lines += [f"{op.verb} {op.subject}: {op.reason}" for op in after.changes]
    lines += [str(one) for one in (*after.conflicts, *after.blocked, *after.pending)]
    return "\n".join([*lines, str(after.unknown)])
