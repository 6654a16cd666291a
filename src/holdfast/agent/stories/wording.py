"""Artifacts and fields in words: the language of `ip` where it has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.engine.artifact import Value
from holdfast.engine.document import Entry

GLYPHS = {"create": "+", "update": "~", "replace": "-/+", "delete": "-", "forget": "·", "keep": "="}
_OWNERS = 5
LOOKS = {
    "create": ("green",),
    "update": ("yellow",),
    "replace": ("magenta",),
    "delete": ("red",),
    "forget": ("cyan",),
    "keep": ("dim",),
}


def artifact(entry: Entry, fields: Mapping[str, Value] | None = None) -> str:
    """`route 10.0.0.0/24 via 192.0.2.1 dev wan0`; without fields, its identity alone."""
    kind, name = entry["kind"], entry["name"]
    shown = _SHOWN.get(kind)
    if fields is None or shown is None:
        return f"{kind} {name}" if kind != "hostname" else "hostname"
    return " ".join(word for word in shown(name, fields) if word)


def owners(given: Sequence[str]) -> str:
    """The first few of them: a table of a firewall may be made of a thousand resources."""
    shown = ", ".join(given[:_OWNERS])
    return f"{shown} and {len(given) - _OWNERS} more" if len(given) > _OWNERS else shown


def value(given: Value | list[str]) -> str:
    """A field's value on a line of its own."""
    if given is None:
        return "(none)"
    if isinstance(given, bool):
        return "yes" if given else "no"
    if isinstance(given, list | tuple):
        return ", ".join(given) if given else "(none)"
    return str(given) if given != "" else "(none)"


def _route(name: str, fields: Mapping[str, Any]) -> list[str]:
    prefix, _, rest = name.partition(" ")
    kind = fields.get("type", "unicast")
    words = ["route", kind if kind != "unicast" else "", prefix]
    nexthops: Sequence[str] = fields.get("nexthops") or ()
    if len(nexthops) == 1:
        words.append(nexthops[0])
    else:
        words += [f"nexthop {nexthop}" for nexthop in nexthops]
    words.append(rest)
    if fields.get("prefsrc"):
        words += ["src", fields["prefsrc"]]
    if fields.get("mtu"):
        words += ["mtu", str(fields["mtu"])]
    return words


def _link(name: str, fields: Mapping[str, Any]) -> list[str]:
    words = ["link", name]
    if fields.get("type"):
        words += ["type", fields["type"]]
    for field, given in fields.items():
        if field in ("type", "up", "ifindex") or given in (None, ""):
            continue
        words += [field, value(given)]
    if "up" in fields:
        words.append("up" if fields["up"] else "down")
    return words


def _address(name: str, fields: Mapping[str, Any]) -> list[str]:
    # The name of an IPv6 address is without its prefix length: the kernel keeps only one.
    address, _, rest = name.partition(" ")
    if "/" not in address and "prefix_length" in fields:
        address += f"/{fields['prefix_length']}"
    words = ["address", address, rest]
    if fields.get("scope", "global") != "global":
        words += ["scope", fields["scope"]]
    if fields.get("no_prefix_route") is True:
        words.append("noprefixroute")
    return words


def _wireguard(name: str, fields: Mapping[str, Any]) -> list[str]:
    words = ["wireguard", name]
    if fields.get("listen_port") is not None:
        words += ["listen-port", str(fields["listen_port"])]
    if fields.get("fwmark"):
        words += ["fwmark", f"{fields['fwmark']:#x}"]
    return [*words, "peers", str(len(fields.get("peers") or ()))]


_SHOWN: dict[str, Callable[[str, Mapping[str, Any]], list[str]]] = {
    "route": _route,
    "link": _link,
    "address": _address,
    "wireguard": _wireguard,
    "neighbour": lambda name, fields: ["neighbour", name, "lladdr", str(fields.get("mac"))],
    "sysctl": lambda name, fields: ["sysctl", name, "=", value(fields.get("value"))],
    "hostname": lambda _name, fields: ["hostname", value(fields.get("hostname"))],
    "file": lambda name, fields: ["file", name, "mode", value(fields.get("mode"))],
}
