"""All of it behind one face, beside what a pass declares and claims."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.agent.watch.fanotify import Fanotify
from holdfast.agent.watch.watch import Watch
from holdfast.engine.intent import BulkIntent, Desired, Intent
from holdfast.engine.kinds.address import address
from holdfast.engine.kinds.block import block
from holdfast.engine.kinds.file import file
from holdfast.engine.kinds.hostname import hostname
from holdfast.engine.kinds.nft import nft_table
from holdfast.engine.kinds.route import Nexthop, batch, pack_key, template
from holdfast.engine.kinds.sysctl import sysctl
from holdfast.engine.plan import Operation, Verb
from holdfast.host.facts.leases import FOLDER as LEASES
from holdfast.paths import Paths
from holdfast.runtime import drivers
from tests import lanes
from tests.agent.watch.listening import TAG, Heard, run, write
from tests.namespace import Namespace

ARTIFACTS = (
    address(ipaddress.ip_interface("192.0.2.7/24"), "lan0"),
    file("/etc/one/file", b"x"),
    block("/etc/hosts", "it", b"192.0.2.1 x\n"),
    hostname("me"),
    sysctl("net.ipv4.ip_forward", "1"),
    nft_table("inet", "holdfast_filter", ""),
)
ROUTES = batch(
    template(4, nexthops=(Nexthop("192.0.2.2"),)), [pack_key(bytes((198, 51, 100, 0)), 24)]
)
DESIRED = Desired(
    (*(Intent("Test/it", one, "") for one in ARTIFACTS), BulkIntent("Test/it", ROUTES, ""))
)


@asynccontextmanager
async def watching(root: Path) -> AsyncIterator[tuple[Watch, Heard]]:
    heard = Heard()
    watch = Watch(Paths(root), TAG, heard.tell, frozenset, lambda _event: None)
    try:
        await watch.start()
        yield watch, heard
    finally:
        watch.close()


def test_every_kind(lan: Namespace, root: Path) -> None:
    config = root / "router.yaml"

    async def test() -> None:
        async with watching(root) as (watch, heard):
            assert watch.follow(DESIRED, (), TAG, [config]) == []
            root.mkdir()
            config.write_text("apiVersion: x\n")  # also where we did it: it is to be read
            await heard.of("config", str(config))
            for folder in ("etc/one", LEASES.lstrip("/")):
                (root / folder).mkdir(parents=True)
            write(root / "etc/one/file", "y")
            await heard.of("file", "/etc/one/file")
            write(root / "etc/hosts", "127.0.0.1 localhost\n")
            await heard.of("block", "/etc/hosts it")
            write(root / "etc/hostname", "me\n")
            await heard.of("hostname", "system")
            lan.run("hostname", "you")
            await heard.of("hostname", "system")
            (root / LEASES.lstrip("/") / "wan0.4.lease").write_text("x")
            await heard.of("fact", "lease")
            lan.ip("addr add 192.0.2.7/24 dev lan0")
            await heard.of("address", "192.0.2.7/24 dev lan0")
            lan.ip("route replace 198.51.100.0/24 via 192.0.2.3 proto 72")
            assert (await heard.until(lambda hint: hint.kind == "route")).identity == (
                ROUTES.scope + ROUTES.keys[0]
            )
            lan.run("nft", "add table inet holdfast_filter")
            await heard.of("nft", "inet holdfast_filter")
            lan.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
            await heard.of("sysctl", "net.ipv4.ip_forward")
            assert watch.lost == 0
            assert watch.heard > 5
            for kind in ("address", "block", "config", "fact", "file", "hostname", "nft", "route"):
                assert watch.hints[kind] >= 1

    run(test)


@pytest.mark.usefixtures("lan")
def test_own_writes_are_not_told(root: Path) -> None:
    made = Fanotify.open()
    lanes.needs(made is not None, "fanotify with the names of files")
    assert made is not None
    made.close()

    async def test() -> None:
        (root / "etc/one").mkdir(parents=True)
        async with watching(root) as (watch, heard):
            watch.follow(DESIRED, (), TAG)
            operations = [Operation(Verb.CREATE, one, ("Test/it",), "") for one in ARTIFACTS[1:3]]
            with drivers.of_machine(Paths(root), TAG) as host:
                for operation in operations:
                    (result,) = host.apply([operation], lambda _done: None)
                    assert result.ok
            write(root / "etc/hosts", "")
            hint = await heard.next()
            assert hint.key == ARTIFACTS[2].key
            assert hint.writer is not None
            assert hint.writer.pid > 0

    run(test)


def test_what_cannot_be_watched_is_said(
    lan: Namespace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.agent.watch import files
    from holdfast.errors import DriverError

    async def test() -> None:
        async with watching(root) as (watch, _):

            def full(_self: object, path: Path, _mask: int) -> int:
                raise DriverError(f"cannot watch {path}: No space left on device", 28)

            monkeypatch.setattr(files.FileWatch, "_add", full)
            for _ in range(2):
                said = watch.follow(DESIRED, (), TAG)
                assert f"cannot watch {root.parent}: No space left on device" in said
            lan.ip("addr add 192.0.2.7/24 dev lan0")  # all else goes on

    run(test)


def test_another_tag_from_now_on(lan: Namespace, root: Path) -> None:
    async def test() -> None:
        async with watching(root) as (watch, heard):
            watch.follow(Desired(()), (), 73)
            lan.ip("route add 198.51.100.0/24 via 192.0.2.3 proto 72")
            lan.ip("route add 203.0.113.0/24 via 192.0.2.3 proto 73")
            hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity is not None
            assert hint.identity.endswith(pack_key(bytes((203, 0, 113, 0)), 24))

    run(test)


@pytest.mark.usefixtures("lan")
def test_closed_watch_leaves_nothing_behind(root: Path) -> None:
    def descriptors() -> set[str]:
        return {str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()}

    async def test() -> None:
        before = descriptors()
        async with watching(root) as (watch, _):
            watch.follow(DESIRED, (), TAG)
            assert descriptors() - before
        assert descriptors() == before

    run(test)
