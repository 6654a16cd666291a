"""What the kernel tells a watch, and programs that change things beside it."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

from holdfast.agent.watch.netlink import NetlinkWatch
from holdfast.agent.watch.watch_scope import WatchScope
from holdfast.engine.kinds.route import identify
from holdfast.host.netlink.multicast import RECEIVE_BUFFER
from tests.agent.watch.listening import TAG, Heard
from tests.namespace import Namespace

PREFIX = "198.51.100.0/24"
PREFIX6 = "2001:db8:5::/48"


def identity(prefix: str, table: int = 254, metric: int = 0) -> bytes:
    return b"".join(identify({"destination": prefix, "table": table, "metric": metric}))


@asynccontextmanager
async def watching(
    ports: Iterable[int] = (), what: WatchScope | None = None, buffer: int = RECEIVE_BUFFER
) -> AsyncIterator[tuple[NetlinkWatch, Heard]]:
    heard = Heard()
    own = frozenset(ports)
    watch = NetlinkWatch(heard.tell, TAG, lambda: own, buffer=buffer)
    if what is not None:
        watch.follow(what)
    try:
        yield watch, heard
    finally:
        watch.close()


async def nothing_but_the_mark(netns: Namespace, heard: Heard) -> None:
    """Whatever was to be told of what came before comes before this."""
    netns.ip("rule add priority 9999 blackhole protocol 72")
    earlier = await heard.before(lambda hint: hint.kind == "rule")
    netns.ip("rule del priority 9999 blackhole protocol 72")
    await heard.of("rule", "9999: from all blackhole")
    assert earlier == []


@contextmanager
def running(*command: str, given: str = "") -> Iterator[subprocess.Popen[str]]:
    """A program that lives until it was heard of."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        try:
            process.stdin.write(given)
            process.stdin.flush()
            yield process
        finally:
            process.kill()
