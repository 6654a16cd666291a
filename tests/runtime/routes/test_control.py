"""Who may declare what beside whom: policies, conflicts, and the override of `admin`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from holdfast.api import route_control_pb2 as rc
from holdfast.config.part import Raw
from holdfast.runtime.routes import documents
from holdfast.runtime.routes.conflicts import Claimed
from holdfast.runtime.routes.control import Asked
from tests.runtime.routes.memory import World

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def prefix(text: str, **attributes: Any) -> Raw:
    return documents.prefix(text, rc.PROTOCOL_BGP, rc.PrefixAttributes(**attributes))


def peer(address: str) -> Raw:
    return documents.peer(rc.BGPPeer(neighbor_address=address, remote_as=65001), 0)


def instance(local_as: int) -> Raw:
    return documents.instance(local_as, "192.0.2.254")


def named(raw: Raw, name: str) -> Raw:
    return {**raw, "metadata": {"name": name}}


def put(
    world: World, owner: str, *given: Raw, each: bool = False, dry_run: bool = False
) -> list[str]:
    asked = Asked(put=given, each=each, dry_run=dry_run)
    answers = run(world.control.declare(world.owner(owner), asked))
    return [one.refused.code if one.refused is not None else "OK" for one in answers]


def withdraw(world: World, owner: str, *given: Raw) -> list[str]:
    asked = Asked(withdraw=[documents.target_of(raw) for raw in given])
    answers = run(world.control.declare(world.owner(owner), asked))
    return [one.refused.code if one.refused is not None else "OK" for one in answers]


@pytest.mark.parametrize("raw", [prefix("192.0.2.0/24"), peer("192.0.2.1")], ids=["prefix", "peer"])
def test_an_object_has_one_owner(raw: Raw) -> None:
    world = World()
    assert put(world, "edge", raw) == ["OK"]
    assert put(world, "edge", raw) == ["OK"]
    assert put(world, "net", raw) == ["ALREADY_EXISTS"]
    assert withdraw(world, "net", raw) == ["NOT_FOUND"]
    assert world.held("net") == []
    assert withdraw(world, "edge", raw) == ["OK"]
    assert put(world, "net", raw) == ["OK"]


def test_bfd_and_ospf_have_one_owner() -> None:
    world = World()
    bfd = documents.bfd(rc.EnableBFDRequest(peer_address="192.0.2.1"), str)
    ospf = documents.ospf(rc.EnableOSPFRequest(interface_name="eth0", area_id="0"), str)
    assert put(world, "edge", bfd, ospf) == ["OK", "OK"]
    assert put(world, "net", bfd, each=True) == ["ALREADY_EXISTS"]
    assert put(world, "net", ospf, each=True) == ["ALREADY_EXISTS"]


def test_prefixes_that_overlap_need_both_policies() -> None:
    world = World()
    wide, host, inside = prefix("10.0.0.0/8"), prefix("10.1.2.3/32"), prefix("10.1.0.0/16")
    assert put(world, "edge", wide) == ["OK"]
    assert put(world, "net", host) == ["ALREADY_EXISTS"]
    assert put(world, "net", prefix("0.0.0.0/0")) == ["ALREADY_EXISTS"]
    assert put(world, "edge", inside) == ["OK"]
    world.policies.known["net"] = replace(world.owner("net"), may_overlap=True)
    assert put(world, "net", host) == ["ALREADY_EXISTS"]
    world.policies.known["edge"] = replace(world.owner("edge"), may_overlap=True)
    assert put(world, "net", host) == ["OK"]
    assert put(world, "net", wide) == ["ALREADY_EXISTS"]


def test_the_instance_needs_a_policy_and_is_one_for_all() -> None:
    world = World()
    mine, other = documents.instance(65000, "192.0.2.1"), documents.instance(65009, "192.0.2.1")
    assert put(world, "net", mine) == ["PERMISSION_DENIED"]
    assert put(world, "edge", mine) == ["OK"]
    assert put(world, "edge", other) == ["OK"]
    changes = [data for kind, _, _, data in world.journal.told if kind == "bgp-instance-changed"]
    assert [(one["previous_as"], one["local_as"]) for one in changes] == [
        ("0", "65000"),
        ("65000", "65009"),
    ]


def test_what_the_policy_refuses_is_told_and_not_stored() -> None:
    world = World()
    world.policies.against = lambda source, raw: (
        f"{source} may not" if raw["kind"] == "BGPPeer" else ""
    )
    assert put(world, "edge", prefix("192.0.2.0/24"), peer("192.0.2.9")) == [
        "ABORTED",
        "PERMISSION_DENIED",
    ]
    assert world.held("edge") == [] and world.declarations.batches == []
    kind, source, _, data = world.journal.told[0]
    assert (kind, source, data["reason"]) == (
        "route-refused",
        "Owner/edge",
        "peer_operation_denied",
    )
    assert put(world, "edge", prefix("192.0.2.0/24"), peer("192.0.2.9"), each=True)[0] == "OK"
    assert world.held("edge") == ["BGPPrefix/prefix-192.0.2.0-24"]


def test_a_dry_run_stores_and_tells_nothing() -> None:
    world = World()
    put(world, "net", prefix("192.0.2.0/24"))
    told = list(world.journal.told)
    given = (prefix("192.0.2.0/24"), prefix("198.51.100.0/24"))
    assert put(world, "edge", *given, each=True, dry_run=True) == ["ALREADY_EXISTS", "OK"]
    assert world.held("edge") == [] and world.journal.told == told
    assert not world.control.tally.violations


def test_admin_takes_over_and_gives_back() -> None:
    world = World()
    put(world, "edge", prefix("192.0.2.0/24", med=5))
    assert put(world, "admin", prefix("192.0.2.0/24", med=9)) == ["OK"]
    assert world.held("edge") == [] and world.held("admin") == ["BGPPrefix/prefix-192.0.2.0-24"]
    _, source, _, data = next(one for one in world.journal.told if one[0] == "route-overridden")
    assert (source, data["existing_owner"]) == ("Owner/edge", "edge")
    assert put(world, "edge", prefix("192.0.2.0/24", med=5)) == ["ALREADY_EXISTS"]
    assert withdraw(world, "admin", prefix("192.0.2.0/24")) == ["OK"]
    assert world.held("admin") == []
    kept = world.declarations.kept["Owner/edge"]
    assert [raw["spec"]["med"] for raw in kept.values()] == [5]
    assert "route-given-back" in world.journal.kinds() and not world.control.overrides.all()


def test_who_lost_an_object_may_withdraw_it() -> None:
    world = World()
    put(world, "edge", prefix("192.0.2.0/24"))
    put(world, "admin", prefix("192.0.2.0/24"))
    assert withdraw(world, "edge", prefix("192.0.2.0/24")) == ["OK"]
    assert world.held("admin") == ["BGPPrefix/prefix-192.0.2.0-24"]
    withdraw(world, "admin", prefix("192.0.2.0/24"))
    assert world.held("edge") == [] and world.held("admin") == []


def test_an_override_outlasts_a_restart() -> None:
    world = World()
    put(world, "edge", prefix("192.0.2.0/24"))
    put(world, "admin", prefix("192.0.2.0/24"))
    world.restart()
    withdraw(world, "admin", prefix("192.0.2.0/24"))
    assert world.held("edge") == ["BGPPrefix/prefix-192.0.2.0-24"]


def test_what_a_crash_left_between_two_owners_goes_back() -> None:
    """It was noted and withdrawn, and `admin` never had it."""
    world = World()
    put(world, "edge", prefix("192.0.2.0/24"))
    put(world, "admin", prefix("192.0.2.0/24"))
    world.declarations.kept = {}
    world.restart()
    run(world.control.settle())
    assert world.held("edge") == ["BGPPrefix/prefix-192.0.2.0-24"]


def test_admin_that_is_refused_displaces_nobody() -> None:
    world = World()
    put(world, "edge", prefix("192.0.2.0/24"))
    world.declarations.refuse = lambda raw: "no" if raw["spec"].get("med") == 9 else ""
    assert put(world, "admin", prefix("192.0.2.0/24", med=9)) == ["FAILED_PRECONDITION"]
    assert world.held("edge") == ["BGPPrefix/prefix-192.0.2.0-24"]


def test_nothing_that_is_asserted_again_reaches_the_store_as_a_change() -> None:
    world = World()
    given = [prefix(f"192.0.2.{number}/32") for number in range(100)]
    put(world, "edge", *given)
    answers = run(world.control.declare(world.owner("edge"), Asked(put=given)))
    assert all(one.unchanged for one in answers)


def test_a_sync_sweeps_what_was_not_asserted() -> None:
    world = World()
    kept, gone = prefix("192.0.2.1/32"), prefix("192.0.2.2/32")
    put(world, "edge", kept, gone)
    run(world.declarations.begin_sync("Owner/edge"))
    put(world, "edge", kept)
    swept = run(world.control.complete_sync(world.owner("edge"), dry_run=False))
    assert [str(one) for one in swept] == ["BGPPrefix/prefix-192.0.2.2-32"]
    assert world.held("edge") == ["BGPPrefix/prefix-192.0.2.1-32"]
    assert put(world, "net", gone) == ["OK"]


def test_what_the_startup_file_declares_exists_already() -> None:
    world, one, wide = World(), peer("192.0.2.1"), prefix("10.0.0.0/8")
    world.declarations.elsewhere = (
        Claimed("_config", documents.INSTANCE_TARGET, instance(65000), "router.yaml:3"),
        Claimed("_config", documents.target_of(one), named(one, "upstream"), "router.yaml:9"),
        Claimed("Plugin/x", documents.target_of(wide), named(wide, "told"), "Plugin/x#1"),
    )
    for name in ("edge", "admin"):
        assert put(world, name, peer("192.0.2.1")) == ["ALREADY_EXISTS"]
        assert put(world, name, prefix("10.0.0.0/8")) == ["ALREADY_EXISTS"]
        assert put(world, name, instance(65009)) == ["ALREADY_EXISTS"]
        assert withdraw(world, name, peer("192.0.2.1")) == ["NOT_FOUND"]
    assert put(world, "edge", prefix("10.1.0.0/16")) == ["ALREADY_EXISTS"]
    answer = run(world.control.declare(world.owner("edge"), Asked(put=[peer("192.0.2.1")])))[0]
    assert "BGPPeer/upstream at router.yaml:9" in str(answer.refused)
    assert world.control.local_as() == 65000
    assert world.declarations.kept == {}


def test_the_instance_that_the_startup_file_says_alike_is_not_declared_again() -> None:
    world = World()
    world.declarations.elsewhere = (
        Claimed("_config", documents.INSTANCE_TARGET, instance(65000), "router.yaml:3"),
    )
    answers = run(world.control.declare(world.owner("edge"), Asked(put=[instance(65000)])))
    assert [(one.refused, one.unchanged) for one in answers] == [(None, True)]
    assert world.declarations.kept == {}
