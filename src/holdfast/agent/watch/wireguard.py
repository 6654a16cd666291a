"""Keys and peers of WireGuard links. The kernel tells nobody of them: they are read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from holdfast.agent.watch.hint import Hint
from holdfast.dataclass import replace
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.wireguard import WIREGUARD
from holdfast.host.netlink.wireguard_codec import SeenPeer
from holdfast.host.netlink.wireguard_read import Reading, WireGuardReader

POLL_S = 0.5
# Less often where that would take more of a core than this: a thousand peers that all send and
# receive take 20 ms to compare.
SHARE = 0.002
_LONGEST_S = 30.0


class WireGuardWatch:
    """What a link has is compared with what it had before, so that what we tell it ourselves is
    told of once."""

    def __init__(
        self, told: Callable[[Hint], None], every: float = POLL_S, share: float = SHARE
    ) -> None:
        self._told = told
        self._every = every
        self._share = share
        # None: not there, or it cannot be read, which is for the pass to find out.
        self._known: dict[str, Reading | None] = {}
        self._reader = WireGuardReader()
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.TimerHandle | None = None

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._reader.close()

    def follow(self, keys: Iterable[Key]) -> None:
        """What is new is only read: whoever follows it is about to look, or just did."""
        names = {key.name for key in keys if key.kind == WIREGUARD.name}
        known, read = self._known.get, self._reader.read
        self._known = {name: known(name) or read(name, None) for name in sorted(names)}
        if not names:
            self.close()
        elif self._next is None:
            self._next = self._loop.call_later(self._every, self._again)

    def look(self) -> None:
        for name, before in self._known.items():
            now = self._reader.read(name, before)
            self._known[name] = now
            if not _same(before, now):
                key = Key(WIREGUARD.name, name)
                self._told(Hint(WIREGUARD.name, key, gone=now is None))

    def _again(self) -> None:
        started = time.thread_time()
        self.look()
        wait = min((time.thread_time() - started) / self._share, _LONGEST_S)
        self._next = self._loop.call_later(max(self._every, wait), self._again)


def _same(before: Reading | None, now: Reading | None) -> bool:
    if before is None or now is None or before is now:
        return before is now
    old, new = before.device, now.device
    return (
        replace(old, peers={}) == replace(new, peers={})
        and old.peers.keys() == new.peers.keys()
        and all(_same_peer(old.peers[key], peer) for key, peer in new.peers.items())
    )


def _same_peer(before: SeenPeer, now: SeenPeer) -> bool:
    """The kernel follows a peer that moves, and one that was never heard from cannot have moved."""
    if now.received:
        before = replace(before, peer=replace(before.peer, endpoint=now.peer.endpoint))
    return before.peer == now.peer
