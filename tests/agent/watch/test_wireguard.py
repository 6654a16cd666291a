"""Keys and peers of WireGuard links, changed with `wg`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.agent.watch.wireguard import WireGuardWatch
from holdfast.engine.artifact import Key
from tests.agent.daemon import Daemon, serve
from tests.agent.watch.listening import Heard, run
from tests.host.wireguard_scene import new_pair, wg
from tests.lanes import needs_link_type
from tests.namespace import Namespace
from tests.safety.router_scene import document

KEY = Key("wireguard", "wg0")
EVERY_S = 0.05
# Every instruction is emulated, and a daemon takes its time to start.
LONG_S = 120.0


def until(true: Callable[[], bool], daemon: Daemon) -> None:
    deadline = time.monotonic() + LONG_S
    while not true():
        assert time.monotonic() < deadline, daemon.said()
        time.sleep(0.1)


@pytest.mark.qemu
def test_what_is_told_to_a_link_by_others(netns: Namespace) -> None:
    needs_link_type(netns, "wireguard")
    first, second = new_pair().public, new_pair().public

    async def test() -> None:
        heard = Heard()
        watch = WireGuardWatch(heard.tell, EVERY_S, share=1.0)

        async def told(command: str) -> None:
            netns.run(*command.split())
            hint = await heard.of("wireguard", "wg0")
            assert not hint.gone
            await asyncio.sleep(4 * EVERY_S)
            assert heard.hints == [], command

        try:
            watch.follow([KEY])
            await told("ip link add wg0 type wireguard")
            for change in (
                f"peer {first} allowed-ips 10.1.0.0/16",
                f"peer {first} allowed-ips 10.1.0.0/16,10.2.0.0/16",
                f"peer {first} persistent-keepalive 25",
                f"peer {first} endpoint 192.0.2.9:51820",
                f"peer {second} allowed-ips 10.2.0.0/16",
                f"peer {second} remove",
                "listen-port 51822",
                "fwmark 7",
            ):
                await told(f"wg set wg0 {change}")
            netns.ip("link del wg0")
            assert (await heard.of("wireguard", "wg0")).gone
            # Others are nobody's business.
            watch.follow([])
            netns.ip("link add wg0 type wireguard")
            await asyncio.sleep(4 * EVERY_S)
            assert heard.hints == []
        finally:
            watch.close()

    run(test)


@pytest.mark.qemu
def test_a_daemon_repairs_them(netns: Namespace, root: Path) -> None:
    needs_link_type(netns, "wireguard")
    root.mkdir()
    ours, theirs, other = new_pair(), new_pair(), new_pair()
    key = root / "key"
    key.write_text(f"{ours.private}\n")
    key.chmod(0o600)
    peer = f"{{name: far, publicKey: '{theirs.public}', allowedIPs: [10.77.0.0/16]}}"
    spec = f"{{privateKeyFile: /key, listenPort: 51821, peers: [{peer}]}}"
    file = root / "router.yaml"
    file.write_text(document({"WireGuardInterface/wg0": spec}))
    with serve(root, file) as daemon:
        until(lambda: "because of the start" in daemon.said(), daemon)
        before = wg("showconf", "wg0")
        assert theirs.public in before
        for change in (
            f"peer {theirs.public} remove",
            f"peer {other.public} allowed-ips 10.77.0.0/16",
            f"peer {theirs.public} allowed-ips 10.78.0.0/16",
            "listen-port 51999",
        ):
            wg("set", "wg0", *change.split())
            until(lambda: wg("showconf", "wg0") == before, daemon)
        daemon.wait_for("repaired wireguard wg0 for WireGuardInterface/wg0")
        assert "because of the timer" not in daemon.said()
        assert daemon.end() == 0
