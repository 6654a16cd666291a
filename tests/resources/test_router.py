"""The Router as a whole: what it carries, and what it costs to load."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.config.document import SourceFile
from holdfast.errors import ConfigError
from holdfast.resources.compile import compile_router
from holdfast.resources.router import Ownership, Resource, load_router
from holdfast.resources.uplinks import marking
from holdfast.resources.uplinks.selection import Selection
from tests.resources.routers import load

LAN = ("Interface", "lan", {"ifname": "eth1"})


def test_router(tmp_path: Path) -> None:
    (tmp_path / "routes.txt").write_text("10.0.0.0/8 dev lan\n")
    router = load(tmp_path, LAN, ("RouteList", "many", {"file": "routes.txt"}))
    assert router.name == "test"
    assert router.ownership == Ownership(tag=72, max_delete_share=50)
    assert [resource.id for resource in router.resources] == ["Interface/lan", "RouteList/many"]
    yaml_path = tmp_path / "router.yaml"
    assert router.files == (
        SourceFile(str(yaml_path), yaml_path.read_bytes()),
        SourceFile(str(tmp_path / "routes.txt"), b"10.0.0.0/8 dev lan\n"),
    )
    assert router.warnings == ()
    assert str(router.resources[0].place) == f"{yaml_path}:9:4"


def test_specs_cannot_be_changed(tmp_path: Path) -> None:
    resource: Resource = load(tmp_path, LAN).resources[0]
    with pytest.raises(AttributeError):
        resource.spec.ifname = "eth2"
    assert hash(resource.spec) == hash(load(tmp_path, LAN).resources[0].spec)


def test_route_file_relative_to_the_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "routes.txt").write_text("10.0.0.1/8 dev lan\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^etc/routes\.txt:1:1: 10\.0\.0\.1/8 has host bits"):
        load(Path("etc"), LAN, ("RouteList", "many", {"file": "routes.txt"}))


def test_one_file_in_two_lists_is_kept_once(tmp_path: Path) -> None:
    (tmp_path / "routes.txt").write_text("10.0.0.0/8 dev lan\n")
    two = ("RouteList", "b", {"file": "routes.txt", "table": 5})
    router = load(tmp_path, LAN, ("RouteList", "a", {"file": "routes.txt"}), two)
    assert len(router.files) == 2


def test_doubtful_route_files(tmp_path: Path) -> None:
    (tmp_path / "cut.txt").write_text("10.0.0.0/8 dev lan\n11.0.0.0/8 dev l")
    (tmp_path / "none.txt").write_text("# nothing\n")
    router = load(
        tmp_path,
        LAN,
        ("RouteList", "cut", {"file": "cut.txt"}),
        ("RouteList", "none", {"file": "none.txt"}),
    )
    assert [warning.message.removeprefix(f"{tmp_path}/") for warning in router.warnings] == [
        "cut.txt does not end with a newline: it may be cut short",
        "none.txt holds no routes",
    ]


def test_many_faulty_lines_are_counted(tmp_path: Path) -> None:
    (tmp_path / "routes.txt").write_text("10.0.0.0/8 dev lan\n" + "oops\n" * 200)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, LAN, ("RouteList", "many", {"file": "routes.txt"}))
    problems = caught.value.problems
    assert len(problems) == 51
    assert str(problems[-1]).endswith("routes.txt:52:1: and 150 more faulty lines from here on")


def test_clash_of_two_long_lists(tmp_path: Path) -> None:
    prefixes = [f"10.{i >> 8}.{i & 255}.0/24" for i in range(5000)]
    (tmp_path / "a.txt").write_text("".join(f"{p} via 192.0.2.1\n" for p in prefixes))
    (tmp_path / "b.txt").write_text(f"11.0.0.0/8 dev lan\n{prefixes[552]} via 192.0.2.9\n")
    lists = [("RouteList", name, {"file": f"{name}.txt"}) for name in "ab"]
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, LAN, *lists)
    (problem,) = caught.value.problems
    assert problem.place == f"{tmp_path}/b.txt:2:1"
    assert problem.message.endswith(
        f"declared differently by RouteList/a at {tmp_path}/a.txt:553:1"
    )


def _big(count: int) -> str:
    """Resources of four kinds that need each other."""
    parts = [
        "apiVersion: holdfast.dev/v1alpha1\nkind: Router\nmetadata: {name: big}\nspec:\n"
        "  resources:\n"
    ]
    for i in range(count // 4):
        net = f"10.{i >> 8}.{i & 255}"
        for kind, spec in (
            ("Interface", f"ifname: e{i}\n        adminUp: true"),
            ("IPv4StaticAddress", f"interface: r{i}\n        address: {net}.1/24"),
            ("IPv4Route", f"destination: 172.16.{i >> 8}.{i & 255}/32\n        gateway: {net}.9"),
            (
                "Neighbour",
                f"interface: r{i}\n        address: {net}.9\n        mac: 02:00:00:00:00:09",
            ),
        ):
            parts.append(
                f"    - apiVersion: net.holdfast.dev/v1alpha1\n      kind: {kind}\n"
                f"      metadata:\n        name: r{i}\n      spec:\n        {spec}\n"
            )
    return "".join(parts)


@pytest.mark.long
def test_large_files(tmp_path: Path) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(_big(4000))
    assert len(compile_router(load_router(path)).intents) == 4000


def test_each_selection_is_worked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for every pair of policies, which made hundreds of them take seconds."""
    asked: list[str] = []
    selected = marking.selected

    def spy(policy: Resource) -> Selection:
        asked.append(policy.id)
        return selected(policy)

    monkeypatch.setattr(marking, "selected", spy)
    routes = [
        (
            "IPv4PolicyRoute",
            f"route{number}",
            {
                "outboundInterface": "lan",
                "table": 1000 + number,
                "priority": 1000 + 2 * number,
                "mark": 1000 + number,
                "sourceCIDRs": [f"10.0.{number}.0/24"],
            },
        )
        for number in range(50)
    ]
    load(tmp_path, LAN, *routes)
    assert sorted(asked) == sorted(f"IPv4PolicyRoute/route{number}" for number in range(50))
