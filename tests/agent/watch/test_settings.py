"""Kernel settings and the host's name, changed by hand."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.agent.watch.netlink import NetlinkWatch
from holdfast.agent.watch.settings import HostnameWatch, SysctlWatch
from holdfast.engine.artifact import Key
from tests.agent.watch.listening import TAG, Heard, run
from tests.namespace import Namespace

CONF = Path("/proc/sys/net/ipv4/conf")


@asynccontextmanager
async def watching(*names: str, every: float = 0.01) -> AsyncIterator[tuple[SysctlWatch, Heard]]:
    heard = Heard()
    watch = SysctlWatch(heard.tell, every)
    watch.follow(Key("sysctl", name) for name in names)
    try:
        yield watch, heard
    finally:
        watch.close()


def test_value_that_changes(netns: Namespace) -> None:
    netns.veth("lan0", "far0")
    names = ("net.ipv4.conf.lan0.arp_filter", "net.ipv4.conf.far0.arp_filter")

    async def test() -> None:
        async with watching(*names) as (watch, heard):
            (CONF / "lan0/arp_filter").write_text("1")
            hint = await heard.next()
            assert (hint.key, hint.gone) == (Key("sysctl", names[0]), False)
            (CONF / "lan0/arp_filter").write_text("1")  # the same
            (CONF / "far0/arp_filter").write_text("1")
            assert (await heard.next()).key == Key("sysctl", names[1])
            watch.follow([Key("sysctl", names[1])])
            (CONF / "lan0/arp_filter").write_text("0")
            (CONF / "far0/arp_filter").write_text("0")
            assert (await heard.next()).key == Key("sysctl", names[1])
            watch.look()
            assert heard.hints == []

    run(test)


def test_link_that_goes_and_another_of_its_name(netns: Namespace) -> None:
    netns.veth("lan0", "far0")
    name = "net.ipv4.conf.lan0.arp_filter"

    async def test() -> None:
        async with watching(name, "net.ipv4.conf.wan0.arp_filter") as (_, heard):
            (CONF / "lan0/arp_filter").write_text("1")
            await heard.of("sysctl", name)
            netns.ip("link del lan0")
            assert (await heard.of("sysctl", name)).gone
            netns.veth("lan0", "far0")
            assert not (await heard.of("sysctl", name)).gone
            netns.veth("wan0", "far1")
            await heard.of("sysctl", "net.ipv4.conf.wan0.arp_filter")

    run(test)


def test_what_netlink_tells_of_is_not_waited_for(netns: Namespace) -> None:
    netns.veth("lan0", "far0")
    names = ("net.ipv4.ip_forward", "net.ipv4.conf.lan0.rp_filter", "net.ipv6.conf.lan0.forwarding")

    async def test() -> None:
        async with watching(*names, every=3600) as (watch, heard):
            kernel = NetlinkWatch(lambda _hint: None, TAG, frozenset, watch.hurry)
            try:
                Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
                await heard.of("sysctl", names[0])
                (CONF / "lan0/rp_filter").write_text("1")
                await heard.of("sysctl", names[1])
                Path("/proc/sys/net/ipv6/conf/lan0/forwarding").write_text("1")
                await heard.of("sysctl", names[2])
            finally:
                kernel.close()

    run(test)


def test_name_of_the_host(netns: Namespace) -> None:
    async def test() -> None:
        heard = Heard()
        watch = HostnameWatch(heard.tell)
        try:
            netns.run("unshare", "--uts", "hostname", "elsewhere")
            await asyncio.sleep(0.05)
            socket.sethostname("one")
            await heard.of("hostname", "system")
            netns.run("hostname", "two")
            await heard.of("hostname", "system")
            Path("/proc/sys/kernel/hostname").write_text("three")
            await heard.of("hostname", "system")
            assert heard.hints == []
        finally:
            watch.close()

    run(test)
