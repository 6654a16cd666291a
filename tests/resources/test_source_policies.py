"""What the policy of a source refuses: by each of its fields, and of every kind that is open.

The table says what the example of a kind is about. With exactly that allowed it is taken in; with
anything of it missing, the part is refused and what its source said before stays in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.document import SourceFile, parse
from holdfast.dataclass import dataclass, replace
from holdfast.resources import registry
from holdfast.resources.dynamic import effective
from holdfast.resources.router import Router
from holdfast.resources.spec.reference import example
from tests.resources.parts import NOW, part, raw
from tests.resources.routers import load
from tests.resources.surroundings import INTERFACES, surrounded

# Prefixes and links of the example of each kind; links by the names of their resources.
ABOUT: dict[str, tuple[list[str], list[str]]] = {
    "Interface": ([], ["br0"]),
    "Neighbour": (["192.0.2.7"], ["lan"]),
    "IPv4StaticAddress": (["192.0.2.0/24"], ["lan"]),
    "IPv6StaticAddress": (["2001:db8::/64"], ["lan"]),
    "IPv6DelegatedAddress": (["::/0"], ["lan", "wan"]),
    "DSLiteTunnel": (["0.0.0.0/0", "::/0"], ["ds-lite", "lan", "wan"]),
    "IPv4Route": (["198.51.100.0/24", "192.0.2.254"], []),
    "IPv6Route": (["::/0"], ["lan"]),
    "RouteList": (["198.51.100.0/24", "203.0.113.0/24", "10.0.0.0/8", "192.0.2.254"], []),
    "RoutingRule": (["0.0.0.0/0"], []),
    "IPv4DefaultRoutePolicy": (["0.0.0.0/0"], ["wan", "dmz"]),
    "IPv6DefaultRoutePolicy": (["::/0"], ["wan", "dmz"]),
    "HealthCheck": (["192.0.2.254"], ["wan"]),
    "IPv4PolicyRoute": (["192.168.1.64/28"], ["wan"]),
    "IPv4PolicyRouteSet": (["192.168.1.0/24"], ["wan", "dmz"]),
    "IPv4ReversePathFilter": ([], ["wan"]),
    "ExposeService": (["0.0.0.0/0"], ["wan"]),
    "FirewallPolicy": (["0.0.0.0/0", "::/0"], ["lan", "wan"]),
    "PathMTUPolicy": ([], ["lan", "wan"]),
    "IPv4SourceNAT": (["192.168.160.0/24"], ["wan"]),
    "Zone": ([], ["lan"]),
    "Sysctl": ([], []),
    "BFDProfile": ([], []),
    "BFDSession": ([], ["wan"]),
    "BGPAggregate": (["203.0.112.0/20"], []),
    "BGPFilter": (["10.0.0.0/8"], []),
    "BGPInstance": ([], []),
    "BGPPeer": (["0.0.0.0/0"], []),
    "BGPPeerGroup": (["10.0.0.0/24"], []),
    "BGPPrefix": (["203.0.113.0/24", "2001:db8:113::/48"], []),
    "OSPFInterface": (["0.0.0.0/0"], ["lan"]),
    "OSPFPrefix": (["203.0.113.10", "2001:db8:113::10"], []),
}
# What else it takes to be allowed the example, of whom it speaks to.
SPOKEN: dict[str, dict[str, Any]] = {
    "BFDSession": {"peers": ["192.0.2.254"]},
    "BGPInstance": {"autonomousSystems": ["65001"], "mayConfigureInstance": True},
    "BGPPeer": {"peers": ["192.0.2.254"], "autonomousSystems": ["64512-65000"]},
}
SIZES = {"RouteList": 3, "BGPPrefix": 2, "OSPFPrefix": 2}  # each route or prefix counts
OPEN = [name for name in registry.names() if registry.kind(name).open_to_others]
SETTINGS = {"sysctls": [{"source": "Owner/ci", "keys": ["net.*"]}]}
GOOD = raw("IPv4Route", "good", {"destination": "10.66.0.0/16", "type": "blackhole"})
WITH_GOOD = "10.66.0.0/16"


@dataclass(frozen=True, slots=True)
class Scene:
    folder: Path
    kind: str
    given: dict[str, Any]
    allow: dict[str, Any]

    def but(self, **changed: Any) -> Scene:
        return replace(self, allow=self.allow | changed)

    @property
    def size(self) -> int:
        return SIZES.get(self.kind, 1)

    def startup(self) -> Router:
        *around, _ = surrounded(self.kind)["spec"]["resources"]
        declared = [(one["kind"], one["metadata"]["name"], one["spec"]) for one in around]
        if self.kind == "Zone":
            declared = [one for one in declared if one[0] != "FirewallPolicy"]
        return load(
            self.folder,
            *declared,
            ("DynamicConfigSource", "ci", {"source": "Owner/ci", "allow": self.allow}),
            ("DynamicOverridePolicy", "settings", SETTINGS),
        )

    def passes(self, *more: dict[str, Any], lasts: float | None = 300.0) -> None:
        merged = effective.merge(
            self.startup(), [part("Owner/ci", self.given, *more, lasts=lasts)], NOW
        )
        assert [told for one in merged.rejected for told in one.reasons] == []
        assert f"{self.kind}/example" in [one.id for one in merged.added]

    def refused_by(self, under: str) -> str:
        return self.refused("spec", under)

    def refused(
        self, field: str, under: str, *more: dict[str, Any], lasts: float | None = 300.0
    ) -> str:
        """By a reason that names source, field and place; and with no effect at all."""
        startup = self.startup()
        first = part("Owner/ci", GOOD)
        second = part("Owner/ci", self.given, *more, generation=2, lasts=lasts)
        alone = effective.merge(startup, [replace(second, generation=1)], NOW)
        assert alone.router is startup, "nothing of it is in force"
        assert alone.added == () == alone.active
        (found,) = alone.rejected
        named = [told for told in found.reasons if f"allow.{under}" in told or under == "lifetime"]
        assert named, found.reasons
        assert any(
            told.startswith("Owner/ci#1")
            and f": {field}" in told
            and "Owner/ci may " in told
            and "DynamicConfigSource/ci at " in told
            for told in named
        ), found.reasons
        before = effective.merge(startup, [first], NOW)
        merged = effective.merge(startup, [first, second], NOW, before, {"Owner/ci": 1})
        assert merged.active == (first,), "the last good one stays"
        assert [one.id for one in merged.added] == ["IPv4Route/good"]
        assert merged.rejected[0].held == first
        return "\n".join(found.reasons)


@pytest.fixture(params=OPEN)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    kind: str = request.param
    given = parse(SourceFile("example", example(kind).encode())).data
    given["spec"].pop("persistent", None)  # which only the startup file can say
    prefixes, links = ABOUT[kind]
    allow = {
        "kinds": sorted({kind, "IPv4Route"}),
        "names": ["example", "good"],
        "maxResources": SIZES.get(kind, 1) + 1,
        "prefixes": [*prefixes, WITH_GOOD],
        "interfaces": links or ["unused"],
        **SPOKEN.get(kind, {}),
    }
    return Scene(tmp_path, kind, given, allow)


def test_every_open_kind_is_in_the_table() -> None:
    assert sorted(ABOUT) == sorted(OPEN)


def test_what_is_allowed_exactly(scene: Scene) -> None:
    scene.passes()
    scene.passes(GOOD)


def test_a_kind_that_is_not_allowed(scene: Scene) -> None:
    if scene.kind != "IPv4Route":
        scene.but(kinds=["IPv4Route"]).refused("kind", "kinds")
    else:
        allow = scene.but(kinds=["IPv6Route"])
        merged = effective.merge(allow.startup(), [part("Owner/ci", scene.given)], NOW)
        assert "kind: IPv4Route/example: IPv4Route is not what" in merged.rejected[0].reasons[0]


@pytest.mark.parametrize("names", [["app-*"], ["exampl"], ["example-*"], ["Example"], ["*.*"]])
def test_a_name_that_is_not_allowed(names: list[str], scene: Scene) -> None:
    scene.but(names=[*names, "good"]).refused("metadata.name", "names")


@pytest.mark.parametrize("name", ["*", "ex*", "*ple", "e*m*e", "exampl*e"])
def test_a_pattern_that_the_name_is_of(name: str, scene: Scene) -> None:
    scene.but(names=[name]).passes()


def test_one_resource_too_many(scene: Scene) -> None:
    scene.but(maxResources=scene.size).refused("resources", "maxResources", GOOD)


def _without(items: list[str]) -> Iterator[tuple[str, list[str]]]:
    for index, item in enumerate(items):
        yield item, items[:index] + items[index + 1 :]


def test_a_prefix_that_is_not_allowed(scene: Scene) -> None:
    prefixes, _ = ABOUT[scene.kind]
    for missing, others in _without(prefixes):
        said = scene.but(prefixes=[*others, WITH_GOOD]).refused_by("prefixes")
        assert str(ip_network(missing)) in said
        halves = list(ip_network(missing).subnets()) if "/" in missing else []
        for half in halves:
            scene.but(prefixes=[*others, str(half), WITH_GOOD]).refused_by("prefixes")
        if halves:
            scene.but(prefixes=[*others, *map(str, halves), WITH_GOOD]).passes()
    if prefixes:
        scene.but(prefixes=["0.0.0.0/0", "::/0"]).passes()


@pytest.mark.parametrize("scene", SPOKEN, indirect=True)
def test_whom_it_may_not_speak_to(scene: Scene) -> None:
    nothing = {"peers": ["192.0.2.0/25"], "autonomousSystems": ["64999"]}
    for field in SPOKEN[scene.kind]:
        if field == "mayConfigureInstance":
            (found,) = effective.merge(
                scene.but(mayConfigureInstance=False).startup(),
                [part("Owner/ci", scene.given)],
                NOW,
            ).rejected
            assert "set allow.mayConfigureInstance" in "".join(found.reasons)
        else:
            scene.but(**{field: nothing[field]}).refused("spec", field)


@pytest.mark.parametrize("scene", ["BGPPeer", "OSPFInterface"], indirect=True)
def test_routes_to_anywhere_may_be_learned_and_not_told(scene: Scene) -> None:
    learning = scene.but(prefixes=[WITH_GOOD], mayLearnRoutes=True)
    learning.passes()
    if scene.kind == "BGPPeer":
        told = [{"family": "ipv4", "importAll": True, "exportAll": True}]
        spec = {**scene.given["spec"], "families": told}
        replace(learning, given={**scene.given, "spec": spec}).refused_by("prefixes")


@pytest.mark.parametrize("scene", ["BGPPeer"], indirect=True)
def test_an_as_that_is_not_said_by_its_number(scene: Scene) -> None:
    spec = {**scene.given["spec"], "remoteAS": "external"}
    external = replace(scene, given={**scene.given, "spec": spec})
    external.refused("spec", "autonomousSystems")
    external.but(autonomousSystems=["1-4294967295"]).passes()


def test_a_link_that_is_not_allowed(scene: Scene) -> None:
    _, links = ABOUT[scene.kind]
    for missing, others in _without(links):
        said = scene.but(interfaces=[*others, "unused"]).refused_by("interfaces")
        assert INTERFACES.get(missing, missing) in said
    if links:
        by_kernel = [INTERFACES.get(name, name) for name in links]
        scene.but(interfaces=by_kernel).passes()
        scene.but(interfaces=["*"]).passes()


def test_a_lifetime_that_is_not_allowed(scene: Scene) -> None:
    limited = scene.but(lifetime="5m")
    limited.passes()
    limited.passes(lasts=1.0)
    limited.refused("expiresAt", "lifetime", lasts=300.5)
    limited.refused("expiresAt", "lifetime", lasts=None)
