"""Network values as they are written in YAML: addresses, prefixes, names, numbers."""

from __future__ import annotations

import re
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from typing import Any

from holdfast.resources.spec.shape import Shape, no_networks, parsed

Address = IPv4Address | IPv6Address
Interface = IPv4Interface | IPv6Interface
Network = IPv4Network | IPv6Network

TABLES = {"default": 253, "main": 254, "local": 255}
LOCAL_TABLE = 255
_TABLE_MAX = _MARK_MAX = 0xFFFFFFFF
EVERYTHING: dict[int, Network] = {4: IPv4Network("0.0.0.0/0"), 6: IPv6Network("::/0")}
_MAC = r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}"
_IFNAME_MAX = 15  # IFNAMSIZ, less the final NUL


def parse_address(text: str, family: int = 0) -> Address:
    if "%" in text:
        raise ValueError(f"{text!r} carries a zone; name the interface in its own field")
    try:
        address = ip_address(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an {_family(family)} address") from None
    if family and address.version != family:
        raise ValueError(f"{text} is an IPv{address.version} address, IPv{family} is needed")
    return address


def _family(family: int) -> str:
    return f"IPv{family}" if family else "IP"


def parse_interface(text: str, family: int) -> Interface:
    """An address with its prefix length, fit to stand on a link."""
    address, slash, length = text.partition("/")
    parse_address(address, family)
    if not slash:
        raise ValueError(
            f"{text} lacks its prefix length, as in {text}/{24 if family == 4 else 64}"
        )
    if not length.isdecimal() or int(length) > (32 if family == 4 else 128):
        raise ValueError(_no_length(length))
    interface = ip_interface(f"{address}/{int(length)}")
    network = interface.network
    if interface.ip.is_multicast or interface.ip.is_unspecified:
        raise ValueError(f"{interface.ip} cannot be the address of an interface")
    if family == 4 and network.prefixlen < 31:
        if interface.ip == network.network_address:
            raise ValueError(f"{interface.ip} is the network address of {network}")
        if interface.ip == network.broadcast_address:
            raise ValueError(f"{interface.ip} is the broadcast address of {network}")
    return interface


def _no_length(text: str) -> str:
    said = f"{text!r} is not a prefix length"
    if "." not in text:
        return said
    try:
        return f"{said}; write /{ip_network(f'0.0.0.0/{text}').prefixlen}"
    except ValueError:
        return said


def parse_prefix(text: str, family: int = 0) -> Network:
    """A destination or a selector; a bare address stands for itself alone."""
    address, slash, length = text.partition("/")
    bits = 32 if parse_address(address, family).version == 4 else 128
    if slash and (not length.isdecimal() or int(length) > bits):
        raise ValueError(_no_length(length))
    interface = ip_interface(f"{address}/{int(length) if slash else bits}")
    if interface.ip != interface.network.network_address:
        raise ValueError(f"{text} has host bits set; the prefix is {interface.network}")
    return interface.network


def parse_destination(text: str, family: int) -> Network:
    if text == "default":
        return parse_prefix("0.0.0.0/0" if family == 4 else "::/0", family)
    return parse_prefix(text, family)


def parse_ifname(text: str) -> str:
    size = len(text.encode())
    if not text:
        raise ValueError("an interface name cannot be empty")
    if size > _IFNAME_MAX:
        raise ValueError(f"{text!r} is {size} bytes long, the kernel takes {_IFNAME_MAX}")
    if text in (".", "..") or "/" in text or ":" in text or any(c.isspace() for c in text):
        raise ValueError(
            f"{text!r} cannot name an interface: no '/', ':' or blanks, and neither '.' nor '..'"
        )
    if not text.isprintable() or "%" in text:
        # The kernel reads % as a pattern to number the interface by (eth%d).
        raise ValueError(f"{text!r} cannot name an interface: no '%' or control characters")
    return text


def parse_mac(text: str) -> str:
    if not re.fullmatch(_MAC, text):
        raise ValueError(f"{text!r} is not a MAC address such as 02:00:5e:10:00:01")
    if int(text[:2], 16) & 1:
        raise ValueError(f"{text} is a group address; an interface needs an individual one")
    if text == "00:00:00:00:00:00":
        raise ValueError("a MAC address cannot be all zeros")
    return text.lower()


def parse_table(value: Any) -> int:
    if isinstance(value, str) and value in TABLES:
        return TABLES[value]
    if type(value) is not int:
        raise ValueError(f"{value!r} is neither a table number nor `main` or `default`")
    if not 1 <= value <= _TABLE_MAX:
        raise ValueError(f"{value} is not a table: they go from 1 to {_TABLE_MAX}")
    return value


def parse_route_table(value: Any) -> int:
    table = parse_table(value)
    if table == LOCAL_TABLE:
        raise ValueError("table local (255) is the kernel's own")
    return table


def parse_mark(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", value):
        value = int(value, 0) if value[:2] in ("0x", "0X") else int(value)
    if type(value) is not int or not 0 <= value <= _MARK_MAX:
        raise ValueError(f"{value!r} is not a mark: a number up to {_MARK_MAX:#x}")
    return value


def parse_encap_limit(value: Any) -> str:
    if value != "none" and (type(value) is not int or not 0 <= value <= 255):
        raise ValueError(f"{value!r} is neither `none` nor a number from 0 to 255")
    return str(value)


def address(family: int = 0) -> Shape:
    shown = f"{_family(family)} address"
    return parsed(lambda text: parse_address(text, family), shown, reach=_alone)


def _alone(value: Address) -> tuple[Network]:
    return (ip_network(value),)


def _itself(value: Network) -> tuple[Network]:
    return (value,)


def _around(value: Interface) -> tuple[Network]:
    """With the address comes a route to its whole network."""
    return (value.network,)


def any_ipv6(_value: Any) -> tuple[Network]:
    """The reach of a value that is an IPv6 address only together with what is not known yet."""
    return (EVERYTHING[6],)


def interface_address(family: int) -> Shape:
    shown = f"IPv{family} address with prefix length"
    pattern = {"pattern": "/[0-9]+$"}
    return parsed(lambda text: parse_interface(text, family), shown, pattern, reach=_around)


def prefix(family: int = 0) -> Shape:
    shown = f"IPv{family} prefix or address" if family else "prefix or address"
    return parsed(lambda text: parse_prefix(text, family), shown, reach=_itself)


def destination(family: int) -> Shape:
    shown = f"IPv{family} prefix, or `default`"
    return parsed(lambda text: parse_destination(text, family), shown, reach=_itself)


def ifname() -> Shape:
    shown = f"kernel interface name, at most {_IFNAME_MAX} bytes"
    pattern = r"^[^\s/:%]+$"
    json = {"minLength": 1, "maxLength": 15, "pattern": pattern}
    return parsed(parse_ifname, shown, json, ifname=True, reach=no_networks)


def mac() -> Shape:
    return parsed(parse_mac, "MAC address", {"pattern": f"^{_MAC}$"}, reach=no_networks)


_TABLE_JSON = {"type": "integer", "minimum": 1, "maximum": _TABLE_MAX}


def route_table() -> Shape:
    json = {"anyOf": [{**_TABLE_JSON, "not": {"const": 255}}, {"enum": ["main", "default"]}]}
    shown = "table number, `main` or `default`; not 255"
    return Shape(parse_route_table, json, shown, reach=no_networks)


def rule_table() -> Shape:
    json = {"anyOf": [_TABLE_JSON, {"enum": list(TABLES)}]}
    shown = "table number, `main`, `default` or `local`"
    return Shape(parse_table, json, shown, reach=no_networks)


def mark() -> Shape:
    json = {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": _MARK_MAX},
            {"type": "string", "pattern": "^(0[xX][0-9a-fA-F]+|[0-9]+)$"},
        ]
    }
    shown = f"number, also as 0x…, up to {_MARK_MAX:#x}"
    return Shape(parse_mark, json, shown, reach=no_networks)


def encap_limit() -> Shape:
    json = {"anyOf": [{"const": "none"}, {"type": "integer", "minimum": 0, "maximum": 255}]}
    return Shape(parse_encap_limit, json, "`none` or 0 to 255", reach=no_networks)
