"""Chains that others have in the way of a packet, and what they do to it.

A packet has to get past every chain at its hooks, whoever made it: what ours accepts, another may
drop. Rules are looked at as `nft -j` tells them. Whether one matches may not be told from what is
known of the packet; where that could let it pass, the chain is taken to let it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from ipaddress import ip_address, ip_network
from typing import Any

from holdfast.dataclass import dataclass, field

FILTER, NAT = "filter", "nat"
_DEEPEST = 16  # jumps; the kernel takes no more either
_FAMILIES = {4: ("ip", "inet"), 6: ("ip6", "inet")}
# Statements that decide nothing.
_HARMLESS = ("counter", "log", "comment", "meter", "quota", "last")
# Headers that only some packets have: nft asks for them before it looks at one of their fields,
# and does not list that it does.
_VERSIONS = {"ip": 4, "icmp": 4, "igmp": 4, "ip6": 6, "icmpv6": 6}
_TRANSPORTS = ("tcp", "udp", "icmp", "icmpv6", "igmp", "sctp", "dccp", "udplite", "esp", "ah")


@dataclass(frozen=True, slots=True)
class ForeignChain:
    """A base chain, and the chains of its table that it may jump to."""

    family: str
    table: str
    name: str
    hook: str
    policy: str  # accept or drop
    chains: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # rules, as lists of JSON
    priority: int = 0
    type: str = FILTER

    def __str__(self) -> str:
        return f"chain {self.name} of table {self.family} {self.table}"


@dataclass(frozen=True, slots=True)
class Packet:
    """What is known of a packet at a chain. Of several values that it may have, a match is told
    only where it is the same for all."""

    version: int
    protocol: str
    known: Mapping[str, tuple[str, ...]]  # by what rules ask for; what is not here is not known


class Fate(Enum):
    DROPPED = "dropped"
    MOVED = "moved"  # to another destination
    PASSES = "passes"  # or may
    RETURNS = "returns"  # to the chain before it, and to the policy from the first


@dataclass(frozen=True, slots=True)
class Outcome:
    fate: Fate
    how: str = ""  # by which rule
    address: str = ""  # where it is moved to; empty: one of the router's
    port: int | None = None  # None: the one it had


_PASSES, _RETURNS = Outcome(Fate.PASSES), Outcome(Fate.RETURNS)
_UNKNOWN = ("other", None)
_Verdict = tuple[str, Any]


def outcome(chain: ForeignChain, packet: Packet) -> Outcome:
    if chain.family not in _FAMILIES[packet.version]:
        return _PASSES
    found = _walk(chain, chain.name, packet, 0)
    if found.fate is not Fate.RETURNS:
        return found
    return Outcome(Fate.DROPPED, "by its policy") if chain.policy == "drop" else _PASSES


def _walk(chain: ForeignChain, name: str, packet: Packet, depth: int) -> Outcome:
    if depth > _DEEPEST:
        return _PASSES
    for number, rule in enumerate(chain.chains.get(name, ()), 1):
        matches, verdict = _rule(rule, packet)
        if matches is False or verdict is None:
            continue
        word, said = verdict
        if word in ("drop", "reject"):
            if matches:
                return Outcome(Fate.DROPPED, f"by rule {number} of chain {name}")
            continue
        if not matches:
            return _PASSES
        if word in ("jump", "goto"):
            found = _walk(chain, str(said["target"]), packet, depth + 1)
            if found.fate is not Fate.RETURNS or word == "goto":
                return found
            continue
        if word in ("dnat", "redirect"):
            return _moved(said or {}, f"by rule {number} of chain {name}")
        # It returns, accepts, or does what is not known here.
        return _RETURNS if word == "return" else _PASSES
    return _RETURNS


def _moved(said: Mapping[str, Any], how: str) -> Outcome:
    """Not where the destination is one of several: ours may be among them."""
    address, port = said.get("addr", ""), said.get("port")
    if isinstance(address, str) and (port is None or isinstance(port, int)):
        return Outcome(Fate.MOVED, how, address, port)
    return _PASSES


def _rule(rule: Sequence[Any], packet: Packet) -> tuple[bool | None, _Verdict | None]:
    """Whether it matches (None: that cannot be told), and what it does then."""
    matches: bool | None = True
    closed = False  # something of xtables is in it, which may be a match or what the rule does
    for statement in rule:
        if not isinstance(statement, dict) or len(statement) != 1:
            return None, _UNKNOWN
        ((word, said),) = statement.items()
        if word == "match":
            single = _match(said, packet)
            if single is False:
                return False, None
            matches = matches and single
        elif word in ("accept", "drop", "reject", "return", "jump", "goto", "dnat", "redirect"):
            return matches, (word, said)
        elif word == "vmap":
            single, verdict = _verdict_by_map(said, packet)
            return (single if single is not True else matches), verdict
        elif word in ("limit", "xt"):
            matches = None
            closed |= word == "xt"
        elif word not in _HARMLESS and not _only_marks(word, said):
            return None, _UNKNOWN
    return matches, _UNKNOWN if closed else None


def _only_marks(word: str, said: Any) -> bool:
    return word == "mangle" and not {"meta", "ct"}.isdisjoint(said["key"])


def _verdict_by_map(said: Mapping[str, Any], packet: Packet) -> tuple[bool | None, _Verdict | None]:
    known = _known(said["key"], packet)
    members = said["data"].get("set") if isinstance(said["data"], dict) else None
    if not known or members is None:
        return None, _UNKNOWN
    verdicts = []
    for value in known:
        held = [(_holds(right, value), verdict) for right, verdict in members]
        if any(holds is None for holds, _ in held):
            return None, _UNKNOWN
        verdicts.append(next((verdict for holds, verdict in held if holds), None))
    first = verdicts[0]
    if any(verdict != first for verdict in verdicts):
        return None, _UNKNOWN
    if first is None:
        return False, None
    ((word, target),) = first.items()
    return True, (word, target)


def _match(said: Mapping[str, Any], packet: Packet) -> bool | None:
    if _of_others(said["left"], packet):
        return False
    known = _known(said["left"], packet)
    if not known:
        return None
    found = {_holds(said["right"], value) for value in known}
    if None in found or len(found) > 1:
        return None
    (holds,) = found
    return holds if said["op"] in ("==", "in") else not holds if said["op"] == "!=" else None


def _of_others(left: Any, packet: Packet) -> bool:
    """Whether a rule looks into a header that the packet does not have."""
    protocol = left.get("payload", {}).get("protocol", "") if isinstance(left, dict) else ""
    other_version = _VERSIONS.get(protocol, packet.version) != packet.version
    return other_version or (protocol in _TRANSPORTS and protocol != packet.protocol)


def _known(left: Any, packet: Packet) -> tuple[str, ...]:
    """The values of what a rule asks for; none where they are not known."""
    if not isinstance(left, dict) or len(left) != 1:
        return ()
    ((kind, about),) = left.items()
    if not isinstance(about, dict):
        return ()
    match kind, about.get("protocol", ""), about.get("key", about.get("field", "")):
        case "meta", _, "iifname" | "iif":
            return packet.known.get("iifname", ())
        case ("meta", _, "l4proto") | ("payload", "ip", "protocol") | ("payload", "ip6", "nexthdr"):
            return (packet.protocol,)
        case "meta", _, "nfproto":
            return (f"ipv{packet.version}",)
        case "meta", _, "protocol":
            return ("ip" if packet.version == 4 else "ip6",)
        case "payload", "ip" | "ip6", "daddr":
            return packet.known.get("daddr", ())
        case "payload", "tcp" | "udp" | "th", "dport":
            return packet.known.get("dport", ())
        case "ct", _, "state" | "status" as key:
            return packet.known.get(f"ct {key}", ())
        case "fib", _, _ if about.get("result") == "type" and about.get("flags") == ["daddr"]:
            return packet.known.get("fib daddr", ())
    return ()


def _holds(right: Any, value: str) -> bool | None:
    """Whether a value is the one, or among those, that a rule names."""
    match right:
        case {"set": list(members)} | {"|": list(members)}:
            return _any(members, value)
        case list():
            return _any(right, value)
        case {"range": [low, high]}:
            if not value.isdecimal():
                return None
            return int(low) <= int(value) <= int(high)
        case {"prefix": {"addr": addr, "len": length}}:
            return ip_address(value) in ip_network(f"{addr}/{length}", strict=False)
        case str() if right.startswith("@"):
            return None
        case str() if right.endswith("*"):
            return value.startswith(right[:-1])
        case str() | int():
            return str(right) == value
    return None


def _any(members: Sequence[Any], value: str) -> bool | None:
    found = [_holds(member, value) for member in members]
    return True if True in found else None if None in found else False
