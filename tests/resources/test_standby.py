"""What was in force last stays while the newest part of its source is rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.config.part import Part
from holdfast.resources.dynamic.effective import Effective, merge
from holdfast.resources.router import Router
from tests.resources.parts import NOW, admitting, mask, part, raw
from tests.resources.routers import load

SOURCES = ("Manager/main", "Owner/a", "Owner/b", "Owner/c", "Owner/ci", "Owner/other")
BOGUS = {"kind": "Bogus"}
LAN = raw("Interface", "lan", {"ifname": "eth1"})
ON_LAN = raw("IPv4StaticAddress", "lan", {"interface": "lan", "address": "10.7.0.1/24"})
MASK = mask("IPv4Route", "fallback", "it moved")


def route(name: str, net: int) -> dict[str, Any]:
    return raw("IPv4Route", name, {"destination": f"10.{net}.0.0/16", "gateway": "192.0.2.254"})


def declare(folder: Path, *, masks: bool = True) -> Router:
    target = {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4Route", "name": "fallback"}
    allow = [{"source": "Owner/ci", "operations": ["mask"], "targets": [target]}]
    policy = ("DynamicOverridePolicy", "ci", {"allow": allow})
    return load(
        folder,
        ("Interface", "wan", {"ifname": "eth0"}),
        ("IPv4StaticAddress", "wan", {"interface": "wan", "address": "192.0.2.1/24"}),
        ("IPv4Route", "fallback", {"destination": "10.0.0.0/8", "gateway": "192.0.2.254"}),
        ("Plugin", "cloud", {"executable": "/usr/local/bin/cloud"}),
        ("DynamicConfigSource", "cloud", {"pluginRef": "cloud", "ttl": "2m"}),
        *map(admitting, SOURCES),
        *((policy,) if masks else ()),
    )


@pytest.fixture
def startup(tmp_path: Path) -> Router:
    return declare(tmp_path)


def active(merged: Effective) -> list[str]:
    return [one.ref for one in merged.active]


def merged_with(startup: Router, *parts: Part, at: float = NOW, **accepted: int) -> Effective:
    """accepted: by the name of an Owner."""
    known = {f"Owner/{name}": number for name, number in accepted.items()}
    return merge(startup, parts, at, None, known)


def test_it_stays_until_its_own_end(startup: Router) -> None:
    good = part("Owner/ci", route("app", 1), masks=(MASK,))
    bad = part("Owner/ci", route("app", 1), BOGUS, generation=2, lasts=600)
    merged = merged_with(startup, good, bad, ci=1)
    assert active(merged) == ["Owner/ci#1"]
    assert [one.id for one in merged.added] == ["IPv4Route/app"]
    assert [one.masked_by for one in merged.suppressed] == [("Owner/ci#1",)]
    (rejected,) = merged.rejected
    assert rejected.part is bad
    assert rejected.held == good
    assert rejected.told[-1] == "Owner/ci#1 stays in force until 1970-01-12T13:51:40Z"
    assert merged.next_change == NOW + 300
    over = merged_with(startup, good, bad, at=NOW + 300, ci=1)
    assert over.router is startup
    assert [one.told for one in over.rejected] == [rejected.reasons]


def test_nothing_stays_that_was_never_in_force(startup: Router) -> None:
    parts = [part("Owner/ci", route("app", 1)), part("Owner/ci", BOGUS, generation=2)]
    assert active(merged_with(startup, *parts)) == []


def test_nothing_older_than_what_was_in_force_last(startup: Router) -> None:
    """It was replaced for good, also once what replaced it is over."""
    parts = [
        part("Owner/ci", route("old", 1), lasts=600),
        part("Owner/ci", route("app", 2), generation=2, lasts=10),
        part("Owner/ci", BOGUS, generation=3, lasts=600),
    ]
    assert active(merged_with(startup, *parts, ci=2)) == ["Owner/ci#2"]
    assert active(merged_with(startup, *parts, at=NOW + 10, ci=2)) == []
    assert active(merged_with(startup, *parts[:2], at=NOW + 10, ci=2)) == []


def test_what_is_over_without_ever_being_in_force_has_replaced_nothing(startup: Router) -> None:
    parts = [
        part("Owner/ci", route("app", 1)),
        part("Owner/ci", BOGUS, generation=2, lasts=10),
    ]
    merged = merged_with(startup, *parts, at=NOW + 10, ci=1)
    assert active(merged) == ["Owner/ci#1"]
    assert not merged.rejected


def test_it_falls_away_where_it_is_not_valid_any_more(startup: Router) -> None:
    good = part("Owner/ci", route("app", 1))
    taken = part("Manager/main", route("app", 2))
    bad = part("Owner/ci", BOGUS, generation=2)
    merged = merged_with(startup, good, taken, bad, ci=1)
    assert active(merged) == ["Manager/main#1"]
    (rejected,) = merged.rejected
    assert rejected.held is None
    assert rejected.told[-1].startswith(
        "Owner/ci#1 does not stay in force: Owner/ci#1 resources[0]: IPv4Route/app is declared"
    )


def test_it_never_keeps_out_what_another_source_says_now(startup: Router) -> None:
    """Though its source comes first."""
    good, bad = part("Owner/a", route("app", 1)), part("Owner/a", BOGUS, generation=2)
    other = part("Owner/b", route("app", 2))
    assert active(merged_with(startup, good, other, a=1)) == ["Owner/a#1"]
    assert active(merged_with(startup, good, other, bad, a=1)) == ["Owner/b#1"]


def test_its_masks_obey_the_policy_of_now(startup: Router, tmp_path: Path) -> None:
    parts = [
        part("Owner/ci", route("app", 1), masks=(MASK,)),
        part("Owner/ci", BOGUS, generation=2),
    ]
    assert merged_with(startup, *parts, ci=1).suppressed
    merged = merged_with(declare(tmp_path, masks=False), *parts, ci=1)
    assert active(merged) == ["Owner/ci#1"]
    assert not merged.suppressed
    assert [one.part.ref for one in merged.ignored] == ["Owner/ci#1"]


def test_a_plugin_that_may_contribute_no_more_has_nothing_that_stays(startup: Router) -> None:
    parts = [
        part("Plugin/gone", route("app", 1)),
        part("Plugin/gone", route("app", 1), generation=2),
    ]
    merged = merge(startup, parts, NOW, None, {"Plugin/gone": 1})
    assert active(merged) == []


def test_the_ttl_of_today_ends_what_stays(startup: Router) -> None:
    parts = [
        part("Plugin/cloud", route("app", 1), lasts=600),
        part("Plugin/cloud", BOGUS, generation=2, observed=NOW + 60),
    ]
    for at, there in ((119.0, ["Plugin/cloud#1"]), (120.0, [])):
        assert active(merge(startup, parts, NOW + at, None, {"Plugin/cloud": 1})) == there


def test_others_that_refer_to_it_stay_too(startup: Router) -> None:
    """Wherever they stand in the order, and whether they said anything new."""
    parts = [
        part("Owner/b", LAN),
        part("Owner/b", BOGUS, generation=2),
        part("Owner/a", ON_LAN),
        part("Owner/c", route("c", 9)),
    ]
    merged = merged_with(startup, *parts, a=1, b=1)
    assert active(merged) == ["Owner/a#1", "Owner/b#1", "Owner/c#1"]


def test_the_newest_is_taken_once_what_it_refers_to_stands(startup: Router) -> None:
    """What Owner/a said before could stand in for it, but need not."""
    parts = [
        part("Owner/a", route("a", 1)),
        part("Owner/a", ON_LAN, generation=2),
        part("Owner/b", LAN),
        part("Owner/b", BOGUS, generation=2),
    ]
    merged = merged_with(startup, *parts, a=1, b=1)
    assert active(merged) == ["Owner/a#2", "Owner/b#1"]
    assert [one.part.ref for one in merged.rejected] == ["Owner/b#2"]


def test_nothing_else_changes_its_place(startup: Router) -> None:
    good, other = part("Owner/a", route("a", 1)), part("Owner/b", route("b", 2))
    bad = part("Owner/a", BOGUS, BOGUS, generation=2)
    before = merged_with(startup, good, other)
    after = merged_with(startup, good, bad, other, a=1)
    assert [one.id for one in after.router.resources] == [one.id for one in before.router.resources]
    assert after.router.files == before.router.files


@pytest.mark.parametrize(
    "resource",
    [
        {"kind": ["a"]},
        {"kind": {"a": 1}},
        {"kind": None, "metadata": []},
        {"apiVersion": [], "kind": "IPv4Route", "metadata": {"name": ["x"]}, "spec": []},
        {"kind": "IPv4Route", "spec": {"destination": 10**400}},
    ],
)
def test_whatever_a_part_holds_it_is_rejected_and_the_rest_stands(
    startup: Router, resource: dict[str, Any]
) -> None:
    parts = [part("Owner/a", resource), part("Owner/b", route("b", 2))]
    merged = merge(startup, parts, NOW)
    assert active(merged) == ["Owner/b#1"]
    assert [one.part.ref for one in merged.rejected] == ["Owner/a#1"]


def test_a_fault_of_ours_rejects_one_part_and_stops_no_other(
    startup: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.resources.dynamic import contribution

    read = contribution.read

    def faulty(given: Part, first: int) -> contribution.Contribution:
        if given.source == "Owner/a":
            raise KeyError("nobody thought of this")
        return read(given, first)

    monkeypatch.setattr(contribution, "read", faulty)
    merged = merge(startup, [part("Owner/a"), part("Owner/b", route("b", 2))], NOW)
    assert active(merged) == ["Owner/b#1"]
    assert "a fault in Holdfast itself: KeyError" in merged.rejected[0].reasons[0]


def test_a_reason_does_not_repeat_all_that_a_part_says(startup: Router) -> None:
    long = route("app", 1) | {"metadata": {"name": "x" * 100_000}}
    (rejected,) = merge(startup, [part("Owner/ci", long)], NOW).rejected
    assert all(len(reason) < 1100 for reason in rejected.reasons)


def test_a_mask_that_is_missed_is_among_the_reasons(startup: Router) -> None:
    same = raw("IPv4Route", "app", {"destination": "10.0.0.0/8", "gateway": "192.0.2.9"})
    (rejected,) = merge(startup, [part("Owner/other", same, masks=(MASK,))], NOW).rejected
    first, second = rejected.reasons
    assert "is declared differently by IPv4Route/fallback" in first
    assert second.endswith("no DynamicOverridePolicy allows Owner/other to mask it")
