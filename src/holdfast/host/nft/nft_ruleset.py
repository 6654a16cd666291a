"""The kernel's nftables ruleset, read over netlink: tables, and digests of what is in them.

A digest says whether a table is still what it was, and nothing else, so nothing is translated:
what the kernel tells of rules, chains, sets, elements and objects counts as it stands, less what
nobody declared: handles, numbers of uses, and the state of counters and the like.
"""

from __future__ import annotations

import errno
import hashlib
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from holdfast.dataclass import dataclass
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import Dump
from holdfast.host.netlink.socket import (
    NETFILTER,
    NetlinkError,
    NetlinkSocket,
    Request,
    Transport,
    open_transport,
)
from holdfast.host.nft import nft_rules

# The families of tables, from linux/netfilter.h.
FAMILIES = {"inet": 1, "ip": 2, "arp": 3, "netdev": 5, "bridge": 7, "ip6": 10}
_FAMILY_NAMES = {number: name for name, number in FAMILIES.items()}

# Messages, from linux/netfilter/nf_tables.h; subsystem 10 of netfilter's netlink.
_SUBSYSTEM = 10 << 8
_GET_TABLE, _GET_CHAIN, _GET_RULE, _GET_SET = 1, 4, 7, 10
_GET_ELEMENT, _GET_GENERATION, _GET_OBJECT, _GET_FLOWTABLE = 13, 16, 19, 23

_TABLE_NAME, _TABLE_FLAGS, _TABLE_HANDLE, _TABLE_USERDATA = 1, 2, 4, 6
_CHAIN_TABLE = 1
_RULE_TABLE = 1
SET_NAME, _SET_FLAGS = 2, 3
_ELEMENT_TABLE, _ELEMENT_SET, _ELEMENTS, _LIST_ELEMENT = 1, 2, 3, 1
OBJECT_TYPE, _OBJECT_DATA = 3, 4
_GENERATION_ID = 1
# What was declared of each. What a later kernel may come to tell of them is not among it.
CHAIN_DECLARED = {1, 3, 4, 5, 7, 10, 12}
SET_DECLARED = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15}
_OBJECT_DECLARED = {1, 2, 3, 8}
FLOWTABLE_DECLARED = {1, 2, 3, 7}
_ELEMENT_DECLARED = {1, 2, 3, 6, 9, 10}  # not its counters, for one
_ELEMENT_TIMEOUT, _ELEMENT_EXPIRATION = 4, 5
# What changes by itself in the data of objects: all that a counter counts, and how much of a quota
# is used up.
_OBJECT_STATE = {1: {1, 2}, 2: {4}}
# Flags of a set. One made for a single rule cannot be changed, and its handle, which is given
# once, stands for its elements: another such set may come by its name. One with EVAL is filled by
# packets.
ANONYMOUS, _EVAL = 0x1, 0x20
_SET_HANDLE = 16

_COMMENT = 0  # in the user data of a table, as libnftnl packs it
HEADER = 4  # family, version, and the low bits of the generation
_NLA = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF
_TRIES = 8
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Table:
    family: str
    name: str
    handle: int
    flags: bytes
    comment: str


class NoNftables(DriverError):  # noqa: N818 - it is an answer, not an error
    """The kernel has no nf_tables, hence no tables, and that is known."""


def connect() -> NetlinkSocket:
    open_: Callable[[], Transport] = partial(open_transport, NETFILTER)
    return NetlinkSocket(open_)


class Listing(NamedTuple):
    """What a table is made of. Two that differ in the generation alone are of the same table,
    unchanged."""

    inner: str  # its rules, sets, elements and objects: only transactions change them
    outer: str  # itself, its chains and flowtables: a link that goes takes its hooks along
    generation: int = -1

    def __str__(self) -> str:
        return f"{self.inner} {self.outer} {self.generation}"

    @classmethod
    def parse(cls, text: str) -> Listing:
        inner, _, rest = text.partition(" ")
        outer, _, generation = rest.partition(" ")
        return cls(inner, outer, int(generation) if generation.isdecimal() else -1)

    def same(self, other: Listing) -> bool:
        return self[:2] == other[:2]


class Ruleset:
    def __init__(self, sock: NetlinkSocket) -> None:
        self._sock = sock
        self._inner: dict[int, str] = {}  # by handle of a table, of this generation
        self._generation = -1

    def close(self) -> None:
        self._sock.close()

    def generation(self) -> int:
        """Every transaction makes the next one, whoever it is of."""
        answer = self._sock.get(Request(_SUBSYSTEM | _GET_GENERATION, 0, bytes(HEADER)))
        if isinstance(answer, NetlinkError):
            said = f"cannot read the nftables generation: {answer}"
            if answer.errno == errno.EINVAL:  # netfilter has no such subsystem
                raise NoNftables(said)
            raise DriverError(said, answer.errno)
        found = attributes.parse(answer, HEADER)
        return int.from_bytes(found[_GENERATION_ID], "big")

    def is_next(self, before: int) -> bool:
        """Is a transaction of ours the only one since a generation? Then what is known of tables
        that it did not name still holds."""
        if self.generation() != before + 1:
            return False
        if self._generation == before:
            self._generation = before + 1
        return True

    def read(
        self,
        listed: Callable[[Table], bool],
        known: Callable[[Table], Listing | None] = lambda _table: None,
    ) -> tuple[int, list[Table], dict[int, Listing]]:
        """One generation: its tables, and by handle the listing of each one asked for.

        known: a listing of some generation. Of the same generation, what is in it is not read.
        """
        for _ in range(_TRIES):
            before = self.generation()
            try:
                found = self._dump(_GET_TABLE, "unspec", "nftables tables")
                tables = [_table(body) for body in found.bodies()]
                wanted = [table for table in tables if listed(table)]
                listings = {
                    table.handle: self._list(table, before, known(table)) for table in wanted
                }
            except DriverError as error:
                if error.code != errno.ENOENT:
                    raise
                continue  # a set that was there when the sets were read
            if not wanted or self.generation() == before:
                return before, tables, listings
        raise DriverError(
            "cannot read the nftables ruleset: others changed it while it was read,"
            f" {_TRIES} times in a row"
        )

    def _list(self, table: Table, generation: int, known: Listing | None) -> Listing:
        outer = hashlib.sha256(table.flags)
        for body in self.chains(table):
            add(outer.update, declared(body, CHAIN_DECLARED))
        for body in self.flowtables(table):
            add(outer.update, declared(body, FLOWTABLE_DECLARED))
        if generation != self._generation:
            self._generation, self._inner = generation, {}
        if known is not None and known.generation == generation:
            self._inner.setdefault(table.handle, known.inner)
        inner = self._inner.get(table.handle)
        if inner is None:
            inner = self._inner[table.handle] = self._read_inner(table)
        return Listing(inner, outer.hexdigest()[:_DIGITS], generation)

    def _read_inner(self, table: Table) -> str:
        digest = hashlib.sha256()
        digest.update(self._read_rules(table))
        for body in self.sets(table):
            found = attributes.parse(body, HEADER)
            if set_flags(found) & ANONYMOUS:
                elements = found[_SET_HANDLE]
            else:
                elements = b"".join(self.elements(table, found))
            add(digest.update, [*declared(body, SET_DECLARED), elements])
        for body in self.objects(table):
            add(digest.update, object_settings(body))
        return digest.hexdigest()[:_DIGITS]

    def _read_rules(self, table: Table) -> bytes:
        """A few at a time: a process of short life pays for every page that it is the first to
        write on."""
        digest = hashlib.sha256()
        for part in nft_rules.declared(self.rules(table).runs):
            digest.update(part)
        return digest.digest()

    def chains(self, table: Table) -> list[bytes]:
        """The kernel answers with those of all tables."""
        name = table.name.encode() + b"\0"
        bodies = self._dump(_GET_CHAIN, table.family, "nftables chains").bodies()
        return [body for body in bodies if attributes.parse(body, HEADER)[_CHAIN_TABLE] == name]

    def rules(self, table: Table) -> Dump:
        return self._of(table, _GET_RULE, "rules")

    def sets(self, table: Table) -> Iterable[bytes]:
        return self._of(table, _GET_SET, "sets").bodies()

    def objects(self, table: Table) -> Iterable[bytes]:
        return self._of(table, _GET_OBJECT, "objects").bodies()

    def flowtables(self, table: Table) -> Iterable[bytes]:
        return self._of(table, _GET_FLOWTABLE, "flowtables").bodies()

    def elements(self, table: Table, found: Mapping[int, bytes]) -> list[bytes]:
        """Of a set of these attributes, less those that packets put into it. Sorted: a hash table
        that grows tells them in another order."""
        if set_flags(found) & _EVAL:
            return []
        name = found[SET_NAME]
        header = attributes.text(_ELEMENT_TABLE, table.name)
        header += attributes.attribute(_ELEMENT_SET, name)
        elements: list[bytes] = []
        what = f"nftables set {attributes.to_text(name)} of table {table.family} {table.name}"
        for body in self._dump(_GET_ELEMENT, table.family, what, header).bodies():
            elements += _lasting_elements(attributes.parse(body, HEADER).get(_ELEMENTS, b""))
        elements.sort()
        return elements

    def _of(self, table: Table, message: int, what: str) -> Dump:
        header = attributes.text(_RULE_TABLE, table.name)  # the same number in each of them
        what = f"nftables {what} of table {table.family} {table.name}"
        return self._dump(message, table.family, what, header)

    def _dump(self, message: int, family: str, what: str, header: bytes = b"") -> Dump:
        start = bytes((FAMILIES.get(family, 0), 0, 0, 0))
        return self._sock.dump_runs(_SUBSYSTEM | message, start + header, what)


def _table(body: bytes) -> Table:
    found = attributes.parse(body, HEADER)
    return Table(
        _FAMILY_NAMES.get(body[0], str(body[0])),
        attributes.to_text(found[_TABLE_NAME]),
        int.from_bytes(found[_TABLE_HANDLE], "big"),
        found.get(_TABLE_FLAGS, b""),
        _comment(found.get(_TABLE_USERDATA, b"")),
    )


def _comment(userdata: bytes) -> str:
    at = 0
    while at + 2 <= len(userdata):
        kind, length = userdata[at], userdata[at + 1]
        if kind == _COMMENT:
            return attributes.to_text(userdata[at + 2 : at + 2 + length])
        at += 2 + length
    return ""


def set_flags(found: Mapping[int, bytes]) -> int:
    return int.from_bytes(found.get(_SET_FLAGS, b""), "big")


def add(update: Callable[[bytes], None], parts: list[bytes]) -> None:
    """Each with its length, so that no two lists of parts look the same."""
    update(b"%d" % len(parts))
    for part in parts:
        update(b",%d:" % len(part) + part)


def _walk(data: bytes, offset: int = 0) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of every attribute, header included."""
    end = len(data)
    while offset + 4 <= end:
        length, kind = _NLA.unpack_from(data, offset)
        if length < 4:
            return
        yield kind & _TYPE_MASK, offset, offset + length
        offset += (length + 3) & ~3


def declared(body: bytes, kinds: Collection[int]) -> list[bytes]:
    return [body[start:end] for kind, start, end in _walk(body, HEADER) if kind in kinds]


def _lasting_elements(nest: bytes) -> Iterator[bytes]:
    """Of each element what was declared of it. Those with a timeout go by themselves."""
    alike = _alike(nest)
    if alike:
        yield from (nest[at : at + alike] for at in range(0, len(nest), alike))
        return
    for _, start, end in _walk(nest):
        parts = list(_walk(nest[:end], start + 4))
        if not {kind for kind, _, _ in parts} & {_ELEMENT_TIMEOUT, _ELEMENT_EXPIRATION}:
            kept = [nest[a:b] for kind, a, b in parts if kind in _ELEMENT_DECLARED]
            length = 4 + sum(map(len, kept))
            yield b"".join((_NLA.pack(length, _LIST_ELEMENT), *kept))


def _alike(nest: bytes) -> int:
    """The size of an element where all are of one shape and nothing in them changes by itself, as
    in most sets; 0 where not. Asked of all at once, by the bytes that make up the shape."""
    if len(nest) < 4:
        return 0
    length, _ = _NLA.unpack_from(nest)
    parts = list(_walk(nest[:length], 4))
    count, rest = divmod(len(nest), length)
    if rest or length % 4 or not all(kind in _ELEMENT_DECLARED for kind, _, _ in parts):
        return 0
    shape = [at for start in (0, *(a for _, a, _ in parts)) for at in range(start, start + 4)]
    same = all(nest[at::length] == nest[at : at + 1] * count for at in shape)
    return length if same else 0


def object_settings(body: bytes) -> list[bytes]:
    found = attributes.parse(body, HEADER)
    state = _OBJECT_STATE.get(int.from_bytes(found[OBJECT_TYPE], "big"), set())
    data = found.get(_OBJECT_DATA, b"")
    settings = [data[start:end] for kind, start, end in _walk(data) if kind not in state]
    return declared(body, _OBJECT_DECLARED) + settings
