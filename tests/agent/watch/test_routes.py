"""Routes changed with `ip`, ours and others', as the kernel tells of them."""

from __future__ import annotations

import asyncio
import os

import pytest

from holdfast.agent.watch import hint as hints
from holdfast.agent.watch.hint import Writer, command_of
from holdfast.agent.watch.netlink import DEFAULT_ROUTE
from holdfast.agent.watch.ports import Ports
from holdfast.agent.watch.watch_scope import watch_scope
from holdfast.engine.artifact import Fields, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.driver import Scope
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds.route import Nexthop, batch, pack_key, template
from holdfast.paths import Paths
from holdfast.runtime import drivers
from tests.agent.watch.kernel import (
    PREFIX,
    PREFIX6,
    identity,
    nothing_but_the_mark,
    running,
    watching,
)
from tests.agent.watch.listening import TAG, run
from tests.namespace import Namespace


def test_route_of_ours(lan: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    # Until it is heard of, `ip` is as young as it is, on a busy machine, too.
    monkeypatch.setattr(hints, "_JUST_BEGUN_S", 60.0)

    async def test() -> None:
        async with watching() as (_, heard):
            with running(
                "ip", "-batch", "-", given=f"route add {PREFIX} via 192.0.2.2 proto 72\n"
            ) as ip:
                hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity == identity(PREFIX)
            me = f"{command_of(os.getpid())} (process {os.getpid()})"
            assert hint.writer == Writer(ip.pid, "ip", me)
            assert str(hint.writer) == f"ip (process {ip.pid}) of {me}"
            assert not hint.gone
            lan.ip(f"route del {PREFIX}")
            hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity == identity(PREFIX)
            assert hint.gone

            lan.ip(f"-6 route add {PREFIX6} via 2001:db8::2 proto 72 table 100 metric 7")
            hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity == identity(PREFIX6, 100, 7)
            lan.ip("route add default via 192.0.2.2 proto 72 metric 5")
            hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity == identity("0.0.0.0/0", 254, 5)

    run(test)


def test_writer_that_lives_for_long(lan: Namespace) -> None:
    """It speaks for itself."""

    async def test() -> None:
        async with watching() as (_, heard):
            with running("ip", "-batch", "-") as ip:
                await asyncio.sleep(2.1)
                assert ip.stdin is not None
                ip.stdin.write(f"route add {PREFIX} via 192.0.2.2 proto 72\n")
                ip.stdin.flush()
                hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.writer == Writer(ip.pid, "ip")
            assert str(hint.writer) == f"ip (process {ip.pid})"
            # Gone before it could be asked, as a command often is.
            assert str(Ports().writer(ip.pid)) == f"process {ip.pid}"
            lan.ip(f"route del {PREFIX}")

    run(test)


def test_identity_is_that_of_the_engine(lan: Namespace) -> None:
    declared = batch(
        template(4, table=1000, metric=30, nexthops=(Nexthop("192.0.2.2", "lan0"),)),
        [pack_key(bytes((198, 51, 100, 0)), 24)],
    )
    body = b""

    async def test() -> None:
        nonlocal body
        async with watching() as (_, heard):
            lan.ip(f"route add {PREFIX} via 192.0.2.2 dev lan0 proto 72 table 1000 metric 30")
            hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity == declared.scope + declared.keys[0]
            assert hint.body is not None
            body = hint.body

    run(test)
    with drivers.of_machine(Paths(), TAG) as host:
        seen = host.observe(Scope(remembered={"routes": frozenset({"1000"})})).bulk["route"]
        assert seen.own == {body}  # as the driver dumped it


def test_others_routes(lan: Namespace) -> None:
    """Those alone that take the place of one of ours, or come to stand beside it."""
    ours = [pack_key(bytes((198, 51, 100, 0)), 24)]
    shared = template(4, nexthops=(Nexthop("192.0.2.2"),))
    what = watch_scope(
        Desired((BulkIntent("RouteList/all", batch(shared, ours), "router.yaml:1:1"),)), (), TAG
    )

    async def test() -> None:
        async with watching(what=what) as (watch, heard):
            lan.ip("route add 203.0.113.0/24 via 192.0.2.2")
            lan.ip("route replace 203.0.113.0/24 via 192.0.2.3")
            lan.ip("route append 203.0.113.0/24 via 192.0.2.4")
            lan.ip("route del 203.0.113.0/24")
            lan.ip(f"route add {PREFIX} via 192.0.2.9 metric 7")
            lan.ip(f"route replace {PREFIX} via 192.0.2.9 table 100")
            await nothing_but_the_mark(lan, heard)
            heard_before = watch.counts.heard

            lan.ip(f"route add {PREFIX} via 192.0.2.2 proto 72")
            await heard.until(lambda hint: hint.identity == identity(PREFIX))
            for number, verb in enumerate(("prepend", "append", "replace"), 3):
                lan.ip(f"route {verb} {PREFIX} via 192.0.2.{number} proto static")
                hint = await heard.until(lambda hint: hint.kind == "route")
                assert hint.identity == identity(PREFIX)
                assert not hint.gone
            assert heard_before < watch.counts.heard <= heard_before + 6

    run(test)


def test_others_that_leave_the_place_of_ours(lan: Namespace) -> None:
    """The kernel tells of them as long as they hold it, and of nobody else's that go."""
    ours4 = batch(template(4), [pack_key(bytes((198, 51, 100, 0)), 24)])
    ours6 = batch(template(6), [pack_key(bytes.fromhex("20010db80005") + bytes(10), 48)])
    intents = tuple(BulkIntent("RouteList/all", one, "router.yaml:1:1") for one in (ours4, ours6))
    what = watch_scope(Desired(intents), (), TAG)
    near = ("203.0.113.0/24", "198.51.0.0/16")
    near6 = ("2001:db8:6::/48", "2001:db9:5::/48")
    places = {Key("route", PREFIX), Key("route", PREFIX6)}
    many = {Key("route", f"10.0.{number}.0/24") for number in range(20)}

    def come_and_go(*prefixes: str) -> None:
        for prefix in prefixes:
            lan.ip(f"route add {prefix} dev lan0 proto static")
            lan.ip(f"route del {prefix} dev lan0 proto static")

    async def test() -> None:
        async with watching(what=what) as (watch, heard):
            come_and_go(PREFIX, PREFIX6, *near, *near6)
            await nothing_but_the_mark(lan, heard)
            watch.taken(places)
            # It may be gone by now: looked at once, not each time that somebody says so.
            assert {hint.identity for hint in heard.hints} == {
                identity(PREFIX),
                identity(PREFIX6, metric=1024),
            }
            heard.hints.clear()
            watch.taken(places)
            before = watch.counts.heard
            come_and_go(*near, *near6)
            await nothing_but_the_mark(lan, heard)
            assert watch.counts.heard == before + 2  # of the mark
            come_and_go(PREFIX, PREFIX6)
            for found in (identity(PREFIX), identity(PREFIX6, metric=1024)):
                hint = await heard.next()
                assert (hint.identity, hint.gone) == (found, True)
            # Of more of them than can be told apart, all that go are told of.
            watch.taken({*places, *many})
            heard.hints.clear()
            before = watch.counts.heard
            come_and_go(*near, *near6)
            await nothing_but_the_mark(lan, heard)
            assert watch.counts.heard == before + 6
            come_and_go(PREFIX6)
            assert (await heard.next()).gone
            watch.taken(set())
            come_and_go(PREFIX, PREFIX6)
            await nothing_but_the_mark(lan, heard)

    run(test)


def test_default_route_of_others_is_a_fact(lan: Namespace) -> None:
    async def test() -> None:
        async with watching() as (_, heard):
            lan.ip("route add default via 192.0.2.2 proto dhcp")
            assert (await heard.of("fact", "default route")).key == DEFAULT_ROUTE
            lan.ip("route del default")
            assert (await heard.of("fact", "default route")).gone
            lan.ip("route add default via 192.0.2.2 table 100")
            await nothing_but_the_mark(lan, heard)

    run(test)


def test_legs_of_ipv6(lan: Namespace) -> None:
    """Only the protocol of one leg is told, and it may be the other's."""
    shared = template(6, nexthops=(Nexthop("2001:db8::2", "lan0"),))
    ours = [pack_key(bytes.fromhex("20010db80005") + bytes(10), 48)]
    what = watch_scope(
        Desired((BulkIntent("RouteList/all", batch(shared, ours), "router.yaml:1:1"),)), (), TAG
    )

    async def test() -> None:
        async with watching(what=what) as (_, heard):
            lan.ip(f"-6 route add {PREFIX6} via 2001:db8::2 proto 72")
            lan.ip(f"-6 route append {PREFIX6} via 2001:db8::3 proto static")
            for _ in range(2):
                hint = await heard.until(lambda hint: hint.kind == "route")
                assert hint.identity == identity(PREFIX6, metric=1024)
            lan.ip(f"-6 route del {PREFIX6} via 2001:db8::2")  # ours
            hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity == identity(PREFIX6, metric=1024)
            assert hint.gone
            # Now the other's comes first, and the delete of both is told by that one.
            lan.ip(f"-6 route append {PREFIX6} via 2001:db8::2 proto 72")
            await heard.until(lambda hint: hint.kind == "route")
            lan.ip(f"-6 route del {PREFIX6}")
            hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity == identity(PREFIX6, metric=1024)
            assert hint.gone
            lan.ip(f"-6 route replace {PREFIX6} via 2001:db8::9 proto static")
            lan.ip(f"-6 route replace {PREFIX6} via 2001:db8::8 proto static")
            await heard.until(lambda hint: hint.identity == identity(PREFIX6, metric=1024))

    run(test)


def test_adopted_route(lan: Namespace) -> None:
    """It carries the tag of whoever made it."""
    fields: Fields = {"destination": PREFIX, "table": 254, "metric": 0, "protocol": 4}
    claim = Claim(Key("route", PREFIX), ("x",), Provenance.ADOPTED, ClaimState.OWNED, fields, "", 1)

    async def test() -> None:
        async with watching(what=watch_scope(Desired(()), [claim], TAG)) as (_, heard):
            lan.ip(f"route add {PREFIX} via 192.0.2.2 proto static")
            lan.ip("route add 203.0.113.0/24 via 192.0.2.2 proto static")
            lan.ip(f"route del {PREFIX}")
            hints = [await heard.next() for _ in range(2)]
            assert [(hint.identity, hint.gone) for hint in hints] == [
                (identity(PREFIX), False),
                (identity(PREFIX), True),
            ]

    run(test)
