"""Ways to write one IPv4 address that are no usual notation, and that some reader takes. Pure."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

# Alone, they stand for every address there is.
EVERYTHING = frozenset(
    (
        "*", "any", "any4", "any6", "anyv4", "anyv6", "any-ip", "all", "all-ips", "default",
        "default-route", "everything", "everywhere", "anywhere", "internet", "world",
        "0/0", "::/0", "::0/0",
    )
)  # fmt: skip
_FENCED = re.compile(r"[\[({<]\s?(\.|:|dot)\s?[\])}>]", re.I)
_SPOKEN = re.compile(r"(?<=[0-9])\s?(?:dot|punkt|point)\s?(?=[0-9])", re.I)
_ESCAPED = re.compile(r"\\(?:u\{?00|x)([0-7][0-9a-fA-F])\}?")
# Four numbers with one and the same sign between them, whichever that is but the dot.
_GROUPS = re.compile(
    r"(?<![0-9A-Za-z])(?=([0-9]{1,3})(?!\.[0-9])([^0-9A-Za-z]{1,3})([0-9]{1,3})\2([0-9]{1,3})\2([0-9]{1,3})"
    r"(?![0-9A-Za-z]))"
)
_HEX_GROUPS = re.compile(
    r"(?<![0-9A-Za-z])(?<![0-9A-Za-z][:. _-])"
    r"([0-9a-fA-F]{2})([:. _-])([0-9a-fA-F]{2})\2([0-9a-fA-F]{2})\2([0-9a-fA-F]{2})"
    r"(?![0-9A-Za-z]|[:. _-][0-9a-fA-F]{2}(?![0-9A-Za-z]))"
)
# A MAC address, whose six groups hold three times four.
_HARDWARE = re.compile(
    r"(?<![0-9A-Za-z:-])[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}(?![0-9A-Za-z:-])"
)
_HEX_LABEL = re.compile(r"(?<![0-9A-Za-z])([0-9a-fA-F]{8})(?=\.[A-Za-z])")
_NUMERAL = (
    r"[+-]?(?:0[xX][0-9a-fA-F_]{1,40}|0[oO][0-7_]{1,50}|0[bB][01_]{1,160}|[0-9][0-9_']{0,60})"
)
_WHOLE = re.compile(_NUMERAL)
_HOST = re.compile(rf"//(?:[^/@\s]{{0,200}}@)?({_NUMERAL})(?=[:/?#\s]|$)")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:([., '])[0-9]{3})(?:\1[0-9]{3}){1,12}")
_SCIENTIFIC = re.compile(r"[+-]?[0-9][0-9_]{0,40}(?:\.[0-9_]{0,40})?(?:[eE][+]?[0-9]{1,3})?")
_BETWEEN = re.compile(r"[\s,;|]+")
_COUNT = re.compile(r"count|size|num|quantity|amount|total|range|len|how_?many|span", re.I)
_LENGTH = re.compile(r"prefix|mask|bits|cidr", re.I)
_ORDINARY_NAME = re.compile(r"[A-Za-z_-]{3,}")
_OCTET_NAME = re.compile(r"oct|byte|part|first|second|third|fourth|one|two|three|four|quad", re.I)


def plain(text: str) -> str:
    """With the digits that everybody reads, whatever script they were written in, and without what
    keeps an address from being clicked on."""
    digits = "".join(
        str(unicodedata.decimal(one)) if unicodedata.category(one) == "Nd" else one
        for one in unicodedata.normalize("NFKC", text)
    )
    shown = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), html.unescape(digits))
    return _SPOKEN.sub(".", _FENCED.sub(lambda found: found[1].replace("dot", "."), shown))


def means_everything(text: str) -> bool:
    return plain(text).strip(" \t\n\"'()[]<>").lower() in EVERYTHING


def quads(text: str) -> Iterator[bytes]:
    """Four bytes each."""
    text = _HARDWARE.sub("-", text)
    for found in _GROUPS.finditer(text):
        numbers = [int(found[at]) for at in (1, 3, 4, 5)]
        if max(numbers) < 256:
            yield bytes(numbers)
    for found in _HEX_GROUPS.finditer(text):
        yield bytes(int(found[at], 16) for at in (1, 3, 4, 5))
    for found in _HEX_LABEL.finditer(text):
        yield bytes.fromhex(found[1])


def numbers(text: str) -> Iterator[int]:
    """Of a text that is one number or several and nothing else, and hosts of URLs."""
    whole = text.strip()
    if _THOUSANDS.fullmatch(whole):
        yield int(re.sub(r"[^0-9]", "", whole))
    words = [one for one in _BETWEEN.split(whole) if one]
    if all(_WHOLE.fullmatch(word) or _SCIENTIFIC.fullmatch(word) for word in words[:512]):
        for word in words[:512]:
            yield from _number(word)
    for found in _HOST.finditer(text):
        yield from _number(found[1])


def _number(word: str) -> Iterator[int]:
    bare = re.sub(r"[_']", "", word.lstrip("+-"))
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+", bare):
        yield int(bare, 0)
    elif bare.isdecimal():
        yield int(bare)
    elif _SCIENTIFIC.fullmatch(bare):
        value = float(bare)
        if math.isfinite(value) and value % 1 == 0:
            yield int(value)


def bytes_by_name(value: Mapping[Any, Any]) -> list[Any]:
    """Of `{a: 192, b: 0, c: 2, d: 7}`; none where each of the names says that it is a number of
    something else, as weights and retries are."""
    names = [str(one) for one in value]
    if all(_ORDINARY_NAME.fullmatch(name) and not _OCTET_NAME.search(name) for name in names):
        return []
    return list(value.values())


def counts(value: Mapping[Any, Any]) -> Iterator[int | None]:
    """How many addresses fields say there are from another field's on; None: as many as nobody can
    read."""
    for name, one in value.items():
        if not _COUNT.search(str(name)) or _LENGTH.search(str(name)) or isinstance(one, bool):
            continue
        if isinstance(one, int | float):
            yield int(one) if math.isfinite(one) and one >= 0 else None
        elif isinstance(one, str):
            found = list(numbers(plain(one)))
            yield max(found) if found else None
