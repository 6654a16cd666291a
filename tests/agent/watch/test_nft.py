"""Tables changed with `nft`, as the kernel tells of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.agent.watch.hint import Hint
from holdfast.agent.watch.nft import NftWatch
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.nft import nft_table
from holdfast.engine.plan import Operation, Verb
from holdfast.host.netlink.multicast import RECEIVE_BUFFER
from holdfast.paths import Paths
from holdfast.runtime import drivers
from tests.agent.watch.listening import TAG, Heard, run
from tests.namespace import Namespace, private_namespaces

CHAIN = "chain c { type filter hook input priority 0; ip saddr 192.0.2.1 accept; }"


@asynccontextmanager
async def watching(
    keys: Iterable[Key] = (), buffer: int = RECEIVE_BUFFER
) -> AsyncIterator[tuple[NftWatch, Heard]]:
    heard = Heard()
    watch = NftWatch(heard.tell, buffer)
    watch.follow(frozenset(keys))
    try:
        yield watch, heard
    finally:
        watch.close()


async def nothing_but_the_mark(netns: Namespace, heard: Heard) -> None:
    netns.run("nft", "add table ip holdfast_mark")
    assert await heard.before(lambda hint: hint.key == Key("nft", "ip holdfast_mark")) == []
    netns.run("nft", "delete table ip holdfast_mark")
    assert (await heard.of("nft", "ip holdfast_mark")).gone


@pytest.mark.parametrize(
    "change",
    [
        "add rule inet holdfast_filter c drop",
        "flush chain inet holdfast_filter c",
        "add chain inet holdfast_filter d",
        "add set inet holdfast_filter s { type ipv4_addr; }",
        "add element inet holdfast_filter t { 192.0.2.1 }",
        "add counter inet holdfast_filter n",
        "delete table inet holdfast_filter",
        "flush ruleset",
    ],
)
def test_change_of_ours(change: str, netns: Namespace) -> None:
    async def test() -> None:
        netns.run("nft", f"table inet holdfast_filter {{ set t {{ type ipv4_addr; }}; {CHAIN}; }}")
        async with watching() as (_, heard):
            netns.run("nft", change)
            hint = await heard.next()
            assert hint.key == Key("nft", "inet holdfast_filter")
            assert hint.writer is not None
            assert hint.writer.name == "nft"
            assert hint.writer.pid > 0
            assert hint.gone == (change in ("delete table inet holdfast_filter", "flush ruleset"))

    run(test)


def test_one_hint_for_a_transaction(netns: Namespace) -> None:
    async def test() -> None:
        async with watching() as (_, heard):
            rules = "; ".join(f"ip saddr 192.0.2.{number} accept" for number in range(200))
            both = f"table ip holdfast_a {{ chain c {{ {rules}; }}; }}; table ip6 holdfast_a {{ }}"
            netns.run("nft", both)
            hints = [await heard.next() for _ in range(2)]
            assert {hint.key for hint in hints} == {
                Key("nft", "ip holdfast_a"),
                Key("nft", "ip6 holdfast_a"),
            }
            await nothing_but_the_mark(netns, heard)

    run(test)


def test_tables_of_others(netns: Namespace) -> None:
    async def test() -> None:
        adopted = Key("nft", "ip mine")
        async with watching([adopted]) as (_, heard):
            netns.run("nft", f"table ip other {{ {CHAIN}; }}")
            netns.run("nft", "delete table ip other")
            await nothing_but_the_mark(netns, heard)
            netns.run("nft", "table ip mine { }")
            assert (await heard.next()).key == adopted

    run(test)


def test_own_transactions_are_not_told(netns: Namespace) -> None:
    async def test() -> None:
        async with watching() as (watch, heard):
            with drivers.of_machine(Paths(), TAG) as host:
                table = nft_table("inet", "holdfast_filter", CHAIN)
                made = Operation(Verb.CREATE, table, ("FirewallPolicy/x",), "")
                (result,) = host.apply([made], lambda _done: None)
            assert result.ok
            assert "holdfast_filter" in netns.run("nft", "list tables")
            await nothing_but_the_mark(netns, heard)
            assert watch.counts.heard > 4

    run(test)


def test_other_namespaces_are_not_heard(netns: Namespace) -> None:
    async def test() -> None:
        async with watching() as (_, heard):
            with private_namespaces() as other:
                other.run("nft", "table inet holdfast_filter { }")
            await nothing_but_the_mark(netns, heard)

    run(test)


def test_more_than_can_be_kept(netns: Namespace, tmp_path: Path) -> None:
    async def test() -> None:
        script = tmp_path / "script"
        script.write_text("".join(f"add table ip t{number}\n" for number in range(500)))
        async with watching(buffer=4096) as (watch, heard):
            for _ in range(3):
                netns.run("nft", "-f", str(script))
                netns.run("nft", "flush ruleset")
            await heard.until(lambda hint: hint == Hint("nft"))
            assert watch.counts.lost >= 1
            netns.run("nft", "add table ip holdfast_mark")
            await heard.of("nft", "ip holdfast_mark")

    run(test)
