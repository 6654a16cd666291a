"""Attributes that a prefix is advertised with, and the route-map that gives them.

A map is known by its content: `HF-` and a digest of its lines. It is shared by all that have these
attributes, and never changed: another attribute is another map (an edit takes FRR five seconds, and
a map of its own for each prefix takes half a minute of processor time on 8.4). So the name tells
which attributes are meant, and that Holdfast made what names it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from holdfast.dataclass import dataclass

PREFIX = "HF-"
_NAME = re.compile(r"HF-(?:[A-Za-z0-9_.-]+-)?[0-9a-f]{16}")

# As FRR 8.4 and 10.3 write them. "internet" is none: 8.4 takes it for every route, 10.3 not at all.
WELL_KNOWN = {
    "graceful-shutdown": 0xFFFF0000,
    "accept-own": 0xFFFF0001,
    "route-filter-translated-v4": 0xFFFF0002,
    "route-filter-v4": 0xFFFF0003,
    "route-filter-translated-v6": 0xFFFF0004,
    "route-filter-v6": 0xFFFF0005,
    "llgr-stale": 0xFFFF0006,
    "no-llgr": 0xFFFF0007,
    "accept-own-nexthop": 0xFFFF0008,
    "blackhole": 0xFFFF029A,
    "no-export": 0xFFFFFF01,
    "no-advertise": 0xFFFFFF02,
    "local-AS": 0xFFFFFF03,
    "no-peer": 0xFFFFFF04,
}
_SAID = {number: name for name, number in WELL_KNOWN.items()}


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is set; None and () are not set, and zero is zero.

    Canonical, as FRR reads back: use `communities` and `large_communities`.
    """

    local_preference: int | None = None
    med: int | None = None
    communities: tuple[str, ...] = ()
    large_communities: tuple[str, ...] = ()
    extended_communities: tuple[str, ...] = ()  # "rt 65001:1", "soo 65001:1", as they were given
    next_hop: str = ""  # a canonical address
    prepend: tuple[int, ...] = ()  # what is put before the path, the first outermost

    def lines(self) -> tuple[str, ...]:
        """The lines of the map below `route-map NAME permit 10`, as FRR writes them, in the order
        of this list. FRR keeps its own order: compare sorted."""
        found = []
        if self.local_preference is not None:
            found.append(f"set local-preference {self.local_preference}")
        if self.med is not None:
            found.append(f"set metric {self.med}")
        if self.communities:
            found.append(f"set community {' '.join(self.communities)}")
        if self.large_communities:
            found.append(f"set large-community {' '.join(self.large_communities)}")
        for word in ("rt", "soo"):
            values = [
                said.partition(" ")[2]
                for said in self.extended_communities
                if said.startswith(f"{word} ")
            ]
            if values:
                found.append(f"set extcommunity {word} {' '.join(values)}")
        if self.next_hop:
            # `set ip next-hop` says nothing of an IPv6 prefix.
            command = "ipv6 next-hop global" if ":" in self.next_hop else "ip next-hop"
            found.append(f"set {command} {self.next_hop}")
        if self.prepend:
            found.append(f"set as-path prepend {' '.join(map(str, self.prepend))}")
        return tuple(found)

    @property
    def map_name(self) -> str:
        return name_of(self.lines())


NO_ATTRIBUTES = Attributes()


def name_of(lines: Iterable[str], readable: str = "") -> str:
    """The name of what has these lines, in whatever order: `HF-0123456789abcdef`."""
    digest = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]
    return f"{PREFIX}{readable}-{digest}" if readable else f"{PREFIX}{digest}"


def ours(name: str) -> bool:
    """Whether a map or list has a name that Holdfast gives. Whether it is what it says, only its
    content tells."""
    return _NAME.fullmatch(name) is not None


def attributes_of(lines: Sequence[str]) -> Attributes:
    """The inverse of `lines`; ValueError where one of them is none of ours."""
    found: dict[str, object] = {}
    extended: list[str] = []
    for line in lines:
        match line.split():
            case ["set", "local-preference", number]:
                found["local_preference"] = int(number)
            case ["set", "metric", number]:
                found["med"] = int(number)
            case ["set", "community", *values]:
                found["communities"] = communities(values)
            case ["set", "large-community", *values]:
                found["large_communities"] = large_communities(values)
            case ["set", "extcommunity", "rt" | "soo" as word, *values]:
                extended += (f"{word} {value}" for value in values)
            case ["set", "ip", "next-hop", address]:
                found["next_hop"] = address
            case ["set", "ipv6", "next-hop", "global", address]:
                found["next_hop"] = address
            case ["set", "as-path", "prepend", *numbers]:
                found["prepend"] = tuple(map(int, numbers))
            case _:
                raise ValueError(f"no attribute: {line!r}")
    return Attributes(**found, extended_communities=tuple(extended))  # type: ignore[arg-type]  # from the match


def community_number(text: str) -> int:
    """Of `65001:100`, of a name (`no-export`), of a plain number; ValueError says what is wrong."""
    if text in WELL_KNOWN:
        return WELL_KNOWN[text]
    high, colon, low = text.partition(":")
    parts = (high, low) if colon else (text,)
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError("is no community: write two numbers (65001:100) or a name (no-export)")
    if not colon:
        if not 0 < int(text) <= 0xFFFFFFFF:
            raise ValueError("must be from 1 to 4294967295")
        return int(text)
    if max(int(high), int(low)) > 0xFFFF:
        raise ValueError(
            "has a number above 65535: a large community (65536:1:100) has room for it"
        )
    if not int(high) and not int(low):
        raise ValueError("is no community: FRR takes it for every route, or for none")
    return int(high) << 16 | int(low)


def community(number: int) -> str:
    """As FRR writes it."""
    return _SAID.get(number, f"{number >> 16}:{number & 0xFFFF}")


def communities(said: Iterable[str]) -> tuple[str, ...]:
    """Canonical: each once, by number, as FRR keeps them."""
    return tuple(map(community, sorted(set(map(community_number, said)))))


def large_community(text: str) -> tuple[int, int, int]:
    """ValueError says what is wrong."""
    parts = text.split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError("is no large community: write three numbers (65001:1:100)")
    first, second, third = map(int, parts)
    if max(first, second, third) > 0xFFFFFFFF:
        raise ValueError("has a number above 4294967295")
    return first, second, third


def large_communities(said: Iterable[str]) -> tuple[str, ...]:
    found = sorted(set(map(large_community, said)))
    return tuple(":".join(map(str, numbers)) for numbers in found)
