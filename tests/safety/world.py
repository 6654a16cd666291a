"""A router in a namespace of its own: what others do there, what Holdfast does, and whose is what.

Whose an object is, is told by who made it appear: the tag is what is tested.
"""

from __future__ import annotations

import ipaddress
import random
import shutil
import socket
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim, Lasting
from holdfast.engine.intent import Desired
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.host.host import LinuxHost
from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import CREATE, EXCL, REPLACE, NetlinkSocket, Request
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.disks import small_disk
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
_FILTER = "add table inet theirs; add chain inet theirs pass; add rule inet theirs pass accept"
_REFUSALS = ("RTNETLINK answers", "Cannot find device", "Device does not exist")
# The links whose MTU, alias and master Holdfast is told to set.
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


class CountingLedger:
    """A ledger that tells how often it was written."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.claims = ledger.claims
        self.tables = ledger.tables
        self.write_tables = ledger.write_tables
        self.writes = 0

    @property
    def lasting(self) -> Lasting:
        return self._ledger.lasting

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None:
        self.writes += 1
        self._ledger.write_claims(put, remove)


class World:
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
        self.paths = Paths(self.root)
        self.disk = self._stack.enter_context(small_disk(self.paths.state_dir))
        self._held = self._stack.enter_context(ExitStack())
        self.ledger = self._open_ledger()
        self.host = self._stack.enter_context(LinuxHost(self.paths, TAG))
        self.ours: Counter[Item] = Counter()
        self.random = random.Random(0)  # noqa: S311 (marks, no secrets)
        self.namespace.run("nft", _FILTER)
        self._filter = self.namespace.run("nft", "list ruleset")

    def close(self) -> None:
        with self._stack:
            assert self.namespace.run("nft", "list ruleset") == self._filter

    def _open_ledger(self) -> CountingLedger:
        return CountingLedger(self._held.enter_context(Ledger.open(self.paths, command="test")))

    def fill_disk(self) -> None:
        self.disk.fill()

    def free_disk(self) -> None:
        """And another command comes, as it may."""
        self.disk.free()
        self.restart()

    def restart(self) -> None:
        self._held.close()
        self.ledger = self._open_ledger()

    def look(self) -> Snapshot:
        seen = snapshot.take(self.sock)
        seen["link"] = [_settled(item) for item in seen["link"]]
        return seen

    def others(self, *commands: str, version: int = 4) -> None:
        """Others act: whatever is new belongs to them, what is gone is nobody's any more."""
        for command in commands:
            if command.startswith("raw "):
                self._write_address(*command.split()[1:])
            else:
                self.foreign.ip(command, version=version)
        now = _all(self.look())
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

    def others_write(self, path: str, content: bytes | None) -> None:
        place = self.paths.under(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.unlink(missing_ok=True)
        else:
            place.write_bytes(content)

    def start(self, desired: Desired) -> Pass:
        policy = Policy(self.host.epoch, allow_mass_delete=True)
        nonce = lambda: str(self.random.randrange(1, 2**31))  # noqa: E731
        return Pass(desired, self.host, self.ledger, policy, nonce=nonce)

    def reconcile(self, desired: Desired, meanwhile: Callable[[], None] = lambda: None) -> Report:
        """We act: what others made must be as it was, in the order it was in. They may do
        something after our plan was made, too."""
        theirs = self.theirs(self.look())

        def approve(_plan: Plan) -> None:
            nonlocal theirs
            meanwhile()
            theirs = self.theirs(self.look())

        report = self.start(desired).run(approve)
        now = self.look()
        self.ours = _all(now) - _all(theirs)
        assert_same(theirs, self.theirs(now))
        return report

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


def _all(seen: Snapshot) -> Counter[Item]:
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
    if item.where[0] in SETTABLE or kind in ("veth", "bridge", "macvlan"):
        return item._replace(fields=(kind, up, group))
    return item
