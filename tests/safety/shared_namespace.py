"""Links of others in a namespace of its own, what others do there, and whose is what.

Whose an object is, is told by who made it appear: the tag is what is tested.
"""

from __future__ import annotations

import ipaddress
import shutil
import socket
import struct
import subprocess
import tempfile
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import CREATE, EXCL, REPLACE, NetlinkSocket, Request
from tests.namespace import Namespace, private_namespaces
from tests.safety import snapshot
from tests.safety.snapshot import Item, Snapshot

TAG = 72
# What every test finds and nobody touches: two links with a gateway behind the first.
GROUND = """
link add nic0 type veth peer name far0
link add nic1 type veth peer name far1
link set nic0 up
link set far0 up
link set nic1 up
link set far1 up
addr add 10.99.0.1/24 dev nic0
"""
GROUND6 = "addr add 2001:db8:99::1/64 dev nic0 nodad"
_NEWADDR, _NODAD = 20, 0x02
_REFUSALS = (
    "RTNETLINK answers",
    "Cannot find device",
    "Device does not exist",
    "IPv6 is disabled on this device",
)
# The links whose MTU, MAC, state, alias and master Holdfast is told to set.
SETTABLE = ("nic0", "nic1")


class Foreign:
    """Other programs: two `ip` processes that take commands as they come."""

    def __init__(self) -> None:
        self._processes: dict[int, tuple[subprocess.Popen[str], IO[str]]] = {}

    def _start(self, version: int) -> tuple[subprocess.Popen[str], IO[str]]:
        words = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (closed with the process)
        process = subprocess.Popen(
            ["ip", f"-{version}", "-oneline", "-force", "-batch", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
        )
        return process, words

    def ip(self, command: str, version: int = 4) -> None:
        """Done when it returns, whether the kernel took it or refused it."""
        if version not in self._processes:
            self._processes[version] = self._start(version)
        process, words = self._processes[version]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{command}\nlink show dev lo\n")
        process.stdin.flush()
        if not process.stdout.readline():
            words.seek(0)
            said = words.read()
            self._end(version)
            # Of some refusals `ip` dies; of a line that it cannot read it dies, too.
            assert any(refusal in said for refusal in _REFUSALS), (command, said)

    def _end(self, version: int) -> None:
        process, words = self._processes.pop(version)
        with suppress(BrokenPipeError):
            process.communicate()
        words.close()

    def close(self) -> None:
        for version in list(self._processes):
            self._end(version)


class SharedNamespace:
    """A namespace with links of others, and who made what there is."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.namespace: Namespace = self._stack.enter_context(private_namespaces())
        folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 (no fsync to disk)
        self.root = Path(tempfile.mkdtemp(dir=folder))
        self._stack.callback(shutil.rmtree, self.root)
        self.foreign = Foreign()
        self._stack.callback(self.foreign.close)
        for command in GROUND.strip().splitlines():
            self.foreign.ip(command)
        self.foreign.ip(GROUND6, version=6)
        # So that others may take the link down and up again without losing the ground.
        Path("/proc/sys/net/ipv6/conf/nic0/keep_addr_on_down").write_text("1")
        self.sock = NetlinkSocket()
        self._stack.callback(self.sock.close)
        self.ours: Counter[Item] = Counter()

    def close(self) -> None:
        self._stack.close()

    def look(self) -> Snapshot:
        seen = snapshot.take(self.sock)
        seen["link"] = [_settled(item) for item in seen["link"]]
        return seen

    def mtus(self) -> list[int]:
        """Of the links that Holdfast is told to set."""
        links = snapshot.take(self.sock)["link"]
        return [int(str(item.fields[2])) for item in links if item.where[0] in SETTABLE]

    def others(self, *commands: str, version: int = 4) -> None:
        """Others act: whatever is new belongs to them, what is gone is nobody's any more."""
        for command in commands:
            if command.startswith("raw "):
                self._write_address(*command.split()[1:])
            else:
                self.foreign.ip(command, version=version)
        now = all_of(self.look())
        # A link is the same whatever others set on it, as long as its index is.
        links = {item.where for item in self.ours if item.what == "link"}
        self.ours &= now
        self.ours |= Counter(item for item in now if item.what == "link" and item.where in links)
        # Nobody else writes under our tag, so what carries it is ours, changed by others or not.
        self.ours |= Counter({item: n for item, n in now.items() if item.protocol == TAG})
        replaced = version == 6 and any(one.startswith("route replace") for one in commands)
        for protocol, legs in snapshot.routes6(self.sock):
            # They may have put a leg just like ours in its place. Where several stand together,
            # only a replace does that.
            if protocol != TAG and (len(legs) == 1 or replaced):
                for leg in legs:
                    del self.ours[leg]

    def _write_address(self, verb: str, text: str, dev: str, protocol: str) -> None:
        """An address under a protocol, which not every `ip` can say."""
        interface = ipaddress.ip_interface(text)
        family = socket.AF_INET if interface.version == 4 else socket.AF_INET6
        with suppress(OSError):
            index = socket.if_nametoindex(dev)
            body = struct.pack("=BBBBI", family, interface.network.prefixlen, 0, 0, index)
            for kind in (1, 2):
                body += attributes.attribute(kind, interface.ip.packed)
            body += attributes.u32(8, _NODAD if interface.version == 6 else 0)
            body += attributes.u8(11, int(protocol))
            flags = CREATE | (REPLACE if verb == "replace" else EXCL)
            self.sock.transact([Request(_NEWADDR, flags, body)])

    def theirs(self, seen: Snapshot) -> Snapshot:
        """What is not ours of a snapshot. Of equal items the first ones are taken to be ours."""
        left = self.ours.copy()
        found: Snapshot = {}
        for what, items in seen.items():
            kept = found[what] = []
            for item in items:
                if left[item]:
                    left[item] -= 1
                else:
                    kept.append(item)
        return found


def all_of(seen: Snapshot) -> Counter[Item]:
    return Counter(item for items in seen.values() for item in items)


def assert_same(before: Snapshot, after: Snapshot) -> None:
    """Nothing foreign has come, gone, changed, or changed places with another."""
    for what, was in before.items():
        now = after[what]
        assert was == now, "\n".join(
            [f"{what}: what others made was touched"]
            + [f"  - {item}" for item in was if item not in now]
            + [f"  + {item}" for item in now if item not in was]
        )


def _settled(item: Item) -> Item:
    """Fields of links that Holdfast is told to set, or that follow from them: the other end of a
    pair, or the bridge that a link joins."""
    kind, up, _mtu, _mac, _master, _alias, group = item.fields
    if item.where[0] in SETTABLE:
        return item._replace(fields=(kind, group))
    if kind in ("veth", "bridge", "macvlan"):
        return item._replace(fields=(kind, up, group))
    return item
