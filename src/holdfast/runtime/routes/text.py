"""Texts of requests, before anything is made of them.

What reaches FRR is a line of its shell: it cuts a command at 4096 bytes and runs the rest, takes
` | include` for a filter of its own, and a newline for the next command. None of that is taken in
here, whatever field it stands in.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from holdfast.api.conditions import CallRefused
from holdfast.characters import trouble

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# FRR's own bound for what it shows of a text is 80; a line with all of a peer stays below 1000.
LONGEST = 255
_LONGEST_IFNAME = 15
_SHOWN = 40


def invalid(message: str) -> CallRefused:
    return CallRefused("INVALID_ARGUMENT", message)


def checked(field: str, text: str, most: int = LONGEST) -> str:
    """The text with its runs of spaces made one, as FRR stores it."""
    if len(text.encode(errors="replace")) > most:
        raise invalid(f"{field} takes {len(text)} characters: at most {most} bytes are taken")
    why = trouble(text)
    if why:
        raise invalid(f"{field} {why}")
    if "|" in text:
        raise invalid(f"{field} holds `|`, behind which FRR's shell expects a filter: leave it out")
    return " ".join(filter(None, text.split(" ")))


def address(field: str, text: str) -> Address:
    if not text:
        raise invalid(f"{field} is missing: an address of IPv4 or IPv6")
    checked(field, text)
    try:
        found = ip_address(text)
    except ValueError:
        raise invalid(f"{field}: {shown(text)} is no address of IPv4 or IPv6") from None
    if isinstance(found, IPv6Address) and found.scope_id is not None:
        raise invalid(f"{field}: {shown(text)} names a zone: give the address alone")
    return found


def usable(field: str, text: str) -> Address:
    """An address that one host has."""
    found = address(field, text)
    if found.is_multicast or found.is_unspecified:
        raise invalid(f"{field}: {found} is no address of a host")
    return found


def network(field: str, text: str) -> Network:
    """Canonical: host bits are cleared, and each IPv6 prefix has one spelling."""
    if not text:
        raise invalid(f"{field} is missing: such as 192.0.2.0/24")
    checked(field, text)
    head, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or not length.isascii():
        raise invalid(f"{field}: {shown(text)} is no prefix such as 192.0.2.0/24")
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        raise invalid(f"{field}: {shown(text)} is no prefix such as 192.0.2.0/24") from None
    if "%" in head:
        raise invalid(f"{field}: {shown(text)} names a zone: a prefix has none")
    if found.is_multicast:
        raise invalid(f"{field}: {found} is multicast, which is not advertised")
    return found


def ifname(field: str, text: str) -> str:
    if not text:
        raise invalid(f"{field} is missing: the name of an interface")
    checked(field, text)
    if len(text.encode()) > _LONGEST_IFNAME or not re.fullmatch(r"[^\s/:]+", text):
        raise invalid(f"{field}: {shown(text)} is no name of an interface")
    if text in (".", ".."):
        raise invalid(f"{field}: {text} is no name of an interface")
    return text


def area(field: str, text: str) -> str:
    """Dotted, as FRR shows it."""
    if not text:
        raise invalid(f"{field} is missing: such as 0.0.0.0, or a number")
    checked(field, text)
    if text.isdecimal() and text.isascii() and len(text) <= 10 and int(text) < 1 << 32:
        return str(IPv4Address(int(text)))
    try:
        return str(IPv4Address(text))
    except ValueError:
        raise invalid(f"{field}: {shown(text)} is no area: 0.0.0.0, or a number") from None


_COMMUNITY = re.compile(r"(\d{1,5}):(\d{1,5})")
_LARGE = re.compile(r"(\d{1,10}):(\d{1,10}):(\d{1,10})")
# As FRR 8.4 and 10 know them, without those whose value is no community of its own.
WELL_KNOWN = frozenset(
    {
        "accept-own", "blackhole", "graceful-shutdown", "internet", "llgr-stale", "local-AS",
        "no-advertise", "no-export", "no-llgr", "no-peer",
    }
)  # fmt: skip


def community(field: str, text: str) -> str:
    checked(field, text)
    if text in WELL_KNOWN:
        return text
    found = _COMMUNITY.fullmatch(text) if text.isascii() else None
    if found and all(int(part) < 1 << 16 for part in found.groups()):
        return ":".join(str(int(part)) for part in found.groups())
    found = _LARGE.fullmatch(text) if text.isascii() else None
    if found and all(int(part) < 1 << 32 for part in found.groups()):
        return ":".join(str(int(part)) for part in found.groups())
    raise invalid(f"{field}: {shown(text)} is no community such as 65001:100 or no-export")


def shown(text: str) -> str:
    """What a caller sent, short enough to be told back."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
