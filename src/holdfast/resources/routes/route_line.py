"""One route as `ip route add` takes it: `PREFIX via GW dev IFACE metric N`, `blackhole PREFIX` …"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from holdfast.dataclass import dataclass, replace
from holdfast.engine.kinds import route as routes
from holdfast.engine.kinds.route import MAIN_TABLE, Nexthop, RouteTemplate, pack_key
from holdfast.resources.routes import nexthops
from holdfast.resources.routes.route import METRIC_MAX, MTU_MAX, MTU_MIN, WEIGHT_MAX
from holdfast.resources.spec.values import (
    parse_address,
    parse_destination,
    parse_ifname,
    parse_prefix,
    parse_route_table,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for lines that do not say otherwise."""

    gateway: str = ""  # gateway and interface: for lines that name no nexthop at all
    interface: str = ""
    table: int = MAIN_TABLE
    metric: int = 0
    type: str = "unicast"
    mtu: int = 0
    prefsrc: str = ""  # for lines of its family


class LineError(Exception):
    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column  # from 1
        self.message = message


class Word(NamedTuple):
    text: str
    column: int


_WORD = re.compile(r"\S+")
_LEG_OPTIONS = ("via", "dev", "weight", "onlink")
_ROUTE_OPTIONS = ("via", "dev", "onlink", "metric", "table", "mtu", "src")


def words_of(line: str) -> list[Word]:
    """The words of a line up to its comment."""
    line = line.partition("#")[0]
    return [Word(found[0], found.start() + 1) for found in _WORD.finditer(line)]


def parse_line(line: str, defaults: Defaults) -> tuple[RouteTemplate, bytes] | None:
    """Template and key of a line, None for a blank one. Raises LineError."""
    words = words_of(line)
    if not words:
        return None
    first = words.pop(0)
    kind = first.text if first.text in routes.TYPES else ""
    if kind and not words:
        raise LineError(first.column, f"{kind} of what? A prefix is expected")
    head = words.pop(0) if kind else first
    try:
        family = _family_of_default(words, defaults) if head.text == "default" else 0
        network = parse_destination(head.text, family) if family else parse_prefix(head.text)
    except ValueError as error:
        raise LineError(head.column, str(error)) from None
    shared = parse_template(kind, words, network.version, defaults, head.column)
    return shared, pack_key(network.network_address.packed, network.prefixlen)


def _family_of_default(words: list[Word], defaults: Defaults) -> int:
    """`default` is of the family of its gateway or source."""
    said = [words[at + 1].text for at, word in enumerate(words[:-1]) if word.text in ("via", "src")]
    return 6 if any(":" in text for text in said or (defaults.gateway, defaults.prefsrc)) else 4


def parse_template(
    kind: str, words: list[Word], family: int, defaults: Defaults, column: int = 1
) -> RouteTemplate:
    """Everything but the destination, from the words after it. `column`: that of the prefix."""
    starts = [at for at, word in enumerate(words) if word.text == "nexthop"]
    options = _options(words[: starts[0]] if starts else words, _ROUTE_OPTIONS)
    legs = [
        _options(words[start + 1 : end], _LEG_OPTIONS)
        for start, end in zip(starts, [*starts[1:], len(words)], strict=False)
    ]
    if legs and (len(legs) == 1 or options.keys() & set(_LEG_OPTIONS)):
        message = "several nexthops are written `nexthop via A nexthop via B`, and nothing else"
        raise LineError(words[starts[0]].column, message)
    if not legs and options.keys() & set(_LEG_OPTIONS):
        legs = [options]
    hops = tuple(_nexthop(leg) for leg in legs)
    chosen = kind or defaults.type
    if chosen != "unicast":
        defaults = replace(defaults, mtu=0, prefsrc="")
    if not hops and chosen == "unicast" and (defaults.gateway or defaults.interface):
        hops = (Nexthop(defaults.gateway, defaults.interface),)
    shared = routes.template(
        family,
        table=_read(options, "table", _table, defaults.table),
        metric=_read(options, "metric", lambda text: _number(text, 0, METRIC_MAX), defaults.metric),
        kind=chosen,
        nexthops=hops,
        prefsrc=_source(options, family, defaults),
        mtu=_read(options, "mtu", lambda text: _number(text, MTU_MIN, MTU_MAX), defaults.mtu),
    )
    for index, field, message in nexthops.faults(shared):
        option = {"gateway": "via", "preferredSource": "src"}.get(field, field)
        within = options if index < 0 else legs[index] if index < len(legs) else {}
        at = within.get(option)
        raise LineError(at.column if at else column, message)
    return shared


def _options(words: list[Word], known: tuple[str, ...]) -> dict[str, Word]:
    """Each option of a stretch of words, with its value; `onlink` is its own value."""
    found: dict[str, Word] = {}
    rest = iter(words)
    for word in rest:
        if word.text not in known:
            message = f"{word.text!r} is unknown here; known: {', '.join(known)}"
            raise LineError(word.column, message)
        if word.text in found:
            raise LineError(word.column, f"{word.text} is given twice")
        value = word if word.text == "onlink" else next(rest, None)
        if word.text == "via" and value is not None and value.text in ("inet", "inet6"):
            value = next(rest, None)
        if value is None:
            raise LineError(word.column, f"{word.text} lacks its value")
        found[word.text] = value
    return found


def _nexthop(leg: dict[str, Word]) -> Nexthop:
    return Nexthop(
        _read(leg, "via", lambda text: str(parse_address(text)), ""),
        _read(leg, "dev", parse_ifname, ""),
        _read(leg, "weight", lambda text: _number(text, 1, WEIGHT_MAX), 1),
        "onlink" in leg,
    )


def _source(options: dict[str, Word], family: int, defaults: Defaults) -> str:
    default = defaults.prefsrc if (":" in defaults.prefsrc) == (family == 6) else ""
    return _read(options, "src", lambda text: str(parse_address(text, family)), default)


def _read(options: dict[str, Word], name: str, parse: Callable[[str], T], default: T) -> T:
    word = options.get(name)
    if word is None:
        return default
    try:
        return parse(word.text)
    except ValueError as error:
        raise LineError(word.column, str(error)) from None


def _number(text: str, low: int, high: int) -> int:
    if not text.isascii() or not text.isdecimal() or not low <= int(text) <= high:
        raise ValueError(f"{text!r} is not a number from {low} to {high}")
    return int(text)


def _table(text: str) -> int:
    return parse_route_table(int(text) if text.isascii() and text.isdecimal() else text)
