"""A daemon's running configuration, as `write terminal` tells it.

    router bgp 65001                      a block: a line, and what is indented below it
     neighbor 192.0.2.2 remote-as 65002
     address-family ipv4 unicast
      network 198.51.100.0/24 route-map HF-0123456789abcdef
     exit-address-family
    exit
    ip prefix-list LAN seq 5 permit …     a line by itself

What is not understood is kept as it stands. Only lines that somebody asks for are ever taken apart:
of 10 000 networks none becomes an object here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from holdfast.dataclass import dataclass, field

DEFAULT_VRF = "default"

_BLOCK = re.compile(r"^([^\s!].*)\n((?: .*\n|\n(?= ))*)", re.MULTILINE)
_ENDS = frozenset(("exit", "end", "exit-vrf"))
_BGP = re.compile(r"router bgp (\S+)(?: vrf (\S+))?")
_FAMILY = re.compile(
    r"^ address-family (.+)\n((?:  .*\n|\n(?= ))*)(?: exit-address-family\n)?", re.M
)
_ROUTE_MAP = re.compile(r"route-map (\S+) (permit|deny) (\d+)")
_NAMED_LIST = re.compile(
    r"((?:ip|ipv6) prefix-list|bgp as-path access-list|bgp (?:large-|ext)?community-list"
    r" (?:standard|expanded)) (\S+) (.+)"
)
_NETWORK = re.compile(r"^  network .*\n", re.M)
_AGGREGATE = re.compile(r"^  aggregate-address (\S+)(.*)\n", re.M)
_NEIGHBOR = re.compile(r"(no )?neighbor (\S+) (.+)")
_LISTEN_RANGE = re.compile(r"bgp listen range (\S+) peer-group (\S+)")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The lines of one peer or group, without `neighbor NAME `; `no …` where FRR says so."""

    lines: tuple[str, ...]
    families: Mapping[str, tuple[str, ...]]  # "ipv4 unicast" -> its lines
    ranges: tuple[str, ...] = ()  # listen ranges of a group

    @property
    def is_group(self) -> bool:
        return "peer-group" in self.lines


@dataclass(frozen=True, slots=True)
class Family:
    """What stands in an address family, but for its neighbours."""

    networks: str = ""  # the lines as they stand
    aggregates: Mapping[str, str] = field(default_factory=dict)  # prefix -> rest of the line
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bgp:
    vrf: str
    local_as: str
    lines: tuple[str, ...]  # those of the whole instance
    neighbours: Mapping[str, Neighbour]
    families: Mapping[str, Family]

    @property
    def header(self) -> str:
        return bgp_header(self.local_as, self.vrf)


@dataclass(frozen=True, slots=True)
class RunningConfig:
    bgp: Mapping[str, Bgp] = field(default_factory=dict)  # by VRF
    # Name -> entries: "permit 10" and the lines below, sorted, as versions order them differently.
    route_maps: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name -> whole lines
    blocks: tuple[tuple[str, tuple[str, ...]], ...] = ()  # all others


def bgp_header(local_as: object, vrf: str = DEFAULT_VRF) -> str:
    return f"router bgp {local_as}" if vrf == DEFAULT_VRF else f"router bgp {local_as} vrf {vrf}"


def parse(text: str) -> RunningConfig:
    """Lines of unknown form stand in `blocks`, or where they were in a block that is known."""
    bgp: dict[str, Bgp] = {}
    maps: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    lists: dict[str, list[str]] = {}
    blocks: list[tuple[str, tuple[str, ...]]] = []
    for match in _BLOCK.finditer(text):
        head, body = match[1].rstrip(), match[2]
        if head in _ENDS:
            continue
        if found := _BGP.fullmatch(head):
            vrf = found[2] or DEFAULT_VRF
            bgp[vrf] = _bgp(vrf, found[1], body)
        elif found := _ROUTE_MAP.fullmatch(head):
            entry = f"{found[2]} {found[3]}", tuple(sorted(_lines(body)))
            maps.setdefault(found[1], []).append(entry)
        elif found := _NAMED_LIST.fullmatch(head):
            lists.setdefault(found[2], []).append(head)
        else:
            blocks.append((head, tuple(_raw(body))))
    return RunningConfig(
        bgp,
        {name: tuple(entries) for name, entries in maps.items()},
        {name: tuple(lines) for name, lines in lists.items()},
        tuple(blocks),
    )


def networks(family: Family) -> Iterator[tuple[str, str]]:
    """Prefix and rest of each `network` line."""
    for line in family.networks.splitlines():
        _, prefix, *rest = line.split(None, 2)
        yield prefix, rest[0] if rest else ""


def _lines(body: str) -> Iterator[str]:
    for line in body.splitlines():
        text = line.strip(" ")
        if text and text != "!":
            yield text


def _raw(body: str) -> Iterator[str]:
    """With their indents, which say what is below what."""
    return (line.rstrip() for line in body.splitlines() if line.strip(" !"))


class _Collected:
    """The lines of one neighbour while they are found."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.families: dict[str, list[str]] = {}
        self.ranges: list[str] = []


def _bgp(vrf: str, local_as: str, body: str) -> Bgp:
    found: dict[str, _Collected] = {}
    families = {}
    for match in _FAMILY.finditer(body):
        families[match[1]] = _family(match[1], match[2], found)
    lines: list[str] = []
    for line in _lines(_FAMILY.sub("", body)):
        if told := _NEIGHBOR.fullmatch(line):
            _collected(found, told[2]).lines.append((told[1] or "") + told[3])
        elif told := _LISTEN_RANGE.fullmatch(line):
            _collected(found, told[2]).ranges.append(told[1])
        else:
            lines.append(line)
    neighbours = {
        name: Neighbour(
            tuple(collected.lines),
            {family: tuple(told) for family, told in collected.families.items()},
            tuple(collected.ranges),
        )
        for name, collected in found.items()
    }
    return Bgp(vrf, local_as, tuple(lines), neighbours, families)


def _family(name: str, body: str, found: dict[str, _Collected]) -> Family:
    networks = "".join(_NETWORK.findall(body)) if "  network " in body else ""
    rest = _NETWORK.sub("", body) if networks else body
    aggregates = {match[1]: match[2].strip() for match in _AGGREGATE.finditer(rest)}
    others: list[str] = []
    for line in _lines(rest):
        if told := _NEIGHBOR.fullmatch(line):
            said = (told[1] or "") + told[3]
            _collected(found, told[2]).families.setdefault(name, []).append(said)
        elif not line.startswith("aggregate-address "):
            others.append(line)
    return Family(networks, aggregates, tuple(others))


def _collected(found: dict[str, _Collected], name: str) -> _Collected:
    if name not in found:
        found[name] = _Collected()
    return found[name]


def entries_as_lines(name: str, entries: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    """A route-map as lines, each entry behind its head."""
    return [line for head, told in entries for line in (f"route-map {name} {head}", *told)]
