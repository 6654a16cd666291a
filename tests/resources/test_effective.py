"""The merge of the startup file and parts, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.part import Part
from holdfast.resources.dynamic.effective import Effective, merge, recorded
from holdfast.resources.router import Router, load_router
from tests.resources.parts import NOW, admitting, mask, part, raw
from tests.resources.routers import load

# They may declare anything.
SOURCES = [f"Owner/{name}" for name in ("a", "b", "bad", "c", "ci", "dc", "other", "zz")]
ALIAS = "net.routerd.net/v1alpha1"


def allowing(*targets: tuple[str, str], source: str = "Owner/ci") -> dict[str, Any]:
    spelled = [
        {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": kind, "name": name}
        for kind, name in targets
    ]
    return {"allow": [{"source": source, "operations": ["mask"], "targets": spelled}]}


def route(name: str, destination: str, gateway: str = "192.0.2.254") -> dict[str, Any]:
    return raw("IPv4Route", name, {"destination": destination, "gateway": gateway})


@pytest.fixture
def startup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Router:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "routes.txt").write_text("10.9.0.0/16 via 192.0.2.254\n")
    return load(
        Path(),
        ("Interface", "wan", {"ifname": "eth0"}),
        ("IPv4StaticAddress", "wan", {"interface": "wan", "address": "192.0.2.1/24"}),
        ("IPv4Route", "fallback", {"destination": "10.0.0.0/8", "gateway": "192.0.2.254"}),
        ("RouteList", "many", {"file": "routes.txt"}),
        ("Plugin", "cloud", {"executable": "/usr/local/bin/cloud"}),
        ("Plugin", "alone", {"executable": "/usr/local/bin/alone"}),
        ("DynamicConfigSource", "cloud", {"pluginRef": "cloud", "ttl": "2m"}),
        *map(admitting, SOURCES),
        ("DynamicOverridePolicy", "ci", allowing(("IPv4Route", "fallback"), ("Interface", "wan"))),
        (
            "DynamicOverridePolicy",
            "cloud",
            allowing(("IPv4Route", "fallback"), source="Plugin/cloud"),
        ),
    )


def ids(effective: Effective) -> list[str]:
    return [one.id for one in effective.router.resources]


def test_nothing_contributed_is_the_startup_file_itself(startup: Router) -> None:
    merged = merge(startup, [], NOW)
    assert merged.router is startup
    assert merged == Effective(startup, startup)


def test_a_part_adds_and_masks(startup: Router) -> None:
    given = part(
        "Owner/ci",
        route("app", "10.0.0.0/8", "192.0.2.9"),
        masks=(mask("IPv4Route", "fallback", "the app is in the cloud"),),
    )
    merged = merge(startup, [given], NOW)
    assert "IPv4Route/fallback" not in ids(merged)
    assert ids(merged)[-1] == "IPv4Route/app"
    assert merged.router.resources[-1].place == "Owner/ci#1 resources[0]"
    (suppressed,) = merged.suppressed
    assert suppressed.resource.id == "IPv4Route/fallback"
    assert suppressed.resource.place.startswith("router.yaml:")
    assert suppressed.masked_by == ("Owner/ci#1",)
    assert suppressed.until == NOW + 300
    assert suppressed.reason == "the app is in the cloud"
    assert [one.id for one in merged.added] == ["IPv4Route/app"]
    assert merged.active == (given,)
    assert merged.next_change == NOW + 300
    assert not list(merged.findings)
    assert "IPv4Route/fallback" in [one.id for one in startup.resources]


def test_a_mask_lifts_when_the_part_is_over(startup: Router) -> None:
    given = part("Owner/ci", masks=(mask("IPv4Route", "fallback"),))
    assert "IPv4Route/fallback" not in ids(merge(startup, [given], NOW + 299.9))
    over = merge(startup, [given], NOW + 300)
    assert over.router is startup
    assert over.expired == (given,)
    assert over.next_change is None


def test_the_newest_generation_replaces_those_before_it(startup: Router) -> None:
    parts = [
        part("Owner/ci", route("old", "10.1.0.0/16"), generation=9, lasts=None),
        part("Owner/ci", route("new", "10.1.0.0/16"), generation=10, lasts=60),
        part("Owner/ci", route("older", "10.1.0.0/16"), generation=8, lasts=None),
    ]
    merged = merge(startup, parts, NOW)
    assert [one.id for one in merged.added] == ["IPv4Route/new"]
    over = merge(startup, parts, NOW + 60)
    assert over.router is startup, "what a source replaced does not come back"
    assert [one.ref for one in over.expired] == ["Owner/ci#10"]


def test_masks_of_several_sources(startup: Router) -> None:
    """Suppressed until the last of them is over; the spelling of the group does not matter."""
    parts = [
        part(
            "Plugin/cloud",
            masks=(mask("IPv4Route", "fallback", "there", ALIAS),),
            generation=12,
            lasts=60,
        ),
        part("Owner/ci", masks=(mask("IPv4Route", "fallback", "here"),), generation=3, lasts=100),
    ]
    (one,) = merge(startup, parts, NOW).suppressed
    assert one.masked_by == ("Owner/ci#3", "Plugin/cloud#12")
    assert one.until == NOW + 100
    assert one.reason == "here; there"
    (one,) = merge(startup, parts, NOW + 60).suppressed
    assert one.masked_by == ("Owner/ci#3",)
    for_ever = [parts[0], replace(parts[1], expires=None)]
    assert merge(startup, for_ever, NOW).suppressed[0].until is None


@pytest.mark.parametrize(
    ("directive", "reason"),
    [
        (mask("RouteList", "many"), "no DynamicOverridePolicy allows Owner/ci to mask it"),
        (mask("IPv4Route", "nobody"), "the startup file declares no such resource"),
        (mask("DynamicOverridePolicy", "ci"), "a DynamicOverridePolicy cannot be masked"),
        (
            mask("IPv4Route", "fallback", version="system.holdfast.dev/v1alpha1"),
            "IPv4Route belongs to net.holdfast.dev/v1alpha1, not 'system.holdfast.dev/v1alpha1'",
        ),
    ],
)
def test_a_mask_that_is_not_allowed_is_ignored(
    startup: Router, directive: Any, reason: str
) -> None:
    given = part("Owner/ci", route("app", "10.1.0.0/16"), masks=(directive,))
    merged = merge(startup, [given], NOW)
    assert [one.reason for one in merged.ignored] == [reason]
    assert merged.suppressed == ()
    assert [one.id for one in merged.added] == ["IPv4Route/app"], "the rest of it stands"
    said = f"Owner/ci#1: mask of {directive.target} is ignored: {reason}"
    assert list(merged.findings) == [said]


def test_another_source_is_not_allowed_what_one_is(startup: Router) -> None:
    given = part("Owner/other", masks=(mask("IPv4Route", "fallback"),))
    assert "IPv4Route/fallback" in ids(merge(startup, [given], NOW))


def test_what_another_part_contributes_cannot_be_masked(startup: Router) -> None:
    parts = [
        part("Owner/a", route("app", "10.1.0.0/16")),
        part("Owner/ci", masks=(mask("IPv4Route", "app"),)),
    ]
    merged = merge(startup, parts, NOW)
    assert ids(merged)[-1] == "IPv4Route/app"
    assert [one.reason for one in merged.ignored] == ["the startup file declares no such resource"]


def rejections(merged: Effective) -> dict[str, tuple[str, ...]]:
    return {one.part.ref: one.reasons for one in merged.rejected}


def test_a_part_cannot_replace_what_the_startup_file_declares(startup: Router) -> None:
    """Not even what it masks itself."""
    given = part(
        "Owner/ci",
        route("new", "10.1.0.0/16"),
        route("fallback", "10.2.0.0/16"),
        masks=(mask("IPv4Route", "fallback"),),
    )
    merged = merge(startup, [given], NOW)
    assert merged.router is startup
    place = startup.resources[2].place
    assert rejections(merged) == {
        "Owner/ci#1": (
            f"Owner/ci#1 resources[1]: IPv4Route/fallback is declared already, at {place}",
        )
    }


def test_of_two_parts_in_conflict_the_first_stands(startup: Router) -> None:
    parts = [
        part("Plugin/cloud", route("app", "10.3.0.0/16")),
        part("Owner/ci", route("app", "10.1.0.0/16")),
        part("Owner/dc", route("other", "10.2.0.0/16")),
    ]
    merged = merge(startup, parts, NOW)
    assert [one.part for one in merged.added] == ["Owner/ci#1", "Owner/dc#1"]
    assert list(rejections(merged)) == ["Plugin/cloud#1"]
    assert "declared already, at Owner/ci#1 resources[0]" in rejections(merged)["Plugin/cloud#1"][0]


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (route("a", "10.0.0.0/99"), "resources[0]: spec.destination: '99' is not a prefix length"),
        (raw("IPv4Route", "a b", {}), "resources[0]: metadata.name: 'a b' is not a name"),
        ({"kind": "Bogus"}, "resources[0]: apiVersion: is missing"),
        (route("a", "10.0.0.0/8", "192.0.2.3"), "is declared differently by IPv4Route/fallback"),
        (
            raw("IPv4Route", "a", {"destination": "10.5.0.0/16", "interface": "lan"}),
            "resources[0]: spec.interface: no Interface",
        ),
        (
            raw("RouteList", "a", {"file": "/etc/shadow"}),
            "/etc/shadow: a part cannot name files; only the startup file can",
        ),
        (
            raw("PPPoEInterface", "a", {"interface": "wan", "username": "u", "passwordFile": "x"}),
            "resources[0]: kind: a PPPoEInterface can stand in the startup file alone",
        ),
        (
            raw("PPPoEInterface", "a", {"interface": "wan", "username": "u", "password": "hush"}),
            "resources[0]: kind: a PPPoEInterface can stand in the startup file alone",
        ),
        (
            raw("WireGuardInterface", "a", {"privateKeyFile": "/etc/key"}),
            "resources[0]: kind: a WireGuardInterface can stand in the startup file alone",
        ),
        (
            raw("DynamicOverridePolicy", "mine", allowing(("Interface", "wan"))),
            "resources[0]: kind: a DynamicOverridePolicy can stand in the startup file alone",
        ),
        (
            raw("Plugin", "mine", {"executable": "/opt/x"}),
            "resources[0]: kind: a Plugin can stand in the startup file alone",
        ),
        (
            raw("LogSink", "mine", {"type": "plugin", "plugin": {"path": "/opt/x"}}),
            "resources[0]: kind: a LogSink can stand in the startup file alone",
        ),
    ],
)
def test_one_bad_part_is_rejected_and_the_rest_stands(
    startup: Router, resource: dict[str, Any], said: str
) -> None:
    good = part("Owner/zz", route("good", "10.77.0.0/16"))
    bad = part("Owner/bad", resource, masks=(mask("IPv4Route", "fallback"),))
    merged = merge(startup, [bad, good], NOW)
    assert said in rejections(merged)["Owner/bad#1"][0]
    assert "hush" not in str(rejections(merged))
    assert [one.id for one in merged.added] == ["IPv4Route/good"]
    assert merge(startup, [good], NOW).router == _renumbered(merged.router, startup)


def _renumbered(router: Router, startup: Router) -> Router:
    """Of a part after a rejected one, the indices are higher; nothing else is different."""
    count = len(startup.resources)
    fresh = (replace(one, index=number) for number, one in enumerate(router.resources))
    return replace(router, resources=(*startup.resources, *list(fresh)[count:]))


def test_a_mask_that_would_make_the_rest_invalid(startup: Router) -> None:
    given = part("Owner/ci", masks=(mask("Interface", "wan"),))
    merged = merge(startup, [given], NOW)
    assert merged.router is startup
    (reason,) = rejections(merged)["Owner/ci#1"]
    assert reason.startswith("with it the configuration is invalid: router.yaml:")
    assert "spec.interface: no Interface" in reason


def test_a_reference_to_what_a_later_part_contributes(startup: Router) -> None:
    """Neither a bad part nor the order of names stands in its way."""
    parts = [
        part(
            "Owner/a",
            raw("IPv4StaticAddress", "lan", {"interface": "lan", "address": "10.7.0.1/24"}),
        ),
        part("Owner/b", raw("Interface", "lan", {"ifname": "eth1"})),
        part("Owner/c", {"kind": "Bogus"}),
    ]
    merged = merge(startup, parts, NOW)
    assert list(rejections(merged)) == ["Owner/c#1"]
    assert [one.id for one in merged.added] == ["IPv4StaticAddress/lan", "Interface/lan"]
    alone = merge(startup, parts[:1], NOW)
    assert list(rejections(alone)) == ["Owner/a#1"]


def test_a_plugin_without_a_source_contributes_nothing(startup: Router) -> None:
    merged = merge(startup, [part("Plugin/alone", route("a", "10.1.0.0/16"))], NOW)
    assert merged.router is startup
    assert rejections(merged) == {"Plugin/alone#1": ("no DynamicConfigSource has pluginRef alone",)}


@pytest.mark.parametrize("lasts", [None, 3600.0])
def test_the_ttl_of_the_source_caps_its_parts(startup: Router, lasts: float | None) -> None:
    given = part("Plugin/cloud", route("a", "10.1.0.0/16"), lasts=lasts)
    merged = merge(startup, [given], NOW + 119)
    assert [one.id for one in merged.added] == ["IPv4Route/a"]
    assert merged.active[0].expires == merged.next_change == NOW + 120
    assert merge(startup, [given], NOW + 120).router is startup
    shorter = part("Plugin/cloud", route("a", "10.1.0.0/16"), lasts=30)
    assert merge(startup, [shorter], NOW).next_change == NOW + 30


def test_a_generation_records_what_was_in_force(startup: Router) -> None:
    given = part(
        "Owner/ci",
        route("app", "10.0.0.0/8", "192.0.2.9"),
        masks=(mask("IPv4Route", "fallback", "elsewhere"),),
    )
    merged = merge(startup, [given], NOW)
    assert [file.path for file in merged.router.files] == [
        "router.yaml",
        "routes.txt",
        "dynamic:Owner/ci",
    ]
    later = replace(given, generation=2, observed=NOW + 9, expires=None)
    assert merge(startup, [later], NOW).router.files == merged.router.files
    assert merged.router.doubt == ""
    files = {file.path: file.content for file in merged.router.files}
    Path("routes.txt").unlink()
    again = merge(load_router(Path("router.yaml"), stored=files), recorded(files), 0.0)
    assert ids(again) == ids(merged)
    assert again.router.resources[-1].place == "Owner/ci resources[0]"
    assert again.router.files == merged.router.files


def test_warnings_of_parts_are_said(startup: Router) -> None:
    overlap = {"interface": "dmz", "address": "192.0.2.65/26", "allowOverlap": True}
    given = part(
        "Owner/ci",
        raw("Interface", "dmz", {"ifname": "eth2"}),
        raw("IPv4StaticAddress", "dmz", overlap | {"allowOverlapReason": "on purpose"}),
    )
    merged = merge(startup, [given], NOW)
    said = [str(one) for one in merged.router.warnings if one not in startup.warnings]
    assert len(said) == 1
    assert said[0].startswith(
        "Owner/ci#1 resources[1]: spec.address: 192.0.2.64/26 on dmz overlaps"
    )


def test_a_route_list_in_a_part(startup: Router) -> None:
    lines = [f"10.{i >> 8}.{i & 255}.0/24 via 192.0.2.254" for i in range(100)]
    merged = merge(startup, [part("Owner/ci", raw("RouteList", "a", {"routes": lines}))], NOW)
    assert [one.id for one in merged.added] == ["RouteList/a"]
    lines.append("10.9.0.0/16 via 192.0.2.3")
    merged = merge(startup, [part("Owner/ci", raw("RouteList", "a", {"routes": lines}))], NOW)
    (reason,) = rejections(merged)["Owner/ci#1"]
    assert reason == (
        "with it the configuration is invalid: Owner/ci#1 resources[0]: spec: route 10.9.0.0/16 is"
        f" declared differently by {startup.resources[3]}"
    )


def test_parts_are_not_changed(startup: Router) -> None:
    given = part("Owner/ci", route("a", "10.1.0.0/16"))
    before: tuple[Part, str] = (replace(given), given.digest)
    merge(startup, [given], NOW)
    assert (given, given.digest) == before


def test_only_so_many_reasons_are_kept(startup: Router) -> None:
    bad = [route(f"r{number}", "nowhere") for number in range(50)]
    (rejected,) = merge(startup, [part("Owner/ci", *bad)], NOW).rejected
    assert len(rejected.reasons) == 21
    assert rejected.reasons[-1] == "and 30 more"


def test_saying_the_same_again_keeps_the_router(startup: Router) -> None:
    """Nothing has to be compiled, compared or claimed anew; only masks last longer."""
    given = part("Owner/ci", route("app", "10.0.0.0/8", "192.0.2.9"),
                 masks=(mask("IPv4Route", "fallback"),))  # fmt: skip
    bad = part("Owner/bad", {"kind": "Bogus"})
    first = merge(startup, [given, bad], NOW)
    again = [
        replace(one, generation=7, observed=NOW + 9, expires=NOW + 900) for one in (given, bad)
    ]
    renewed = merge(startup, again, NOW + 10, first)
    assert renewed.router is first.router
    assert renewed.added == first.added
    assert renewed.active == (again[0],)
    assert renewed.next_change == NOW + 900
    (suppressed,) = renewed.suppressed
    assert (suppressed.masked_by, suppressed.until) == (("Owner/ci#7",), NOW + 900)
    assert list(rejections(renewed)) == ["Owner/bad#7"]
    assert rejections(renewed)["Owner/bad#7"][0].startswith("Owner/bad#7 resources[0]")
    fresh = merge(startup, again, NOW + 10)
    assert (fresh.suppressed, fresh.rejected, fresh.ignored, fresh.active, fresh.next_change) == (
        renewed.suppressed, renewed.rejected, renewed.ignored, renewed.active, renewed.next_change,
    )  # fmt: skip
    other = part("Owner/ci", route("app", "10.0.0.0/8", "192.0.2.8"), generation=8)
    assert merge(startup, [other, again[1]], NOW, renewed).router is not first.router
    assert merge(startup, [again[1]], NOW, renewed).router is startup
    over = merge(startup, again, NOW + 900, renewed)
    assert over.router is startup
    assert not over.active
    assert not over.suppressed


def test_reasons_name_the_generations_of_today(startup: Router) -> None:
    def said(generation: int) -> list[Part]:
        return [
            part(source, route("same", "10.1.0.0/16"), generation=generation)
            for source in ("Owner/a", "Owner/b")
        ]

    before = merge(startup, said(1), NOW)
    again = merge(startup, said(12), NOW, before)
    assert again.rejected == merge(startup, said(12), NOW).rejected
    (rejected,) = again.rejected
    assert "Owner/b#12 resources[0]" in rejected.reasons[0]
    assert "declared already, at Owner/a#12 resources[0]" in rejected.reasons[0]
