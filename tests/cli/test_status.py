"""`status`: how each resource is doing, by a fresh look."""

from __future__ import annotations

from typing import Any

from holdfast.render.status import lines
from holdfast.render.style import Style
from holdfast.runtime.phases import Phase, ResourceStatus
from holdfast.runtime.status import Past, Status
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace


def _phases(status: Any) -> dict[str, str]:
    return {one["resource"]: one["phase"] for one in status["resources"]}


def test_healthy_only_when_everything_is(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    done = holdfast.run("status", "router.yaml")
    assert done.code == 1
    assert done.out.startswith("test, never applied\n")
    assert "Drifted   IPv4StaticAddress/wan  create address 192.0.2.1/24 dev wan0" in done.out
    holdfast.ok("apply", "router.yaml", "--yes")
    done = holdfast.ok("status", "router.yaml")
    assert "test, generation 1, last pass" in done.out
    assert "3 resources: 3 Healthy." in done.out
    wan.ip("route del 10.1.0.0/16")
    status = holdfast.run("status", "router.yaml", "-o", "json")
    assert status.code == 1
    assert _phases(status.json)["IPv4Route/a"] == "Drifted"
    assert status.json["healthy"] is False
    assert status.json["last_pass"]["outcome"] == "converged"
    assert status.json["generation"] == {"number": 1, "state": "converged"}


def test_labels_and_annotations_are_told_again(holdfast: Holdfast, wan: Namespace) -> None:
    """By the command alone and by a daemon alike, and by `explain`."""
    assert wan
    file = holdfast.declare(WAN, WAN_ADDRESS)
    notes = {"labels": {"rack": "7", "site": "attic"}, "annotations": {"example.net/by": "Ann"}}
    name = "{name: wan, labels: {site: attic, rack: '7'}, annotations: {example.net/by: Ann}}"
    file.write_text(file.read_text().replace("{name: wan}", name, 1))
    holdfast.ok("apply", "router.yaml", "--yes")

    def told() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = holdfast.ok("status", "-o", "json", str(file)).json[
            "resources"
        ]
        return found

    alone = told()
    assert alone[0].items() >= notes.items()
    assert not {"labels", "annotations"} & set(alone[1])
    explained = holdfast.ok("explain", "Interface/wan", "router.yaml", "-o", "json").json
    assert explained.items() >= notes.items()
    with daemon(holdfast, file):
        assert told() == alone


def test_labels_that_are_called_like_secrets_are_not_told(
    holdfast: Holdfast, wan: Namespace
) -> None:
    assert wan
    file = holdfast.declare(WAN, WAN_ADDRESS)
    name = "{name: wan, labels: {apiToken: hunter2}, annotations: {password: hunter2}}"
    file.write_text(file.read_text().replace("{name: wan}", name, 1))
    holdfast.ok("apply", "router.yaml", "--yes")
    for words in (("status",), ("explain", "Interface/wan"), ("dynamic", "render")):
        told = holdfast.ok(*words, "router.yaml", "-o", "json").out
        assert "apiToken" in told
        assert "hunter2" not in told


def test_every_phase(holdfast: Holdfast, wan: Namespace) -> None:
    wan.ip("link set wan0 up")
    wan.ip("addr add 192.0.2.1/24 dev wan0")
    wan.ip("route add 10.1.0.0/16 via 192.0.2.253 proto static")
    wan.ip("route add 10.2.0.0/16 via 192.0.2.254 proto static")
    holdfast.declare(
        WAN,
        WAN_ADDRESS,
        ("Interface", "dmz", "{ifname: dmz0, adminUp: true}"),
        ("Interface", "gone", "{ifname: isp0, type: veth, veth: {peer: wan0}, state: absent}"),
        route("conflict", "10.1.0.0/16"),
        route("foreign", "10.2.0.0/16"),
        route("drifted", "10.3.0.0/16"),
    )
    status = holdfast.run("status", "router.yaml", "-o", "json").json
    assert _phases(status) == {
        "Interface/wan": "Healthy",
        "IPv4StaticAddress/wan": "Foreign",
        "Interface/dmz": "Pending",
        "Interface/gone": "Blocked",
        "IPv4Route/conflict": "Conflict",
        "IPv4Route/foreign": "Foreign",
        "IPv4Route/drifted": "Drifted",
    }
    assert status["counts"]["Foreign"] == 2


def test_what_is_to_be_deleted_is_not_healthy(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(WAN, WAN_ADDRESS)
    done = holdfast.run("status", "router.yaml")
    assert done.code == 1
    assert "1 artifact to be deleted by the next apply" in done.out
    assert "2 resources: 2 Healthy." in done.out
    assert wan.ip_json("route show proto 72")


def test_large_counts_can_be_read() -> None:
    one = ResourceStatus("IPv4Route/a", "x:1:1", Phase.HEALTHY, 1, "")
    told = Status("edge", True, [one] * 1500, {"delete": 0}, Past())
    assert list(lines(told, Style(colour=False)))[-1] == "1 500 resources: 1 500 Healthy."
