"""Ten thousand changes a second to routes of somebody else's, and what they cost us."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from holdfast.agent.watch.watch_scope import watch_scope
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds.route import Nexthop, batch, pack_key, template
from tests.agent.watch.kernel import identity, watching
from tests.agent.watch.listening import TAG, run
from tests.namespace import Namespace


@pytest.mark.parametrize("how", ["add", "replace"])
def test_storm(how: str, netns: Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    netns.veth("lan0", "far0", "192.0.2.1/24")
    keys = [pack_key(bytes((172, 16, number, 0)), 24) for number in range(256)]
    routes = BulkIntent("x", batch(template(4, nexthops=(Nexthop("192.0.2.2"),)), keys), "")

    async def test() -> None:
        async with watching(what=watch_scope(Desired((routes,)), (), TAG)) as (watch, heard):
            program = [sys.executable, "-m", "tests.agent.watch.changes", how, "4", "10000"]
            with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as storm:
                used = time.process_time()
                while storm.poll() is None:
                    await asyncio.sleep(0.05)
                used = time.process_time() - used
                assert storm.returncode == 0
                assert storm.stdout is not None
                made, took = map(float, storm.stdout.read().split())
            netns.ip("route add 172.16.7.0/24 via 192.0.2.2 proto 72")
            hint = await heard.until(lambda hint: hint.kind == "route")
            assert hint.identity == identity("172.16.7.0/24")
            assert watch.counts.lost == 0
            if how == "add":
                assert watch.counts.heard < made / 100
            with capsys.disabled():
                print(
                    f"\n{how}: {made / took:.0f} changes/s, {used / took:.2%} of a core,"
                    f" {used / made * 1e6:.2f} us each, {watch.counts.heard} heard"
                )

    run(test)
