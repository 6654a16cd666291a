"""Rules as the kernel tells and takes them: fib_rule_hdr and its attributes."""

from __future__ import annotations

import ipaddress
import socket
import struct

from holdfast.dataclass import dataclass, replace
from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.kinds.rule import RULE, rule
from holdfast.host.netlink import attributes

_DST, _SRC, _IIFNAME, _GOTO, _PRIORITY, _FWMARK = 1, 2, 3, 4, 6, 10
_SUPPRESS_IFGROUP, _SUPPRESS_PREFIXLEN, _TABLE, _FWMASK, _OIFNAME = 13, 14, 15, 16, 17
_PAD, _L3MDEV, _PROTOCOL = 18, 19, 21
_UNSUPPRESSED = b"\xff" * 4  # said of every rule that suppresses nothing
_INVERT = 2

_ACTIONS = {"lookup": 1, "blackhole": 6, "unreachable": 7, "prohibit": 8}
_ACTION_NAMES = {number: name for name, number in _ACTIONS.items()} | {2: "goto", 3: "nop"}
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_MODELLED = {
    _DST, _SRC, _IIFNAME, _GOTO, _PRIORITY, _FWMARK, _SUPPRESS_PREFIXLEN, _TABLE, _FWMASK,
    _OIFNAME, _PAD, _PROTOCOL,
}  # fmt: skip
_UNMODELLED_NAMES = {
    11: "realms", 12: "tun_id", 13: "suppress_ifgroup",
    19: "l3mdev", 20: "uidrange", 22: "ipproto", 23: "sport", 24: "dport", 25: "dscp",
    26: "flowlabel", 27: "flowlabel_mask", 28: "sport_mask", 29: "dport_mask", 30: "dscp_mask",
}  # fmt: skip

_HEADER = struct.Struct("=BBBBBBBBI")


@dataclass(frozen=True, slots=True)
class SeenRule:
    artifact: Artifact
    protocol: int
    family: int
    priority: int
    body: bytes

    @property
    def key(self) -> Key:
        return self.artifact.key


def decode(body: bytes) -> SeenRule:
    number, dst_len, src_len, tos, table, _r1, _r2, action_number, flags = _HEADER.unpack_from(body)
    found = attributes.parse(body, 12)
    family = 4 if number == socket.AF_INET else 6
    priority = attributes.to_int(found.get(_PRIORITY, b""))
    table = attributes.to_int(found[_TABLE]) if _TABLE in found else table
    action = _ACTION_NAMES.get(action_number, f"action{action_number}")
    if action == "goto":
        action = f"goto {attributes.to_int(found.get(_GOTO, b''))}"
    suppress = found.get(_SUPPRESS_PREFIXLEN, _UNSUPPRESSED)
    # A mark of zero is told by its mask alone.
    marked = _FWMARK in found or _FWMASK in found
    artifact = rule(
        family,
        priority,
        source=_prefix(found.get(_SRC), src_len),
        destination=_prefix(found.get(_DST), dst_len),
        iif=attributes.to_text(found.get(_IIFNAME, b"")),
        oif=attributes.to_text(found.get(_OIFNAME, b"")),
        fwmark=attributes.to_int(found.get(_FWMARK, b"")) if marked else None,
        fwmask=attributes.to_int(found.get(_FWMASK, b"\xff" * 4)),
        action=action,
        table=table,
        suppress=attributes.to_int(suppress) if suppress != _UNSUPPRESSED else None,
    )
    extra = _extra_words(found, tos, flags)
    if action != "lookup" and table:
        extra.append(f"table {table}")
    protocol = attributes.to_int(found.get(_PROTOCOL, b""))
    key = Key(RULE.name, " ".join([artifact.key.name, *extra]))
    seen = replace(artifact, key=key, fields={**artifact.fields, "protocol": protocol})
    return SeenRule(seen, protocol, family, priority, body)


def _prefix(address: bytes | None, length: int) -> str:
    # Unmasked: the kernel keeps host bits and takes the rule for another one than without them.
    return f"{ipaddress.ip_address(address)}/{length}" if address is not None and length else ""


def _extra_words(found: dict[int, bytes], tos: int, flags: int) -> list[str]:
    """What a rule says beyond what Holdfast models; any of it makes it another rule."""
    words = ["not"] if flags & _INVERT else []
    if tos:
        words.append(f"tos {tos:#x}")
    for kind, value in sorted(found.items()):
        plain = kind == _L3MDEV and not any(value)
        if kind not in _MODELLED and not plain:
            words.append(f"{_UNMODELLED_NAMES.get(kind, f'attribute{kind}')} {value.hex()}")
    return words


def besides(rule: SeenRule) -> dict[str, bytes]:
    """The same by name, with its value; `not` has none."""
    tos, flags = rule.body[3], attributes.to_int(rule.body[8:12])
    found = {"not": b""} if flags & _INVERT else {}
    if tos:
        found["tos"] = bytes((tos,))
    for kind, value in attributes.parse(rule.body, 12).items():
        suppresses = kind != _SUPPRESS_IFGROUP or value != _UNSUPPRESSED
        if kind not in _MODELLED and suppresses and (kind != _L3MDEV or any(value)):
            found[_UNMODELLED_NAMES.get(kind, f"attribute{kind}")] = value
    return found


def encode(fields: Fields, tag: int) -> bytes:
    source, destination = str(fields["source"]), str(fields["destination"])
    lengths, parts = [], []
    for kind, prefix in ((_DST, destination), (_SRC, source)):
        network = ipaddress.ip_network(prefix) if prefix else None
        lengths.append(network.prefixlen if network else 0)
        if network and network.prefixlen:
            parts.append(attributes.attribute(kind, network.network_address.packed))
    for kind, name in ((_IIFNAME, fields["iif"]), (_OIFNAME, fields["oif"])):
        if name:
            parts.append(attributes.text(kind, str(name)))
    for kind, value in (
        (_PRIORITY, fields["priority"]),
        (_FWMARK, fields["fwmark"]),
        (_FWMASK, fields["fwmask"]),
    ):
        if isinstance(value, int):
            parts.append(attributes.u32(kind, value))
    action = str(fields["action"])
    if action == "lookup" and isinstance(fields["table"], int):
        parts.append(attributes.u32(_TABLE, fields["table"]))
    suppress = fields.get("suppress")
    if isinstance(suppress, int):
        parts.append(attributes.u32(_SUPPRESS_PREFIXLEN, suppress))
    family = FAMILIES[6 if fields["family"] == 6 else 4]
    header = _HEADER.pack(family, *lengths, 0, 0, 0, 0, _ACTIONS[action], 0)
    return header + b"".join(parts) + attributes.u8(_PROTOCOL, tag)


def delete_body(seen: SeenRule) -> bytes:
    """The rule in the kernel's own words, priority 0 included, which a dump leaves out."""
    found = attributes.parse(seen.body, 12)
    found.setdefault(_PRIORITY, bytes(4))
    found.pop(_PAD, None)
    return seen.body[:12] + b"".join(attributes.attribute(*item) for item in found.items())


def would_hit(target: SeenRule, other: SeenRule) -> bool:
    """Whether a delete that names all of target also fits other.

    The kernel deletes the first rule that fits, and to a delete a selector that is not given fits
    anything: `from all` hits `from 10.0.0.0/8`, and nothing is ever said of `not`.
    """
    if (target.family, target.priority) != (other.family, other.priority):
        return False
    _f, *lengths, _table, _r1, _r2, action, _flags = _HEADER.unpack_from(target.body)
    _f, *other_lengths, _table, _r1, _r2, other_action, _flags = _HEADER.unpack_from(other.body)
    if action != other_action:
        return False
    if any(a and a != b for a, b in zip(lengths, other_lengths, strict=True)):
        return False
    wanted, there = attributes.parse(target.body, 12), attributes.parse(other.body, 12)
    for kind, value in wanted.items():
        if kind in (_SUPPRESS_IFGROUP, _SUPPRESS_PREFIXLEN):
            wildcard = value == _UNSUPPRESSED
        else:
            wildcard = not any(value) or kind == _PAD
        if not wildcard and there.get(kind) != value:
            return False
    return True
