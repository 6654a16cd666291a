"""Links, addresses, rules and neighbours changed with `ip`, as the kernel tells of them."""

from __future__ import annotations

import os
import sys
from contextlib import closing

import pytest

from holdfast.agent.watch.hint import Hint
from holdfast.agent.watch.watch_scope import WatchScope
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.route import Nexthop, batch, pack_key, template
from holdfast.engine.plan import Operation, Verb
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.runtime import drivers
from tests.agent.two_providers import until
from tests.agent.watch.kernel import PREFIX, identity, nothing_but_the_mark, running, watching
from tests.agent.watch.listening import TAG, run
from tests.namespace import Namespace, private_namespaces

LINKS = frozenset(Key("link", name) for name in ("lan0", "far0", "far1"))
WITH_ROUTES = WatchScope(TAG, LINKS, protocols=frozenset({TAG}), kinds=frozenset({"nft", "route"}))


def test_addresses(lan: Namespace) -> None:
    async def test() -> None:
        async with watching(what=WITH_ROUTES) as (_, heard):
            with running("ip", "-batch", "-", given="addr add 192.0.2.7/24 dev lan0\n") as ip:
                hint = await heard.of("address", "192.0.2.7/24 dev lan0")
            assert hint.writer is not None
            assert hint.writer[:2] == (ip.pid, "ip")
            # Renewed, as an advertisement does it: nothing of it changed but its lifetime.
            lan.ip("addr change 192.0.2.7/24 dev lan0 valid_lft 100 preferred_lft 100")
            await heard.of("address", "192.0.2.7/24 dev lan0")  # no longer permanent
            lan.ip("addr change 192.0.2.7/24 dev lan0 valid_lft 200 preferred_lft 200")
            await nothing_but_the_mark(lan, heard)
            lan.ip("addr del 192.0.2.7/24 dev lan0")
            assert (await heard.of("address", "192.0.2.7/24 dev lan0")).gone
            await heard.of("route")  # routes may have gone with it, without a word
            lan.ip("addr add 2001:db8::7/64 dev lan0")
            await heard.of("address", "2001:db8::7 dev lan0")
            lan.ip("addr add 192.0.2.8 peer 192.0.2.9/32 dev far0")
            await heard.of("address", "192.0.2.8/32 dev far0 peer 192.0.2.9")

    run(test)


def test_guests_come_and_go(lan: Namespace) -> None:
    """Their links, and what the kernel puts on them. What could be in our way is told of."""

    async def test() -> None:
        async with watching() as (_, heard):
            lan.run("sysctl", "-qw", "net.ipv6.conf.default.addr_gen_mode=0")
            lan.veth("veth1", "guest0")
            until(lambda: "fe80" in lan.ip("-6 addr show dev veth1"), "a link-local address")
            lan.ip("link set guest0 mtu 1400")
            await nothing_but_the_mark(lan, heard)
            lan.ip("addr add 172.17.0.1/16 dev veth1")
            await heard.of("address", "172.17.0.1/16 dev veth1")
            lan.ip("link del veth1")
            assert (await heard.of("address", "172.17.0.1/16 dev veth1")).gone
            await nothing_but_the_mark(lan, heard)

    run(test)


def test_a_guest_may_have_the_network_that_is_lacking(lan: Namespace) -> None:
    """What comes up is told of then, but for ports of a bridge: they have no networks."""

    async def test() -> None:
        lan.ip("link add br1 type bridge")
        lan.ip("link add veth1 type veth peer guest0")
        lan.ip("link add veth2 master br1 type veth peer guest2")
        async with watching(what=WatchScope(TAG, LINKS, lacking=True)) as (_, heard):
            lan.ip("link set veth2 up")
            await nothing_but_the_mark(lan, heard)
            lan.ip("link set veth1 up")
            await heard.of("fact", "link that came up")
            lan.ip("link set guest0 up")  # and it has its carrier
            for _ in range(2):
                await heard.of("fact", "link that came up")

    run(test)


def test_nothing_goes_along_that_is_not_there(lan: Namespace) -> None:
    async def test() -> None:
        async with watching() as (_, heard):
            lan.ip("addr del 192.0.2.1/24 dev lan0")
            lan.ip("link del lan0")
            lan.ip("rule add priority 9999 blackhole protocol 72")
            earlier = await heard.before(lambda hint: hint.kind == "rule")
            assert {hint.kind for hint in earlier} == {"address"}

    run(test)


def test_rules(lan: Namespace) -> None:
    async def test() -> None:
        wanted = Key("rule", "100: from 10.0.0.0/8 lookup 100")
        what = WatchScope(TAG, keys=frozenset({wanted}), protocols=frozenset({TAG}))
        async with watching(what=what) as (_, heard):
            lan.ip("rule add from 10.9.0.0/16 lookup 100 priority 99")  # another's
            lan.ip("rule add from 10.0.0.0/8 lookup 100 priority 100 protocol 72")
            hint = await heard.until(lambda hint: hint.kind == "rule")
            assert hint.key == wanted
            lan.ip("rule flush")
            assert (await heard.of("rule", wanted.name)).gone
            lan.ip("-6 rule add fwmark 0x1 lookup 100 priority 5 protocol 72")
            await heard.of("rule", "inet6 5: from all fwmark 0x1 lookup 100")

    run(test)


def test_neighbours(lan: Namespace) -> None:
    async def test() -> None:
        wanted = Key("neighbour", "192.0.2.50 dev lan0")
        what = WatchScope(TAG, keys=frozenset({wanted}), protocols=frozenset({TAG}))
        at = "192.0.2.50 dev lan0"
        async with watching(what=what) as (watch, heard):
            lan.ip("neigh add 192.0.2.60 lladdr 02:00:00:00:00:09 nud stale dev lan0")
            lan.ip("neigh del 192.0.2.60 dev lan0")
            await nothing_but_the_mark(lan, heard)
            assert watch.counts.heard == 2  # the mark, and its end
            lan.ip(f"neigh add {at} lladdr 02:00:00:00:00:01 protocol 72")
            assert (await heard.of(*wanted)).writer is not None
            lan.ip(f"neigh replace {at} lladdr 02:00:00:00:00:02")
            await heard.of(*wanted)
            lan.ip(f"neigh replace {at} lladdr 02:00:00:00:00:03 protocol static")
            await heard.of(*wanted)
            lan.ip(f"neigh replace {at} lladdr 02:00:00:00:00:01 protocol 72")
            lan.ip(f"neigh del {at}")
            await heard.until(lambda hint: hint.key == wanted and hint.gone)

    run(test)


def test_links(lan: Namespace) -> None:
    async def test() -> None:
        async with watching(what=WITH_ROUTES) as (_, heard):
            lan.ip("link set lan0 mtu 1400")
            assert (await heard.of("link", "lan0")).writer is None  # nobody is named
            lan.ip("link set lan0 mtu 1400")
            lan.ip("link add br0 type bridge")
            assert (await heard.next()).key == Key("link", "br0")
            lan.ip("link set far0 master br0")
            await heard.of("link", "far0")
            lan.ip("link set far0 down")
            await heard.of("link", "far0")
            await heard.of("route")  # those of IPv4 go without a word
            lan.ip("link set far0 name far1")
            hints = [await heard.until(lambda hint: hint.kind == "link") for _ in range(2)]
            assert {(hint.key, hint.gone) for hint in hints} == {
                (Key("link", "far0"), True),
                (Key("link", "far1"), False),
            }
            lan.ip("addr add 203.0.113.1/24 dev far1")
            await heard.of("address", "203.0.113.1/24 dev far1")
            lan.ip("link del br0")
            assert (await heard.of("link", "br0")).gone
            await heard.of("nft")

    run(test)


def test_own_changes_are_not_told(lan: Namespace) -> None:
    shared = template(4, nexthops=(Nexthop("192.0.2.2", "lan0"),))
    keys = [pack_key(bytes((198, 18, number, 0)), 24) for number in range(200)]
    routes = batch(shared, keys)

    async def test() -> None:
        sock = NetlinkSocket()
        with drivers.of_machine(Paths(), TAG, sock) as host:
            async with watching(frozenset({sock.port})) as (watch, heard):
                (created,) = host.apply(
                    [Operation(Verb.CREATE, routes, ("RouteList/all",), "")], lambda _done: None
                )
                assert created.done == 200
                assert watch.counts.heard == 0
                await nothing_but_the_mark(lan, heard)
                assert watch.counts.heard == 2
                # Another's is, with the same tag or not.
                lan.ip("route del 198.18.7.0/24")
                hint = await heard.next()
                assert (hint.identity, hint.gone) == (identity("198.18.7.0/24"), True)

    run(test)


@pytest.mark.usefixtures("lan")
def test_own_port_is_that_of_the_process() -> None:
    """So that others can tell who we are; the watch leaves the number to the host."""

    async def test() -> None:
        async with watching():
            with closing(NetlinkSocket()) as sock:
                assert sock.port == os.getpid()

    run(test)


@pytest.mark.usefixtures("lan")
def test_daemon_with_several_sockets_is_found() -> None:
    """The kernel names the port, and only the first socket of a process has its number."""
    program = """
import os, socket, sys
from holdfast.engine.kinds.route import Nexthop, batch, pack_key, template
from holdfast.engine.plan import Operation, Verb
from holdfast.paths import Paths
from holdfast.runtime import drivers
first = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
first.bind((0, 0))
key = pack_key(bytes((198, 51, 100, 0)), 24)
routes = batch(template(4, nexthops=(Nexthop("192.0.2.2", "lan0"),)), [key])
with drivers.of_machine(Paths(), 72) as host:
    host.apply([Operation(Verb.CREATE, routes, ("x",), "")], lambda _done: None)
    sys.stdin.read()
"""

    async def test() -> None:
        async with watching() as (_, heard):
            with running(sys.executable, "-c", program) as process:
                hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.writer is not None
            assert hint.writer.pid == process.pid
            assert hint.writer.name.startswith("python")

    run(test)


def test_other_namespaces_are_not_heard(lan: Namespace) -> None:
    async def test() -> None:
        async with watching() as (_, heard):
            with private_namespaces() as other:
                other.veth("lan0", "far0", "192.0.2.9/24")
                other.ip(f"route add {PREFIX} via 192.0.2.2 proto 72")
            await nothing_but_the_mark(lan, heard)

    run(test)


def test_more_than_can_be_kept(lan: Namespace) -> None:
    """What was lost is told of, what comes after it is heard, and names are right again."""

    async def test() -> None:
        async with watching(buffer=4096) as (watch, heard):
            lan.ip("link set far0 name far1")
            for number in range(50):
                lan.ip(f"route add 198.18.{number}.0/24 via 192.0.2.2 proto 72")
            await heard.until(lambda hint: hint == Hint())
            assert watch.counts.lost >= 1
            lan.ip("addr add 203.0.113.1/24 dev far1")
            await heard.of("address", "203.0.113.1/24 dev far1")

    run(test)
