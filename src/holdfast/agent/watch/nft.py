"""Tables of nftables: what the kernel tells of transactions, and who made them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from holdfast.agent.watch.hint import Hint, Writer, named, printable
from holdfast.agent.watch.netlink import Counts
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.nft import NFT
from holdfast.host import process
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import HEADER
from holdfast.host.netlink.multicast import RECEIVE_BUFFER, Lost, MulticastSocket
from holdfast.host.netlink.socket import NETFILTER
from holdfast.host.nft.nft_ruleset import FAMILIES

_GROUP = 7  # NFNLGRP_NFTABLES
_SUBSYSTEM = 10 << 8
_NEW_GENERATION, _DELETE_TABLE = _SUBSYSTEM | 15, _SUBSYSTEM | 2
_PROCESS, _PROCESS_NAME = 2, 3
_BODY = HEADER.size + 4  # behind family, version and the low bits of the generation
_FAMILY_NAMES = {number: name for name, number in FAMILIES.items()}
_PREFIX = b"holdfast_"
_AT_ONCE = 200
_FIRST_PROCESSES = 0xEFFFFFFC  # the namespace of processes that a machine boots with


def _numbers_hold() -> bool:
    """nftables numbers processes as the machine does, also for those in a container."""
    return Path("/proc/self/ns/pid").stat().st_ino == _FIRST_PROCESSES


class NftWatch:
    """One hint for each table of ours that a transaction of others' touched. DriverError, of code
    EPROTONOSUPPORT, where the kernel has no netfilter at all."""

    def __init__(self, told: Callable[[Hint], None], buffer: int = RECEIVE_BUFFER) -> None:
        self.counts = Counts()
        self._told = told
        self._followed: frozenset[Key] = frozenset()
        # What the transaction touched that is being told; the kernel tells its writer at the end.
        self._touched: dict[Key, bool] = {}
        self._keys: dict[bytes, Key | None] = {}
        self._loop = asyncio.get_running_loop()
        self._sock = MulticastSocket(NETFILTER, (_GROUP,), buffer)
        self._loop.add_reader(self._sock, self._read)

    def close(self) -> None:
        self._loop.remove_reader(self._sock)
        self._sock.close()

    def follow(self, keys: frozenset[Key]) -> None:
        self._followed = frozenset(key for key in keys if key.kind == NFT.name)
        self._keys.clear()

    def _read(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                data = self._sock.receive()
            except Lost:
                self.counts.lost += 1
                self._touched.clear()
                self._told(Hint(NFT.name))
                continue
            if data is None:
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        offset, end = 0, len(data)
        while offset + _BODY <= end:
            length, kind, _, _, _ = HEADER.unpack_from(data, offset)
            if length < _BODY:
                return
            self.counts.heard += 1
            if kind == _NEW_GENERATION:
                self._over(attributes.parse(data[offset : offset + length], _BODY))
            else:
                key = self._table(data, offset + HEADER.size)
                if key is not None:
                    self._touched[key] = kind == _DELETE_TABLE
            offset += (length + 3) & ~3

    def _table(self, data: bytes, at: int) -> Key | None:
        """The table that a message is about, whatever it tells of it: in each sort of them its name
        is the first attribute. None for those that are not ours."""
        length = attributes.to_int(data[at + 4 : at + 6])
        named = data[at : at + 1] + data[at + 8 : at + 4 + length]
        if named not in self._keys:
            if len(self._keys) > 10_000:  # programs that make and remove tables without end
                self._keys.clear()
            family = _FAMILY_NAMES.get(named[0], str(named[0]))
            key = Key(NFT.name, f"{family} {attributes.to_text(named[1:])}")
            ours = named[1:].startswith(_PREFIX) or key in self._followed
            self._keys[named] = key if ours else None
        return self._keys[named]

    def _over(self, said: dict[int, bytes]) -> None:
        touched, self._touched = self._touched, {}
        pid = int.from_bytes(said.get(_PROCESS, b""), "big")
        if not touched or process.ran_lately(pid):
            return
        name = printable(said.get(_PROCESS_NAME, b""))
        writer = None
        if pid:
            writer = named(pid, name) if _numbers_hold() else Writer(0, name)
        for key, gone in touched.items():
            self._told(Hint(NFT.name, key, writer=writer, gone=gone))
