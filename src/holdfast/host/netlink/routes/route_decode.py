"""Dumped routes taken apart: fast where there are many of them, whole where one is looked at."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.kinds.route import Nexthop, RouteTemplate
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import HEADER, Dump, Run
from holdfast.host.netlink.routes.route_codec import (
    ADDRESS_FAMILY,
    DEFAULT_KEY,
    DST_END,
    HEAD,
    NEXTHOP,
    ONLINK,
    RTA_CACHEINFO,
    RTA_DST,
    RTA_GATEWAY,
    RTA_METRICS,
    RTA_MULTIPATH,
    RTA_NH_ID,
    RTA_OIF,
    RTA_PREF,
    RTA_PREFSRC,
    RTA_PRIORITY,
    RTA_SRC,
    RTA_TABLE,
    RTA_VIA,
    RTAX_LOCK,
    RTAX_MTU,
    RTMSG,
    TYPES,
    OddTemplate,
    address_text,
)

_METRICS = {
    3: "window", 4: "rtt", 5: "rttvar", 6: "ssthresh", 7: "cwnd", 8: "advmss", 9: "reordering",
    10: "hoplimit", 11: "initcwnd", 12: "features", 13: "rto_min", 14: "initrwnd", 15: "quickack",
    16: "congctl", 17: "fastopen_no_cookie",
}  # fmt: skip
_NAMES = {11: "realm", 21: "encap type", 22: "encap", 26: "ttl-propagate"}
_KNOWN = frozenset(
    {
        RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC, RTA_METRICS,
        RTA_MULTIPATH, RTA_CACHEINFO, RTA_TABLE, RTA_VIA, RTA_PREF, RTA_NH_ID,
    }
)  # fmt: skip
_CLONED = 0x200
_EXPIRES = slice(8, 12)  # of RTA_CACHEINFO
_PRIORITY_HEADER = attributes.u32(RTA_PRIORITY, 0)[:4]
_STEADY_FLAGS = frozenset(flags.to_bytes(4, sys.byteorder) for flags in (0, ONLINK))


def family_of(body: bytes) -> int:
    return 4 if body[0] == ADDRESS_FAMILY[4] else 6


def protocol_of(body: bytes) -> int:
    return body[5]


def is_cloned(body: bytes) -> bool:
    """Did the kernel make it of another for one destination?"""
    return bool(attributes.to_int(body[8:12]) & _CLONED)


def table_of(body: bytes) -> int:
    found = attributes.parse(body, RTMSG.size)
    return attributes.to_int(found[RTA_TABLE]) if RTA_TABLE in found else body[4]


def metric_of(body: bytes) -> int:
    return attributes.to_int(attributes.parse(body, RTMSG.size).get(RTA_PRIORITY, b""))


def key_of(body: bytes) -> bytes:
    family = family_of(body)
    return body[1:2] + body[HEAD + 4 : DST_END[family]] if body[1] else DEFAULT_KEY[family]


def keys_of(bodies: Iterable[bytes], family: int) -> set[bytes]:
    first, end, default = HEAD + 4, DST_END[family], DEFAULT_KEY[family]
    return {body[1:2] + body[first:end] if body[1] else default for body in bodies}


def select(bodies: Iterable[bytes], family: int, keys: set[bytes]) -> list[bytes]:
    """The routes to certain destinations, out of very many."""
    first, end, default = HEAD + 4, DST_END[family], DEFAULT_KEY[family]
    return [
        body for body in bodies if (body[1:2] + body[first:end] if body[1] else default) in keys
    ]


def pick(dump: Dump, family: int, keys: set[bytes]) -> list[bytes]:
    """The same of a dump, without an object for each of its routes."""
    found: list[bytes] = []
    for run in dump.runs:
        lengths = run.data[run.start + HEADER.size + 1 : run.end : run.stride]
        # An address that is found may be a gateway's, or across two messages.
        if any(key[0] in lengths and (not key[0] or key[1:] in run.data) for key in keys):
            found += select(run.bodies(), family, keys)
    return found


def carried(dump: Dump, protocols: Collection[int]) -> tuple[Dump, Dump]:
    """Those of a dump with one of these protocols, and all others, without an object for each."""
    with_one: list[Run] = []
    others: list[Run] = []
    wanted = bytes(protocols)
    for run in dump.runs:
        column = run.data[run.start + HEADER.size + 5 : run.end : run.stride]
        if not column.strip(wanted):
            with_one.append(run)
            continue
        start = run.start
        for is_wanted, members in itertools.groupby(column, wanted.__contains__):
            part = replace(run, start=start, count=len(list(members)))
            (with_one if is_wanted else others).append(part)
            start = part.end
    return Dump(with_one), Dump(others)


def keys_without_metric(bodies: Iterable[bytes]) -> set[bytes]:
    """Of IPv4 routes, the destinations of those of metric 0: RTA_PRIORITY would follow RTA_DST."""
    first, end, default = HEAD + 4, DST_END[4], DEFAULT_KEY[4]
    return {
        body[1:2] + body[first:end] if body[1] else default
        for body in bodies
        if (body[end : end + 4] if body[1] else body[HEAD : HEAD + 4]) != _PRIORITY_HEADER
    }


def settle(bodies: list[bytes], family: int) -> list[bytes]:
    """Bodies without what the kernel says of the moment: link down, dead, offloaded, trapped.

    Looks at the few distinct heads and tails first; routes are rewritten only where one has it.
    """
    end = DST_END[family]
    moving = any(head[8:] not in _STEADY_FLAGS for head in {body[:12] for body in bodies})
    tails = {body[end:] for body in bodies if body[1]}
    tails.update(body[HEAD:] for body in bodies if not body[1])
    settled = {tail: _settle_legs(tail) for tail in tails}
    if not moving and all(tail is same for tail, same in settled.items()):
        return bodies
    flags = {on: on.to_bytes(4, sys.byteorder) for on in (0, ONLINK)}
    found = []
    for body in bodies:
        at = end if body[1] else HEAD
        on = int.from_bytes(body[8:12], sys.byteorder) & ONLINK
        found.append(body[:8] + flags[on] + body[12:at] + settled[body[at:]])
    return found


def _settle_legs(tail: bytes) -> bytes:
    """The tail with the flags of its multipath legs masked; the same object if that is nothing."""
    offset = 0
    while offset + 4 <= len(tail):
        length = attributes.to_int(tail[offset : offset + 2])
        if attributes.to_int(tail[offset + 2 : offset + 4]) & 0x3FFF == RTA_MULTIPATH:
            changed = bytearray(tail)
            for leg in _leg_offsets(tail, offset + 4, offset + length):
                changed[leg + 2] &= ONLINK
            return tail if changed == tail else bytes(changed)
        if length < 4:
            break
        offset += (length + 3) & ~3
    return tail


def _leg_offsets(data: bytes, offset: int, end: int) -> Iterator[int]:
    while offset + 8 <= end:
        length = attributes.to_int(data[offset : offset + 2])
        if length < 8:
            return
        yield offset
        offset += (length + 3) & ~3


@dataclass(slots=True)
class Reader:
    """Reads bodies as templates and keys. Routes that share a template share the object."""

    names: Mapping[int, str]
    former: frozenset[int] = frozenset()  # tags of before, which templates have to tell
    _templates: dict[bytes, RouteTemplate] = field(default_factory=dict)

    def read(self, body: bytes) -> tuple[RouteTemplate, bytes]:
        """An OddTemplate stands for what no RouteTemplate can say."""
        at = DST_END[family_of(body)] if body[1] else HEAD
        shared = body[:1] + body[2:HEAD] + body[at:]
        found = self._templates.get(shared)
        if found is None:
            found = self._templates[shared] = self._template(body)
        return found, key_of(body)

    def group(self, bodies: Iterable[bytes]) -> dict[RouteTemplate, list[bytes]]:
        """The keys of very many routes by their template."""
        groups: dict[RouteTemplate, list[bytes]] = {}
        last, keys = None, []
        for body in bodies:
            shared, key = self.read(body)
            if shared is not last:  # to hash a template costs more than all the rest
                last, keys = shared, groups.setdefault(shared, [])
            keys.append(key)
        return groups

    def _template(self, body: bytes) -> RouteTemplate:
        _, _, source_length, tos, table, _, _, kind, flags = RTMSG.unpack_from(body)
        family = family_of(body)
        found = attributes.parse(body, 12)
        type_name = TYPES.get(kind, "unicast")
        shared = RouteTemplate(
            family,
            attributes.to_int(found[RTA_TABLE]) if RTA_TABLE in found else table,
            attributes.to_int(found.get(RTA_PRIORITY, b"")),
            type_name,
            # An IPv6 route that leads nowhere is dumped with the loopback link.
            () if family == 6 and type_name in _NOWHERE else self._nexthops(found, flags),
            address_text(found[RTA_PREFSRC]) if RTA_PREFSRC in found else "",
            attributes.to_int(attributes.parse(found.get(RTA_METRICS, b"")).get(RTAX_MTU, b"")),
            " ".join(_other(found)),
            protocol_of(body) if protocol_of(body) in self.former else 0,
        )
        nhid = attributes.to_int(found.get(RTA_NH_ID, b""))
        if not (tos or source_length or nhid):
            return shared
        source = bytes((source_length,)) + found.get(RTA_SRC, b"") if source_length else b""
        return OddTemplate(
            shared.family,
            shared.table,
            shared.metric,
            shared.type,
            shared.nexthops,
            shared.prefsrc,
            shared.mtu,
            shared.other,
            shared.protocol,
            tos,
            source,
            nhid,
        )

    def _nexthops(self, found: Mapping[int, bytes], flags: int) -> tuple[Nexthop, ...]:
        if RTA_MULTIPATH in found:
            data = found[RTA_MULTIPATH]
            legs = []
            for offset in _leg_offsets(data, 0, len(data)):
                length, leg_flags, hops, index = NEXTHOP.unpack_from(data, offset)
                inner = attributes.parse(data[offset + 8 : offset + length])
                legs.append(self._nexthop(inner, index, hops + 1, leg_flags))
            return tuple(legs)
        index = attributes.to_int(found.get(RTA_OIF, b""))
        if not index and RTA_GATEWAY not in found and RTA_VIA not in found:
            return ()
        return (self._nexthop(found, index, 1, flags),)

    def _nexthop(self, found: Mapping[int, bytes], index: int, weight: int, flags: int) -> Nexthop:
        gateway = found.get(RTA_GATEWAY) or found.get(RTA_VIA, b"")[2:]
        return Nexthop(
            address_text(gateway) if gateway else "",
            self.names.get(index, f"if{index}") if index else "",
            weight,
            bool(flags & ONLINK),
        )


def _other(found: Mapping[int, bytes]) -> Iterator[str]:
    """What a route says besides what a declared one can, as `ip` would."""
    for kind, value in sorted(attributes.parse(found.get(RTA_METRICS, b"")).items()):
        if kind == RTAX_LOCK:
            yield f"lock {attributes.to_int(value):#x}"
        elif kind != RTAX_MTU:
            yield f"{_METRICS.get(kind, f'metric {kind}')} {attributes.to_int(value)}"
    if any(found.get(RTA_CACHEINFO, b"")[_EXPIRES]):
        yield "expires"  # another number each time it is looked at
    if any(found.get(RTA_PREF, b"")):
        yield f"pref {attributes.to_int(found[RTA_PREF])}"
    legs = found.get(RTA_MULTIPATH, b"")
    said = [found]
    for offset in _leg_offsets(legs, 0, len(legs)):
        length = attributes.to_int(legs[offset : offset + 2])
        said.append(attributes.parse(legs[offset + 8 : offset + length]))
    for kind, value in sorted(item for one in said for item in one.items()):
        if kind not in _KNOWN:
            yield f"{_NAMES.get(kind, f'attribute {kind}')} {value.hex()}"


_NOWHERE = frozenset({"blackhole", "unreachable", "prohibit", "throw"})
