"""What the protocols' values look like, and what FRR takes of text.

FRR reads lines of words. Seen on 8.4 and 10.3: a line above 4096 bytes is cut, and the tail runs as
a command of its own; ` | ` ends a line and hands the rest to a filter; runs of blanks become one.
So text is refused here that could come to anything but itself.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from typing import Any

from holdfast.engine.kinds import bgp_attributes, ospf
from holdfast.resources.spec.shape import Shape, no_networks, parsed

AS_MAX = 0xFFFFFFFF
AS_TRANS = 23456
TEXT_MAX = 200  # bytes: a line with the longest names around it stays below 1000
PASSWORD_MAX = 80
_AS_PATH = re.compile(r"[0-9_^$.*+?()\[\]| -]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def parse_as_number(value: Any) -> int:
    if type(value) is not int:
        shown = str(value)
        quoted = isinstance(value, str) and value.isdecimal()
        more = "; write it without quotes" if quoted else ""
        raise ValueError(f"must be an AS number, not {shown!r}{more}")
    if value == 0:
        raise ValueError("0 is no AS number: it is reserved (RFC 7607)")
    if value == AS_TRANS:
        raise ValueError(f"{AS_TRANS} stands for large AS numbers where they do not fit: no AS has"
                         " it (RFC 6793)")  # fmt: skip
    if not 0 < value <= AS_MAX:
        raise ValueError(f"must be from 1 to {AS_MAX}, not {value}")
    return value


def as_number() -> Shape:
    json = {"type": "integer", "minimum": 1, "maximum": AS_MAX, "not": {"const": AS_TRANS}}
    return Shape(parse_as_number, json, f"AS number, 1 to {AS_MAX}", reach=no_networks)


def _remote_as(value: Any) -> str:
    if value in ("internal", "external"):
        return str(value)
    if isinstance(value, str) and not value.isdecimal():
        raise ValueError(f"{value!r} is neither an AS number nor `internal` or `external`")
    return str(parse_as_number(value))


def remote_as() -> Shape:
    number = {"type": "integer", "minimum": 1, "maximum": AS_MAX, "not": {"const": AS_TRANS}}
    json = {"anyOf": [number, {"enum": ["internal", "external"]}]}
    return Shape(_remote_as, json, "AS number, `internal` or `external`", reach=no_networks)


def parse_frr_text(text: str) -> str:
    """A description, with blanks as FRR keeps them."""
    if _CONTROL.search(text):
        raise ValueError("has a control character in it, or an end of line")
    said = " ".join(text.split())
    if not said:
        raise ValueError("cannot be empty")
    if "|" in said.split():
        raise ValueError("cannot hold ` | `: FRR drops what stands behind it")
    if len(said.encode()) > TEXT_MAX:
        raise ValueError(f"must be at most {TEXT_MAX} bytes, not {len(said.encode())}")
    return said


def frr_text() -> Shape:
    return parsed(parse_frr_text, "one line of text", {"minLength": 1}, reach=no_networks)


def parse_password(line: str) -> str:
    """Says nothing of what it holds."""
    if not line:
        raise ValueError("is empty")
    if any(letter.isspace() for letter in line) or _CONTROL.search(line):
        raise ValueError("has a blank or a control character in it, which FRR does not take")
    if not line.isascii():
        raise ValueError("has characters that are not ASCII")
    if len(line) > PASSWORD_MAX:
        raise ValueError(f"is {len(line)} characters long: FRR takes {PASSWORD_MAX}")
    return line


def parse_community(text: str) -> str:
    try:
        return bgp_attributes.community(bgp_attributes.community_number(text))
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None


def community() -> Shape:
    return parsed(parse_community, "community, as in 65001:100 or `no-export`", reach=no_networks)


def parse_large_community(text: str) -> str:
    try:
        return ":".join(map(str, bgp_attributes.large_community(text)))
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None


def large_community() -> Shape:
    pattern = {"pattern": "^[0-9]+:[0-9]+:[0-9]+$"}
    return parsed(
        parse_large_community, "large community, as in 65001:1:100", pattern, reach=no_networks
    )


def parse_as_path(text: str) -> str:
    if not _AS_PATH.fullmatch(text) or "|" in text.split():
        raise ValueError(
            f"{text!r} is no expression for AS paths: digits, blanks and `_^$.*+?()[]|-`"
        )
    if len(text) > TEXT_MAX:
        raise ValueError(f"must be at most {TEXT_MAX} characters, not {len(text)}")
    try:
        re.compile(text.replace("_", "( |^|$)"))
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    return " ".join(text.split())


def as_path() -> Shape:
    shown = "regular expression, `_` for the end of a number: `^65001_`, `_65002$`"
    return parsed(parse_as_path, shown, reach=no_networks)


def _router_id(text: str) -> str:
    try:
        address = IPv4Address(text)
    except ValueError:
        raise ValueError(f"{text!r} is no router id: it is written as an IPv4 address") from None
    if address.is_multicast or address.is_unspecified or address.is_loopback:
        raise ValueError(f"{text} cannot be a router id: it has to tell this router from others")
    if int(address) == 0xFFFFFFFF:
        raise ValueError(f"{text} cannot be a router id")
    return str(address)


def router_id() -> Shape:
    # A number that tells routers apart, and no address that anything leads to.
    return parsed(_router_id, "router id, as an IPv4 address", reach=no_networks)


def _area(value: Any) -> str:
    said = str(value) if type(value) is int and value >= 0 else value
    try:
        if not isinstance(said, str):
            raise ValueError
        return ospf.area(said)
    except ValueError:
        raise ValueError(
            f"{value!r} is no area: a number up to 4294967295, or as an IPv4 address"
        ) from None


def area() -> Shape:
    json = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": AS_MAX}, {"type": "string"}]}
    return Shape(_area, json, "area, as a number or as an IPv4 address", reach=no_networks)
