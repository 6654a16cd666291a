"""What is handed in: checked, stored, replaced, withdrawn, awaited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.part import Part
from holdfast.errors import ConfigError, HoldfastError, LedgerError
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import merge
from holdfast.resources.router import Router
from holdfast.runtime import merge_events, part_checks, sources
from holdfast.runtime.sources import Sources
from holdfast.state.ledger import Ledger
from tests.resources.parts import NOW, admitting, mask, part, raw
from tests.resources.routers import load

ROUTE = raw("IPv4Route", "a", {"destination": "10.1.0.0/16", "gateway": "192.0.2.2"})
OTHER = raw("IPv4Route", "b", {"destination": "10.2.0.0/16", "gateway": "192.0.2.2"})


@pytest.fixture
def paths(root: Path) -> Paths:
    return Paths(root)


@pytest.fixture
def ledger(paths: Paths) -> Iterator[Ledger]:
    with Ledger.open(paths, command="test", clock=lambda: NOW) as opened:
        yield opened


def put(ledger: Ledger, given: Part) -> None:
    sources.put(ledger, given, NOW)


def test_newest_is_in_force(ledger: Ledger) -> None:
    put(ledger, part("Owner/ci", ROUTE))
    put(ledger, part("Owner/ci", OTHER, generation=5))
    put(ledger, part("Manager/main", generation=2, lasts=None))
    assert [one.ref for one in sources.in_force(ledger, NOW)] == ["Manager/main#2", "Owner/ci#5"]
    assert [one.ref for one in sources.in_force(ledger, NOW + 300)] == ["Manager/main#2"]


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        (part("Startup/x"), "spec.source", "is not a source such as"),
        (part("Owner"), "spec.source", "is not a source such as"),
        (part("Owner/a b"), "spec.source", "is not a name"),
        (part("Owner/a/../b"), "spec.source", "is not a name"),
        (part("Owner/\x1b[2J"), "spec.source", "is not a name"),
        (part("Owner/ci", generation=3), "spec.generation", "3 is not above 3, which Owner/ci"),
        (part("Owner/ci", generation=2), "spec.generation", "2 is not above 3"),
        (part("Owner/new", generation=0), "spec.generation", "0 is not from 1 to"),
        (part("Owner/new", generation=2**63), "spec.generation", "is not from 1 to"),
        (part("Owner/new", observed=NOW + 11), "spec.observedAt", "lies 11 s in the future"),
        (part("Owner/new", observed=float("inf")), "spec.observedAt", "is no point in time"),
        (part("Owner/new", lasts=0), "spec.expiresAt", "is not after observedAt"),
        (part("Owner/new", lasts=float("nan")), "spec.expiresAt", "is no point in time"),
        (part("Owner/new", observed=NOW - 60, lasts=30), "spec.expiresAt", "was 30 s ago"),
        (part("Owner/new", {"spec": _nested(40)}), "spec.resources[0]", "nested more than 32"),
        (part("Owner/new", {"spec": float("nan")}), "spec.resources[0]", "nan, which is no number"),
        (part("Owner/new", {"a\nb": 1}), "spec.resources[0]", "a field name that is none"),
        (part("Owner/new", {"a": b"x"}), "spec.resources[0]", "holds a bytes"),
        (
            part("Owner/new", {"a": "\ud800"}),
            "spec.resources[0]",
            "cannot hold half of a character",
        ),
        (part("Owner/new", {"a": "x\x1b"}), "spec.resources[0]", "control character U+001B"),
        (part("Owner/new", {"a": "x" * (4 << 20)}), "spec.resources", "more than 4194304"),
        (part("Owner/new", *[{}] * 10_001), "spec.resources", "are 10001, more than 10000"),
        (
            part("Owner/new", masks=(mask("IPv4Route", "a", "\x1b[31mred"),)),
            "spec.directives[0]",
            "reason is too long, or cannot be printed",
        ),
        (
            part("Owner/new", raw("PPPoEInterface", "a", {"password": "hush"})),
            "spec.resources[0].spec.password",
            "a part cannot hold a secret",
        ),
        (
            replace(part("Owner/new"), action_plans=({"x": {1: 2}},)),
            "spec.actionPlans[0]",
            "a field name that is none: '1'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("spec") else "",
)
def test_what_cannot_be_is_refused_and_noted(
    ledger: Ledger, given: Part, path: str, said: str
) -> None:
    put(ledger, part("Owner/ci", ROUTE, generation=3))
    before = ledger.parts()
    with pytest.raises(ConfigError) as caught:
        put(ledger, given)
    assert [(one.path, said in one.message) for one in caught.value.problems] == [(path, True)]
    assert ledger.parts() == before
    noted = sources.refusals(ledger)
    if path == "spec.source":
        assert noted == {}, "a name that is none is not kept either"
    else:
        assert list(noted) == [given.source]
        assert said in noted[given.source]
        put(ledger, part(given.source, generation=7))
        assert sources.refusals(ledger) == {}


def test_a_clock_that_is_a_little_ahead(ledger: Ledger) -> None:
    put(ledger, part("Owner/ci", observed=NOW + part_checks.SKEW_S))
    assert len(ledger.parts()) == 1


def test_only_so_many_sources(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_SOURCES", 2)
    put(ledger, part("Owner/a"))
    put(ledger, part("Owner/b"))
    with pytest.raises(ConfigError, match="2 sources contribute already: withdraw one"):
        put(ledger, part("Owner/c"))
    put(ledger, part("Owner/b", generation=2))


def test_a_source_that_is_over_makes_room_for_another(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_SOURCES", 3)
    for name, lasts in (("Owner/a", 20.0), ("Owner/b", 10.0), ("Owner/c", None)):
        put(ledger, part(name, lasts=lasts))
    sources.put(ledger, part("Owner/d", observed=NOW + 30), NOW + 30)
    kept = [source for source, _, _ in ledger.part_index()]
    assert kept == ["Owner/a", "Owner/c", "Owner/d"], "the one that was over the longest went"


def test_those_who_are_refused_leave_no_more_than_so_many_notes(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_SOURCES", 3)
    for number in range(5):
        with pytest.raises(ConfigError):
            put(ledger, part(f"Owner/n{number}", observed=NOW + 99))
    assert list(sources.refusals(ledger)) == ["Owner/n2", "Owner/n3", "Owner/n4"]


def test_withdrawn_is_over_and_its_generations_go_on(ledger: Ledger) -> None:
    put(ledger, part("Owner/ci", ROUTE, generation=4, lasts=None))
    assert sources.withdraw(ledger, "Owner/ci", NOW) == "Owner/ci#4"
    assert sources.in_force(ledger, NOW) == []
    with pytest.raises(ConfigError, match="is not above 4"):
        put(ledger, part("Owner/ci", generation=4))
    assert sources.withdraw(ledger, "Owner/ci", NOW) == "Owner/ci", "what was refused is forgotten"
    with pytest.raises(HoldfastError, match="contributes nothing that could be withdrawn; no part"):
        sources.withdraw(ledger, "Owner/ci", NOW)


@pytest.fixture
def startup(tmp_path: Path) -> Router:
    allow = {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4Route", "name": "own"}
    every = [{"type": "interval", "every": "1m"}]
    return load(
        tmp_path,
        ("IPv4Route", "own", {"destination": "10.9.0.0/16", "gateway": "192.0.2.2"}),
        ("Plugin", "timed", {"executable": "/bin/a", "triggers": every}),
        ("Plugin", "other", {"executable": "/bin/b"}),
        ("DynamicConfigSource", "timed", {"pluginRef": "timed", "ttl": "60s"}),
        ("DynamicConfigSource", "other", {"pluginRef": "other", "ttl": "60s"}),
        *(admitting(source) for source in ("Owner/ci", "Owner/other", "Manager/main")),
        (
            "DynamicOverridePolicy",
            "all",
            {"allow": [{"source": "Owner/ci", "operations": ["mask"], "targets": [allow]}]},
        ),
    )


def test_who_is_awaited_after_a_start(ledger: Ledger, paths: Paths, startup: Router) -> None:
    """Those that run by themselves and whose parts are over, until they ran or said something."""
    for name in ("Plugin/timed", "Plugin/other", "Owner/ci"):
        ledger.put_part(part(name, lasts=200))
    start = NOW + 61  # the ttl of the plugins' sources is over, if not what the parts said

    def awaited(known: Sources, moment: float) -> tuple[str, ...]:
        return known.awaited(known.read().merge(startup, moment))

    by_run, by_part = Sources(paths), Sources(paths)
    for known in (by_run, by_part):
        assert awaited(known, start) == ("Plugin/timed",)
        assert awaited(known, start + 1) == ("Plugin/timed",)
    by_run.ran("Plugin/timed")
    assert awaited(by_run, start + 2) == ()
    ledger.put_part(part("Plugin/timed", generation=2, observed=start))
    assert awaited(by_part, start + 2) == ()
    assert awaited(by_part, start + 1000) == (), "only what was over at the start counts"
    early = Sources(paths)
    assert awaited(early, NOW) == ()
    assert awaited(early, NOW + 1000) == ()


def test_parts_are_read_again_only_when_there_are_others(ledger: Ledger, paths: Paths) -> None:
    known = Sources(paths)
    assert known.read().parts == ()
    put(ledger, part("Owner/ci", ROUTE))
    first = known.read()
    assert [one.ref for one in first.parts] == ["Owner/ci#1"]
    assert known.read() is first
    sources.withdraw(ledger, "Owner/ci", NOW)
    assert known.read().parts[0].expires == NOW


def test_a_ledger_that_cannot_be_read_is_not_an_empty_one(paths: Paths) -> None:
    paths.state_dir.mkdir(parents=True, mode=0o700)
    paths.ledger.touch(mode=0o600)
    with pytest.raises(LedgerError):
        Sources(paths).read()


def told(ledger: Ledger, startup: Router, *parts: Part, at: float = NOW) -> list[tuple[str, str]]:
    events = merge_events.record(ledger, merge(startup, parts, at))
    return [(one.kind, one.subject) for one in events]


def test_events_tell_changes_once(ledger: Ledger, startup: Router) -> None:
    assert told(ledger, startup) == []
    first = part("Owner/ci", ROUTE, masks=(mask("IPv4Route", "own", "it moved"),))
    accepted = [("part-accepted", "Owner/ci"), ("mask-applied", "IPv4Route/own")]
    assert told(ledger, startup, first) == accepted
    assert ledger.events()[-1].message == "masked by Owner/ci: it moved"
    again = replace(first, generation=2, observed=NOW + 5, expires=NOW + 500)
    assert told(ledger, startup, again) == [], "saying the same again is no news"
    bad = part("Owner/ci", {"kind": "Bogus"}, generation=3)
    assert told(ledger, startup, bad) == [
        ("part-rejected", "Owner/ci"),
        ("mask-lifted", "IPv4Route/own"),
    ]
    assert told(ledger, startup, replace(bad, generation=4)) == []
    assert told(ledger, startup, replace(first, generation=5)) == accepted
    assert told(ledger, startup, replace(first, generation=5), at=NOW + 300) == [
        ("part-ended", "Owner/ci"),
        ("mask-lifted", "IPv4Route/own"),
    ]
    ignored = part("Owner/ci", masks=(mask("IPv4Route", "nobody"),), generation=6)
    assert told(ledger, startup, ignored) == [
        ("part-accepted", "Owner/ci"),
        ("mask-ignored", "Owner/ci"),
    ]
    assert told(ledger, startup, replace(ignored, generation=7)) == []


def test_a_rejected_part_is_no_news_because_others_say_the_same_again(
    ledger: Ledger, startup: Router
) -> None:
    """The reason names the other part, with its generation."""
    first, second = part("Owner/a", ROUTE), part("Owner/b", ROUTE)
    assert ("part-rejected", "Owner/b") in told(ledger, startup, first, second)
    assert told(ledger, startup, replace(first, generation=2), second) == []


def accepted(ledger: Ledger, startup: Router, at: float = NOW) -> list[str]:
    """As the daemon does it: merge what counts, and note what is in force."""
    merged = sources.stored(ledger).merge(startup, at)
    sources.accept(ledger, merged)
    merge_events.record(ledger, merged)
    return [one.ref for one in merged.active]


def test_what_was_in_force_stays_while_the_newest_is_rejected(
    ledger: Ledger, startup: Router
) -> None:
    put(ledger, part("Owner/ci", ROUTE))
    assert accepted(ledger, startup) == ["Owner/ci#1"]
    for number in range(2, 20):  # more than are kept to look back at
        put(ledger, part("Owner/ci", {"kind": f"Bogus{number}"}, generation=number, lasts=200))
        assert accepted(ledger, startup) == ["Owner/ci#1"]
    assert len(ledger.parts()) == 11
    assert accepted(ledger, startup, NOW + 299) == ["Owner/ci#1"], "also once the other is over"
    assert accepted(ledger, startup, NOW + 300) == []
    kinds = [event.kind for event in ledger.events()]
    assert kinds.count("part-ended") == 1
    assert "Owner/ci#1 stays in force until" in str(ledger.events())


def test_a_withdrawn_source_has_nothing_that_could_stay(ledger: Ledger, startup: Router) -> None:
    put(ledger, part("Owner/ci", ROUTE, lasts=None))
    accepted(ledger, startup)
    put(ledger, part("Owner/ci", {"kind": "Bogus"}, generation=2, lasts=None))
    assert accepted(ledger, startup) == ["Owner/ci#1"]
    sources.withdraw(ledger, "Owner/ci", NOW)
    assert accepted(ledger, startup) == []
    put(ledger, part("Owner/ci", {"kind": "Bogus"}, generation=3, lasts=None))
    assert accepted(ledger, startup) == []


def test_what_says_the_same_again_is_in_force_at_once(ledger: Ledger, startup: Router) -> None:
    """Also if the next, bad one comes before it was ever merged."""
    put(ledger, part("Owner/ci", ROUTE, lasts=100))
    accepted(ledger, startup)
    put(ledger, part("Owner/ci", ROUTE, generation=2, lasts=200))
    put(ledger, part("Owner/ci", {"kind": "Bogus"}, generation=3, lasts=300))
    assert accepted(ledger, startup, NOW + 150) == ["Owner/ci#2"]
