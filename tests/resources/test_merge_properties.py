"""What holds of every merge, whatever sources contribute."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.config.part import Directive, Part
from holdfast.resources.dynamic.effective import Effective, merge
from holdfast.resources.router import Router
from tests.resources.parts import NOW, admitting, mask, part, raw
from tests.resources.routers import load

pytestmark = pytest.mark.long

SOURCES = ("Manager/main", "Owner/a", "Owner/b", "Plugin/bound", "Plugin/unbound")
NAMES = ("one", "two", "three")
TARGETS = [
    {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": kind, "name": name}
    for kind, name in (("IPv4Route", "one"), ("IPv4Route", "two"), ("Interface", "lan"))
]


@pytest.fixture(scope="module")
def startup(tmp_path_factory: pytest.TempPathFactory) -> Router:
    folder: Path = tmp_path_factory.mktemp("merge")
    allow = [
        {"source": source, "operations": ["mask"], "targets": TARGETS}
        for source in ("Owner/a", "Plugin/bound")
    ]
    return load(
        folder,
        ("Interface", "lan", {"ifname": "eth0"}),
        ("IPv4StaticAddress", "lan", {"interface": "lan", "address": "192.0.2.1/24"}),
        ("IPv4Route", "one", {"destination": "10.1.0.0/16", "gateway": "192.0.2.2"}),
        ("IPv4Route", "two", {"destination": "10.2.0.0/16", "gateway": "192.0.2.2"}),
        ("Plugin", "bound", {"executable": "/bin/true"}),
        ("DynamicConfigSource", "bound", {"pluginRef": "bound", "ttl": "90s"}),
        *(admitting(source) for source in SOURCES if not source.startswith("Plugin/")),
        ("DynamicOverridePolicy", "all", {"allow": allow}),
    )


def _route(name: str, net: int, gateway: int) -> dict[str, Any]:
    spec = {"destination": f"10.{net}.0.0/16", "gateway": f"192.0.2.{gateway}"}
    return raw("IPv4Route", name, spec)


resources = st.one_of(
    st.builds(
        _route, st.sampled_from(("one", "x", "y", "z")), st.integers(1, 4), st.integers(2, 3)
    ),
    st.builds(
        lambda name, link: raw(
            "IPv4StaticAddress", name, {"interface": link, "address": "10.9.0.1/24"}
        ),
        st.sampled_from(("p", "q")),
        st.sampled_from(("lan", "dmz", "nowhere")),
    ),
    st.just(raw("Interface", "dmz", {"ifname": "eth1"})),
    st.just({"kind": "Bogus"}),
    st.just(raw("DynamicOverridePolicy", "mine", {"allow": []})),
)
masks = st.one_of(
    st.sampled_from(("one", "two", "three")).map(
        lambda name: mask("IPv4Route", name, f"no {name}")
    ),
    st.just(mask("Interface", "lan")),
    st.just(Directive("mask", mask("IPv4Route", "one").target._replace(kind="Bogus"))),
)


@st.composite
def some_parts(draw: Callable[[Any], Any]) -> list[Part]:
    identities = draw(
        st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(1, 3)), max_size=6, unique=True)
    )
    return [
        part(
            source,
            *draw(st.lists(resources, max_size=3)),
            masks=tuple(draw(st.lists(masks, max_size=2))),
            generation=generation,
            lasts=draw(st.sampled_from((None, 10.0, 60.0, 600.0))),
            observed=NOW - draw(st.sampled_from((0.0, 30.0))),
        )
        for source, generation in identities
    ]


@st.composite
def histories(draw: Callable[[Any], Any]) -> list[Part]:
    """What sources hand in, one after the other, every second."""
    count = draw(st.integers(1, 9))
    return [
        part(
            draw(st.sampled_from(SOURCES)),
            *draw(st.lists(resources, max_size=3)),
            masks=tuple(draw(st.lists(masks, max_size=2))),
            generation=number + 1,
            lasts=draw(st.sampled_from((None, 2.5, 5.0, 600.0))),
            observed=NOW + number,
        )
        for number in range(count)
    ]


def told(merged: Effective) -> tuple[object, ...]:
    """All that a merge says; only indices may be others, as they count rejected parts too."""
    return (
        [(one.id, one.spec, one.place, one.part) for one in merged.router.resources],
        merged.router.files,
        merged.suppressed,
        [(one.part.ref, one.directive, one.reason) for one in merged.ignored],
        merged.active,
    )


@given(some_parts(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_in_which_parts_come_is_no_matter(
    startup: Router, parts: list[Part], random: Random
) -> None:
    shuffled = parts[:]
    random.shuffle(shuffled)
    assert merge(startup, shuffled, NOW) == merge(startup, parts, NOW)


@given(some_parts())
@settings(max_examples=150, deadline=None)
def test_what_is_rejected_over_or_replaced_leaves_no_trace(
    startup: Router, parts: list[Part]
) -> None:
    merged = merge(startup, parts, NOW)
    kept = {one.ref for one in merged.active}
    alone = merge(startup, [one for one in parts if one.ref in kept], NOW)
    assert told(alone) == told(merged)
    assert not alone.rejected
    for one in merged.rejected:
        assert one.reasons
        assert told(merge(startup, [p for p in parts if p.source != one.part.source], NOW)) == told(
            merged
        )


@given(some_parts())
@settings(max_examples=100, deadline=None)
def test_each_part_in_force_is_there_whole_and_nothing_else(
    startup: Router, parts: list[Part]
) -> None:
    merged = merge(startup, parts, NOW)
    declared = [one.id for one in merged.router.resources]
    assert len(declared) == len(set(declared))
    contributed = [
        f"{r['kind']}/{r['metadata']['name']}" for p in merged.active for r in p.resources
    ]
    assert [one.id for one in merged.added] == contributed
    hidden = {one.resource.id for one in merged.suppressed}
    assert set(declared) == ({one.id for one in startup.resources} - hidden) | set(contributed)
    for one in merged.active:
        assert not one.expired(NOW)
        assert one.generation == max(p.generation for p in parts if p.source == one.source)
        assert one.source != "Plugin/unbound"
    sources = [one.source for one in merged.active]
    assert sources == sorted(set(sources))


@given(some_parts(), st.floats(0, 700))
@settings(max_examples=100, deadline=None)
def test_nothing_changes_before_the_next_change(
    startup: Router, parts: list[Part], later: float
) -> None:
    merged = merge(startup, parts, NOW)
    if merged.next_change is None or NOW + later < merged.next_change:
        assert merge(startup, parts, NOW + later) == merged
    else:
        assert merged.next_change > NOW
        after = merge(startup, parts, merged.next_change)
        assert len(after.expired) > len(merged.expired)
    assert all(one.expired(NOW + 1000) or one.expires is None for one in merged.active)


@given(some_parts(), some_parts())
@settings(max_examples=150, deadline=None)
def test_an_earlier_merge_changes_nothing(
    startup: Router, earlier: list[Part], parts: list[Part]
) -> None:
    """But for the generation that places name, where the same was said again."""
    before = merge(startup, earlier, NOW)
    for given_parts in (parts, [replace(p, generation=p.generation + 5) for p in earlier]):
        merged, fresh = merge(startup, given_parts, NOW, before), merge(startup, given_parts, NOW)
        assert replace(merged, router=fresh.router, added=fresh.added) == fresh
        assert [(one.id, one.spec) for one in merged.router.resources] == [
            (one.id, one.spec) for one in fresh.router.resources
        ]
        assert merged.router.files == fresh.router.files


@given(some_parts())
@settings(max_examples=50, deadline=None)
def test_what_is_given_is_never_changed(startup: Router, parts: list[Part]) -> None:
    before, files = copy.deepcopy(parts), [replace(file) for file in startup.files]
    resources = list(startup.resources)
    merge(startup, parts, NOW)
    assert parts == before
    assert list(startup.resources) == resources
    assert list(startup.files) == files


def lived(startup: Router, parts: list[Part]) -> tuple[dict[str, int], Effective]:
    """What was in force last of each source, when each part was merged as it came."""
    accepted: dict[str, int] = {}
    merged = merge(startup, [], NOW)
    for number, one in enumerate(parts):
        merged = merge(startup, parts[: number + 1], one.observed, merged, accepted)
        accepted |= {one.source: one.generation for one in merged.active}
    return accepted, merged


@given(histories(), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_what_stays_in_force(startup: Router, parts: list[Part], random: Random) -> None:
    accepted, merged = lived(startup, parts)
    now, before = parts[-1].observed, dict(accepted)
    shuffled = parts[:]
    random.shuffle(shuffled)
    again = merge(startup, shuffled, now, None, accepted)
    assert told(again)[3:] == told(merged)[3:], "it does not matter how it came about"
    assert again == merge(startup, parts, now, None, accepted)
    assert accepted == before
    newest = {one.source: one for one in sorted(parts, key=lambda one: one.generation)}
    rejected = {one.part.source: one for one in merged.rejected}
    for one in merged.active:
        assert not one.expired(now)
        last = newest[one.source]
        if one.generation == last.generation:
            assert one.source not in rejected
            continue
        assert accepted[one.source] == one.generation, "only what was in force last"
        over = last.generation in [p.generation for p in merged.expired if p.source == one.source]
        assert over or rejected[one.source].held == one
    for source, it in rejected.items():
        assert it.part.generation == newest[source].generation
        assert (it.held is not None) == (source in {one.source for one in merged.active})


@given(histories())
@settings(max_examples=200, deadline=None)
def test_what_stays_in_force_keeps_no_newest_part_out(startup: Router, parts: list[Part]) -> None:
    accepted, merged = lived(startup, parts)
    now = parts[-1].observed
    alone = merge(startup, parts, now)
    assert {one.ref for one in alone.active} <= {one.ref for one in merged.active}
    apart = merge(startup, merged.active, now)
    assert told(apart) == told(merge(startup, parts, now, None, accepted))
    assert not apart.rejected, "all of it is valid together"


@given(histories())
@settings(max_examples=200, deadline=None)
def test_saying_the_same_again_changes_nothing_of_what_stays(
    startup: Router, parts: list[Part]
) -> None:
    accepted, merged = lived(startup, parts)
    now = parts[-1].observed
    newest = {one.source: one for one in sorted(parts, key=lambda one: one.generation)}
    repeated = [*parts, *(replace(one, generation=100) for one in newest.values())]
    known = {source: accepted[source] for source in accepted}
    for one in merged.active:  # as `put` does it
        if newest[one.source].generation == one.generation:
            known[one.source] = 100
    quick, fresh = (merge(startup, repeated, now, before, known) for before in (merged, None))
    assert replace(quick, router=fresh.router, added=fresh.added) == fresh
    assert quick.router.files == fresh.router.files
