"""From an artifact back to the exact line."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.engine.artifact import Key
from holdfast.engine.intent import BulkIntent
from holdfast.resources.compile import compile_router
from holdfast.resources.locate import Declaration, declarations
from holdfast.resources.router import Router
from tests.resources.routers import load


@pytest.fixture
def router(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Router:
    monkeypatch.chdir(tmp_path)
    lines = [f"10.{i >> 8}.{i & 255}.0/24 via 192.0.2.1" for i in range(600)]
    lines[10] = "# a comment"
    lines[11] = "2001:DB8:0::/32 dev lan metric 9"
    lines[12] = "blackhole default table 7"
    (tmp_path / "routes.txt").write_text("\n".join(lines) + "\n")
    return load(
        Path(),
        ("Interface", "lan", {"ifname": "eth1"}),
        ("IPv4StaticAddress", "a", {"interface": "lan", "address": "192.0.2.1/24"}),
        ("RouteList", "file", {"file": "routes.txt"}),
        ("RouteList", "inline", {"routes": ["11.0.0.0/8 dev lan", "10.2.40.0/24 via 192.0.2.1"]}),
        ("IPv4Route", "one", {"destination": "10.2.40.0/24", "gateway": "192.0.2.1"}),
        ("Sysctl", "s", {"key": "net.ipv4.ip_forward", "value": 1, "persistent": True}),
        ("RoutingRule", "r", {"priority": 5, "family": "ipv4", "table": 7}),
    )


def places(router: Router, kind: str, name: str) -> list[tuple[str, str]]:
    return [(found.owner, found.place) for found in declarations(router, Key(kind, name))]


def test_route_of_a_file(router: Router) -> None:
    assert places(router, "route", "10.2.39.0/24") == [("RouteList/file", "routes.txt:552:1")]
    assert places(router, "route", "2001:db8::/32 metric 9") == [
        ("RouteList/file", "routes.txt:12:1")
    ]
    assert places(router, "route", "0.0.0.0/0 table 7") == [("RouteList/file", "routes.txt:13:1")]


def test_route_that_several_declare(router: Router) -> None:
    lines = router.files[0].content.decode().split("\n")
    inline = lines.index('      "10.2.40.0/24 via 192.0.2.1"') + 1
    assert places(router, "route", "10.2.40.0/24") == [
        ("RouteList/file", "routes.txt:553:1"),
        ("RouteList/inline", f"router.yaml:{inline}:7"),
        ("IPv4Route/one", router.resources[4].place),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "owner"),
    [
        ("link", "eth1", "Interface/lan"),
        ("address", "192.0.2.1/24 dev eth1", "IPv4StaticAddress/a"),
        ("sysctl", "net.ipv4.ip_forward", "Sysctl/s"),
        ("file", "/etc/sysctl.d/90-holdfast-s.conf", "Sysctl/s"),
        ("rule", "5: from all lookup 7", "RoutingRule/r"),
    ],
)
def test_others(router: Router, kind: str, name: str, owner: str) -> None:
    (resource,) = [resource for resource in router.resources if resource.id == owner]
    assert declarations(router, Key(kind, name)) == (Declaration(owner, resource.place),)


@pytest.mark.parametrize(
    "name", ["10.2.39.0/24 table 5", "10.2.39.0/24 metric 1", "12.0.0.0/8", "nonsense", "1.2.3.4/x"]
)
def test_nobody_declares_it(router: Router, name: str) -> None:
    assert declarations(router, Key("route", name)) == ()


def test_every_artifact_is_found_again(router: Router) -> None:
    for intent in compile_router(router).intents:
        artifacts = [intent.artifact] if not isinstance(intent, BulkIntent) else []
        if isinstance(intent, BulkIntent):
            artifacts = [intent.batch.artifact(key) for key in intent.batch.keys[::50]]
        for artifact in artifacts:
            owners = {found.owner for found in declarations(router, artifact.key)}
            assert intent.owner in owners
