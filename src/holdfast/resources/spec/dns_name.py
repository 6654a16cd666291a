"""Names of the DNS, fit to be written into the files of a name server."""

from __future__ import annotations

import re

from holdfast.resources.spec.shape import Reaching, Shape, parsed

# An underscore is no letter of a host name, but domains such as _tcp.example.org are looked up too.
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LONGEST = 253


def parse_domain(text: str) -> str:
    """Lower case, without the final dot."""
    name = text.removesuffix(".")
    if len(name) > _LONGEST:
        raise ValueError(f"is {len(name)} characters long, a domain has {_LONGEST} at most")
    for label in name.split("."):
        if not _LABEL.fullmatch(label):
            raise ValueError(
                f"{text!r} is not a domain: its part {label!r} must be 1 to 63 letters, digits,"
                " '_' and inner hyphens"
            )
    return name.lower()


def parse_host(text: str) -> str:
    """One label, without a domain."""
    if not _HOST.fullmatch(text):
        raise ValueError(
            f"{text!r} is not the name of a host: 1 to 63 letters, digits and inner hyphens, no"
            " domain"
        )
    return text.lower()


def domain(reach: Reaching | None = None) -> Shape:
    """reach: of the addresses that the name may stand for, where anything is sent there."""
    json = {"minLength": 1, "maxLength": _LONGEST + 1}
    return parsed(parse_domain, "domain", json, reach=reach)
