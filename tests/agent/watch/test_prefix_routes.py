"""The kernel's own routes: those that somebody deletes from under an address of ours."""

from __future__ import annotations

from holdfast.agent.watch.watch_scope import WatchScope
from holdfast.engine.artifact import Key
from tests.agent.watch.kernel import nothing_but_the_mark, watching
from tests.agent.watch.listening import TAG, run
from tests.namespace import Namespace

MINE = Key("address", "192.0.2.1/24 dev lan0")
FOLLOWED = WatchScope(
    TAG, keys=frozenset({MINE}), protocols=frozenset({TAG}), kinds=frozenset({"address"})
)


def test_those_of_our_links_are_told_of(lan: Namespace) -> None:
    async def test() -> None:
        async with watching(what=FOLLOWED) as (_, heard):
            lan.ip("addr add 10.6.0.1/24 dev far0")
            await heard.of("address", "10.6.0.1/24 dev far0")
            lan.ip("route del 10.6.0.0/24")  # a link that has none of ours
            await nothing_but_the_mark(lan, heard)
            lan.ip("route del 192.0.2.0/24 dev lan0")
            hint = await heard.until(lambda hint: hint.kind == "address")
            assert hint.key is None and hint.writer is not None
            lan.ip("addr del 10.6.0.1/24 dev far0")
            # What goes with its address is no news of its own.
            assert (await heard.of("address", "10.6.0.1/24 dev far0")).gone
            await nothing_but_the_mark(lan, heard)

    run(test)
