"""Every address and prefix that a plain value names, however it is written. Pure.

A limit on addresses is worth little if another way to write one leads around it: what reads a value
in the end may take far more for an address than Python does. So everything that anything could take
for one is counted, with all its meanings, and what looks like several addresses and cannot be told
apart (`10.0.*.1`) is reported as unreadable. To count too much holds an action until somebody looks
at it; to count too little lets it out.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_interface,
    summarize_address_range,
)
from typing import Any
from urllib.parse import unquote

from holdfast.dataclass import dataclass
from holdfast.resources.spec.values import Address, Network
from holdfast.runtime.actions import spellings

# A number below is a count, a port or a metric; one between is no address of either family that
# anybody uses, but may well be the number of an account.
_LEAST4, _MOST4, _LEAST6, _MOST6 = 1 << 24, 1 << 32, 1 << 96, 1 << 128
# All that repeats is bounded: whoever proposes a plan must not be able to keep the daemon busy.
_OCTET = r"(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,16})"
_LONG_NUMBER = re.compile(r"[0-9]{65}|0[xX][0-9a-fA-F]{65}")
# Of one text: what names more is not read to its end.
_MOST = 512
_DOTTED = re.compile(rf"(?<![0-9])(?=({_OCTET}(?:\.{_OCTET}){{3}})(/[0-9.]+)?)")
_SHORT = re.compile(rf"({_OCTET}(?:\.{_OCTET}){{0,2}})(/[0-9]{{1,2}})?")
_DASHED = re.compile(r"(?<![0-9])(?=([0-9]{1,3}(?:-[0-9]{1,3}){3})(?![0-9]))")
_SIX = re.compile(
    r"(?=((?:[0-9a-fA-F]{0,4}:){2,7}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-fA-F]{0,4}))(?![0-9a-fA-F:]))"
    r"(?<![0-9a-fA-F:])|(?=(?<![0-9a-fA-F:])(:(?::[0-9a-fA-F]{1,4}){1,7})(?![0-9a-fA-F:]))"
)
_LENGTH = re.compile(r"/([0-9]{1,3})")
_LITERAL = re.compile(r"([0-9a-fA-F-]{2,45})(?:s[0-9]{1,9})?\.ipv6-literal\.net", re.I)
_REVERSED4 = re.compile(r"((?:[0-9]{1,3}\.){1,4})in-addr\.arpa", re.I)
_REVERSED6 = re.compile(r"((?:[0-9a-f]\.){1,32})ip6\.arpa", re.I)
_ONE = r"[0-9a-fA-F:.]{2,45}"
_RANGE = re.compile(rf"(?=(?<![0-9a-fA-F:.])({_ONE})[ \t]?(?:-|…|to|until)[ \t]?({_ONE}))", re.I)
# Several at once, in ways that every program reads differently.
_SEVERAL = re.compile(
    r"[0-9]\.(?:[0-9]{1,16}\.){0,3}[*?xX\[{(]|[*?\])}]\.[0-9]|[0-9]\.[*xX]\b|[0-9]:+[*\[{(]"
    r"|(?<![0-9.])[0-9]{1,16}(?:\.[0-9]{1,16}){3} ?- ?[0-9]{1,16}(?:\.[0-9]{1,16}){0,2}(?![0-9.])"
    r"|(?<![0-9.])(?:[0-9]{1,16}\.){1,2}[0-9]{1,16}-[0-9]{1,16}(?:\.[0-9]{1,16}){1,2}(?![0-9.])"
    r"|^[0-9]{1,16}-[0-9]{1,16}(?:\.[0-9-]{1,33}){3}$"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
# Other dots and dashes, and backslashes, by their numbers.
_DOTS = dict.fromkeys((0x3002, 0xFF0E, 0xFF61, 0x2024, 0xB7), ".")
_DASHES = dict.fromkeys((*range(0x2010, 0x2015), 0x2212), "-")
_OTHER_SIGNS = {**_DOTS, **_DASHES, 0x5C: ""}
_LENGTH_NAMES = re.compile(r"prefix|mask|len|bits|cidr|size", re.I)
_ENDS = (
    re.compile(r"start|begin|first|from|low|min", re.I),
    re.compile(r"end|last|to|high|max|until|through", re.I),
)


@dataclass(frozen=True, slots=True)
class Named:
    """One meaning of a value. Without a network, it looks like addresses and cannot be read."""

    path: str
    network: Network | None


def named(path: str, value: Any) -> Iterator[Named]:
    """All that a plain value names, in keys too."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _told(path, str(name), alone=one is True)
            yield from named(f"{path}.{name}", one)
        yield from (Named(path, one) for one in _joined(value))
        yield from (Named(path, of_byte) for of_byte in _of_bytes(spellings.bytes_by_name(value)))
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield from named(f"{path}[{number}]", one)
        yield from (Named(path, of_byte) for of_byte in _of_bytes(value))
    elif isinstance(value, str):
        yield from _told(path, value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0:
        yield from (Named(path, one) for one in _of_number(int(value)))


def _told(path: str, text: str, *, alone: bool = True) -> Iterator[Named]:
    """alone: it says by itself what is meant, as the name of a field does not."""
    if alone and spellings.means_everything(text):
        yield Named(path, None)
    yield from (Named(path, network) for network in _networks(text))


@lru_cache(1024)  # a plan is judged at every pass
def _networks(text: str) -> tuple[Network | None, ...]:
    found: dict[Network | None, None] = {}
    for form in _forms(text):
        for count, one in enumerate(_in_text(form)):
            found[None if count == _MOST else one] = None
            if count == _MOST:
                break
        if _SEVERAL.search(form) or _LONG_NUMBER.search(form):
            found[None] = None
    return tuple(found)


def _forms(text: str) -> Iterator[str]:
    """The text, and what becomes of it in a URL and in base64."""
    shown = "".join(one for one in text if unicodedata.category(one) != "Cf")
    shown = spellings.plain(shown)
    shown = spellings.plain(shown.translate(_OTHER_SIGNS))
    shown = re.sub(r"(?<=[0-9])\s*\.\s*(?=[0-9])", ".", shown)
    forms = dict.fromkeys((shown, unquote(shown), unquote(unquote(shown))))
    for word in _BASE64.findall(text):
        try:
            inside = base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_").decode("ascii")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            continue
        if inside.isprintable():
            forms[inside] = None
    yield from forms


def _in_text(text: str) -> Iterator[Network]:
    whole = text.strip().strip("[]()<>\"'").strip()
    yield from _of_whole(whole.rstrip("."))
    for found in _DOTTED.finditer(text):
        for ipv4_address in _of_four(found[1]):
            yield from _with_length(ipv4_address, found[2] or "")
    for found in _DASHED.finditer(text):
        yield from map(_alone, _of_four(found[1].replace("-", ".")))
    for found in _SIX.finditer(text):
        written = found[1] or found[2]
        length = _LENGTH.match(text, found.start() + len(written))
        for address in _address(written):
            yield from _with_length(address, length[0] if length else "")
    for found in _LITERAL.finditer(text):
        yield from map(_alone, _address(found[1].replace("-", ":")))
    yield from _of_names(text)
    yield from (_alone(IPv4Address(quad)) for quad in spellings.quads(text))
    for number in spellings.numbers(text):
        yield from _of_number(number)
    for found in _RANGE.finditer(text):
        ends = [
            [*_address(one), *_of_four(one)] for one in (found[1].strip("."), found[2].strip("."))
        ]
        if all(ends):
            yield from _between(ends[0][0], ends[1][0])


def _of_whole(text: str) -> Iterator[Network]:
    """What is an address only where nothing else stands beside it: others mean something else by
    such a number."""
    with suppress(ValueError):
        yield ip_interface(text).network
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,64}|[0-9a-fA-F]{8}|[0-9a-fA-F]{32}", text):
        yield from _of_number(int(text, 16))
    if re.fullmatch(r"[0-9]{1,64}", text):
        yield from _of_number(int(text))
        if text.startswith("0") and not set(text) & {"8", "9"}:
            yield from _of_number(int(text, 8))
        return
    short = _SHORT.fullmatch(text)
    if short is None:
        return
    if short[2]:  # 10/8
        missing = 3 - short[1].count(".")
        for ipv4_address in _of_four(short[1] + ".0" * missing):
            yield from _with_length(ipv4_address, short[2])
    elif "." in short[1]:  # as inet_aton reads it: the last number fills what is left
        for values in _readings(short[1].split(".")):
            *first, last = values
            number = last + sum(one << (24 - 8 * at) for at, one in enumerate(first))
            if all(one < 256 for one in first) and number < _MOST4:
                yield _alone(IPv4Address(number))


def _of_number(number: int) -> Iterator[Network]:
    if _LEAST4 <= number < _MOST4:
        yield _alone(IPv4Address(number))
    elif _LEAST6 <= number < _MOST6:
        yield from _meanings(IPv6Address(number))


def _of_bytes(value: Iterable[Any]) -> Iterator[Network]:
    """`[192, 0, 2, 7]`"""
    numbers = [int(one) for one in value if re.fullmatch(r"[0-9]{1,3}", str(one))]
    if len(numbers) in (4, 16) and max(numbers) < 256 and len(numbers) == len(list(value)):
        yield _alone(ip_address(bytes(numbers)))


def _of_four(text: str) -> Iterator[IPv4Address]:
    """Four numbers with dots; one with a zero before it is decimal to some and octal to others."""
    parts = text.split(".")
    if len(parts) != 4:
        return
    for values in _readings(parts):
        if max(values) < 256:
            yield IPv4Address(bytes(values))


def _readings(parts: list[str]) -> Iterator[list[int]]:
    if not all(re.fullmatch(_OCTET, part) for part in parts):
        return
    hexadecimal = [part[:2] in ("0x", "0X") for part in parts]
    yield [int(one, 16) if hex_ else int(one) for one, hex_ in zip(parts, hexadecimal, strict=True)]
    octal = [part for part in parts if re.fullmatch(r"0[0-7]+", part)]
    if octal:
        yield [
            int(one, 16) if hex_ else int(one, 8) if one in octal else int(one)
            for one, hex_ in zip(parts, hexadecimal, strict=True)
        ]


def _address(text: str) -> Iterator[Address]:
    try:
        yield ip_address(text)
    except ValueError:
        return


def _of_names(text: str) -> Iterator[Network]:
    """Names of the reverse DNS."""
    for found in _REVERSED4.finditer(text):
        parts = found[1].strip(".").split(".")[::-1]
        for ipv4_address in _of_four(".".join(parts + ["0"] * (4 - len(parts)))):
            yield from _with_length(ipv4_address, f"/{8 * len(parts)}")
    for found in _REVERSED6.finditer(text):
        digits = found[1].replace(".", "")[::-1]
        yield IPv6Network((int(digits.ljust(32, "0"), 16), 4 * len(digits)), strict=False)


def _joined(value: Mapping[Any, Any]) -> Iterator[Network | None]:
    """What several fields say together: an address and a length or a count, or both ends of a
    range."""
    one_each = {
        str(name): [
            network
            for network in _networks(text)
            if network is not None and network.num_addresses == 1
        ]
        for name, said in value.items()
        if isinstance(said, str | int) and not isinstance(said, bool)
        for text in [str(said)]
    }
    counts = set(spellings.counts(value))
    if counts:  # the greatest holds the others
        count = None if None in counts else max(count for count in counts if count is not None)
        for network in {one for found in one_each.values() for one in found}:
            yield from _from_on(network.network_address, count)
    lengths = {
        int(one)
        for name, one in value.items()
        if _LENGTH_NAMES.search(str(name)) and re.fullmatch(r"/?[0-9]{1,3}", str(one).strip())
        for one in [str(one).strip().lstrip("/")]
    }
    for found in one_each.values():
        for network in found:
            for length in sorted(lengths):
                yield from _with_length(network.network_address, f"/{length}")
    starts, ends = (
        [network for name, found in one_each.items() if which.search(name) for network in found]
        for which in _ENDS
    )
    for version in (4, 6):
        first, last = ([one for one in found if one.version == version] for found in (starts, ends))
        if first and last:  # from whichever to whichever
            addresses = sorted(int(one.network_address) for one in (*first, *last))
            yield from _span(version, addresses[0], addresses[-1])


def _from_on(address: Address, count: int | None) -> Iterator[Network | None]:
    last = int(address) + (count or 1) - 1
    if count is None or last >= (_MOST4 if address.version == 4 else _MOST6):
        yield None
    else:
        yield from _span(address.version, int(address), last)


def _span(version: int, first: int, last: int) -> Iterator[Network]:
    made = IPv4Address if version == 4 else IPv6Address
    yield from summarize_address_range(made(first), made(last))


def _between(address: Address, other: Address) -> Iterator[Network]:
    if address.version != other.version:
        return
    yield from _span(address.version, *sorted((int(address), int(other))))


def _with_length(address: Address, length: str) -> Iterator[Network]:
    """One that cannot be is taken for something else that follows."""
    try:
        yield ip_interface(f"{address}{length}").network
    except ValueError:
        yield from _meanings(address)
    else:
        yield from list(_meanings(address))[1:]


def _alone(address: Address) -> Network:
    return IPv4Network(address) if isinstance(address, IPv4Address) else IPv6Network(address)


def _meanings(address: Address) -> Iterator[Network]:
    """An IPv6 address may stand for an IPv4 one; it is both then."""
    yield _alone(address)
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and (number >> 32 == 0 or address in IPv6Network("64:ff9b::/96")):
        low = number & 0xFFFFFFFF
        inner = IPv4Address(low) if low >= _LEAST4 else None
    if inner is not None:
        yield _alone(inner)
