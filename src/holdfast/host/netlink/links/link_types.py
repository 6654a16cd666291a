"""What each type of link says about itself: IFLA_LINKINFO, both ways."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable

from holdfast.engine.artifact import Fields, Value
from holdfast.host.netlink import attributes

IFLA_IFNAME, IFLA_LINK, IFLA_LINKINFO, IFLA_LINK_NETNSID = 3, 5, 18, 37
INFO_KIND, INFO_DATA, INFO_SLAVE_KIND, INFO_SLAVE_DATA = 1, 2, 4, 5

_BR_STP_STATE, _BR_VLAN_FILTERING = 5, 7
_VLAN_ID, _VLAN_FLAGS, _VLAN_PROTOCOL = 1, 2, 5
_LOOSE_BINDING = 0x4
_VXLAN_ID, _VXLAN_REMOTE, _VXLAN_LINK, _VXLAN_LOCAL, _VXLAN_LEARNING = 1, 2, 3, 4, 7
_VXLAN_PORT, _VXLAN_REMOTE6, _VXLAN_LOCAL6 = 15, 16, 17
_VRF_TABLE = 1
_BOND_MODE, _BOND_MIIMON = 1, 3
_MACVLAN_MODE = 1
_VETH_PEER = 1
_IPTUN_LINK, _IPTUN_LOCAL, _IPTUN_REMOTE, _IPTUN_TTL, _IPTUN_ENCAP_LIMIT = 1, 2, 3, 4, 6
_IPTUN_FLAGS, _IPTUN_PROTO = 8, 9
_IGNORE_ENCAP_LIMIT = 0x1  # IP6_TNL_F_IGN_ENCAP_LIMIT
_STRUCK = {"local": _IPTUN_LOCAL, "remote": _IPTUN_REMOTE, "parent": _IPTUN_LINK}

_VLAN_PROTOCOLS = {"802.1q": 0x8100, "802.1ad": 0x88A8}
_BOND_MODES = {
    "balance-rr": 0, "active-backup": 1, "balance-xor": 2, "broadcast": 3, "802.3ad": 4,
    "balance-tlb": 5, "balance-alb": 6,
}  # fmt: skip
# Types that Holdfast does not make, and that the kernel deletes with the link below them.
_OTHERS_ABOVE = ("ipvlan", "ipvtap", "macsec", "macvtap")
_MACVLAN_MODES = {"private": 1, "vepa": 2, "bridge": 4, "passthru": 8, "source": 16}
_IP6TNL_MODES = {"any": 0, "ipip6": 4, "ip6ip6": 41}  # the protocol carried

# What a link of a type is without being told; the kernel's configuration may say otherwise.
DEFAULTS: dict[tuple[str, str], Value] = {
    ("bridge", "stp"): False,
    ("bridge", "vlan_filtering"): False,
}

Indexes = Callable[[str], int]  # raises DriverError for a link that is not there
Names = Callable[[int], str]


def linkinfo(kind: str, fields: Fields, index_of: Indexes) -> bytes:
    """IFLA_LINKINFO for the fields of this type that are given, and nothing else."""
    data = b"".join(
        _ENCODERS[kind, name](value, index_of)
        for name, value in fields.items()
        if (kind, name) in _ENCODERS
    )
    parts = [attributes.text(INFO_KIND, kind)]
    if data:
        parts.append(attributes.nested(INFO_DATA, data))
    return attributes.nested(IFLA_LINKINFO, *parts)


def changed_tunnel(link: dict[int, bytes], wanted: Fields, index_of: Indexes) -> bytes:
    """IFLA_LINKINFO of an observed tunnel with some fields changed."""
    before = _data(link)
    after = {
        _STRUCK[field]: b"" for field, value in wanted.items() if not value and field in _STRUCK
    }
    for field, value in wanted.items():
        after |= attributes.parse(_ENCODERS["ip6tnl", field](value, index_of))
    if _IPTUN_FLAGS in after:
        others = _number(before, _IPTUN_FLAGS) & ~_IGNORE_ENCAP_LIMIT
        after[_IPTUN_FLAGS] = struct.pack("=I", others | _number(after, _IPTUN_FLAGS))
    # What is not said is set to zero: no end, no parent.
    again = [attributes.attribute(name, said) for name, said in (before | after).items() if said]
    return attributes.nested(
        IFLA_LINKINFO,
        attributes.text(INFO_KIND, "ip6tnl"),
        attributes.nested(INFO_DATA, *again),
    )


def lower_link(kind: str, fields: Fields, index_of: Indexes) -> bytes:
    """The parent, for the types that name it outside of IFLA_LINKINFO."""
    parent = fields.get("parent")
    if kind not in ("vlan", "macvlan") or not parent:
        return b""
    return attributes.u32(IFLA_LINK, index_of(str(parent)))


def kind_of(link: dict[int, bytes]) -> str:
    return attributes.to_text(attributes.parse(link.get(IFLA_LINKINFO, b"")).get(INFO_KIND, b""))


def is_loose(link: dict[int, bytes]) -> bool:
    """Whether a VLAN stays up when its parent goes down."""
    return kind_of(link) == "vlan" and bool(
        attributes.to_int(_data(link).get(_VLAN_FLAGS, b"")[:4]) & _LOOSE_BINDING
    )


def stands_on(link: dict[int, bytes]) -> int:
    """The index of the link below one of a type that others make; 0: none that it would go with.
    Tunnels name one too, and outlive it."""
    if kind_of(link) not in _OTHERS_ABOVE or IFLA_LINK_NETNSID in link:
        return 0
    return _number(link, IFLA_LINK)


def vrf_table(link: dict[int, bytes]) -> int:
    """The table of the VRF that a link is or belongs to; 0 where there is none."""
    info = attributes.parse(link.get(IFLA_LINKINFO, b""))
    if attributes.to_text(info.get(INFO_KIND, b"")) == "vrf":
        return attributes.to_int(attributes.parse(info.get(INFO_DATA, b"")).get(_VRF_TABLE, b""))
    if attributes.to_text(info.get(INFO_SLAVE_KIND, b"")) != "vrf":
        return 0
    return attributes.to_int(attributes.parse(info.get(INFO_SLAVE_DATA, b"")).get(_VRF_TABLE, b""))


def type_fields(link: dict[int, bytes], name_of: Names) -> dict[str, Value]:
    """Every field that the type of an observed link has."""
    decode = _DECODERS.get(kind_of(link))
    return decode(link, _data(link), name_of) if decode else {}


def _data(link: dict[int, bytes]) -> dict[int, bytes]:
    info = attributes.parse(link.get(IFLA_LINKINFO, b""))
    return attributes.parse(info.get(INFO_DATA, b""))


def _number(data: dict[int, bytes], kind: int) -> int:
    return attributes.to_int(data.get(kind, b""))


def _named(numbers: dict[str, int], number: int) -> str:
    return next((name for name, value in numbers.items() if value == number), str(number))


def _lower(link: dict[int, bytes], index: int, name_of: Names) -> str:
    # The index of a link in another namespace means nothing in this one.
    return "" if IFLA_LINK_NETNSID in link or not index else name_of(index)


def _address(data: dict[int, bytes], four: int, six: int) -> str:
    packed = data.get(four) or data.get(six)
    return str(ipaddress.ip_address(packed)) if packed and any(packed) else ""


def _bridge(_link: dict[int, bytes], data: dict[int, bytes], _name_of: Names) -> dict[str, Value]:
    return {
        "stp": _number(data, _BR_STP_STATE) != 0,
        "vlan_filtering": _number(data, _BR_VLAN_FILTERING) != 0,
    }


def _vlan(link: dict[int, bytes], data: dict[int, bytes], name_of: Names) -> dict[str, Value]:
    protocol = int.from_bytes(data.get(_VLAN_PROTOCOL, b"\x81\x00"), "big")
    return {
        "parent": _lower(link, _number(link, IFLA_LINK), name_of),
        "vlan_id": _number(data, _VLAN_ID),
        "vlan_protocol": _named(_VLAN_PROTOCOLS, protocol),
    }


def _vxlan(link: dict[int, bytes], data: dict[int, bytes], name_of: Names) -> dict[str, Value]:
    return {
        "vni": _number(data, _VXLAN_ID),
        "local": _address(data, _VXLAN_LOCAL, _VXLAN_LOCAL6),
        "remote": _address(data, _VXLAN_REMOTE, _VXLAN_REMOTE6),
        "port": int.from_bytes(data.get(_VXLAN_PORT, b""), "big"),
        "parent": _lower(link, _number(data, _VXLAN_LINK), name_of),
        "learning": _number(data, _VXLAN_LEARNING) != 0,
    }


def _vrf(_link: dict[int, bytes], data: dict[int, bytes], _name_of: Names) -> dict[str, Value]:
    return {"table": _number(data, _VRF_TABLE)}


def _veth(link: dict[int, bytes], _data: dict[int, bytes], name_of: Names) -> dict[str, Value]:
    return {"peer": _lower(link, _number(link, IFLA_LINK), name_of)}


def _bond(_link: dict[int, bytes], data: dict[int, bytes], _name_of: Names) -> dict[str, Value]:
    return {
        "mode": _named(_BOND_MODES, _number(data, _BOND_MODE)),
        "miimon": _number(data, _BOND_MIIMON),
    }


def _macvlan(link: dict[int, bytes], data: dict[int, bytes], name_of: Names) -> dict[str, Value]:
    return {
        "parent": _lower(link, _number(link, IFLA_LINK), name_of),
        "mode": _named(_MACVLAN_MODES, _number(data, _MACVLAN_MODE)),
    }


def _ip6tnl(link: dict[int, bytes], data: dict[int, bytes], name_of: Names) -> dict[str, Value]:
    lower = _number(data, _IPTUN_LINK)
    parent = _lower(link, lower, name_of)
    if lower and not parent and IFLA_LINK_NETNSID not in link:
        # The kernel keeps a tunnel whose parent is gone, bound to an index that leads nowhere:
        # that is not the same as having no parent. `ip` writes it so.
        parent = f"if{lower}"
    unlimited = _number(data, _IPTUN_FLAGS) & _IGNORE_ENCAP_LIMIT
    return {
        "local": _address(data, _IPTUN_LOCAL, _IPTUN_LOCAL),
        "remote": _address(data, _IPTUN_REMOTE, _IPTUN_REMOTE),
        "parent": parent,
        "mode": _named(_IP6TNL_MODES, _number(data, _IPTUN_PROTO)),
        "encap_limit": "none" if unlimited else str(_number(data, _IPTUN_ENCAP_LIMIT)),
        "hop_limit": _number(data, _IPTUN_TTL),
    }


_DECODERS: dict[str, Callable[[dict[int, bytes], dict[int, bytes], Names], dict[str, Value]]] = {
    "bridge": _bridge,
    "vlan": _vlan,
    "vxlan": _vxlan,
    "vrf": _vrf,
    "veth": _veth,
    "bond": _bond,
    "macvlan": _macvlan,
    "ip6tnl": _ip6tnl,
}


Encoder = Callable[[Value, Indexes], bytes]


def _u8(kind: int) -> Encoder:
    return lambda value, _index_of: attributes.u8(kind, int(value))  # type: ignore[arg-type]  # int or bool by the kind's contract


def _u16(kind: int) -> Encoder:
    return lambda value, _index_of: attributes.u16(kind, int(value))  # type: ignore[arg-type]  # as above


def _u32(kind: int) -> Encoder:
    return lambda value, _index_of: attributes.u32(kind, int(value))  # type: ignore[arg-type]  # as above


def _u16_network_order(kind: int) -> Encoder:
    return lambda value, _index_of: attributes.attribute(kind, struct.pack("!H", value))


def _either_family(four: int, six: int) -> Encoder:
    def encode(value: Value, _index_of: Indexes) -> bytes:
        if not value:
            return b""
        address = ipaddress.ip_address(str(value))
        return attributes.attribute(four if address.version == 4 else six, address.packed)

    return encode


def _index(kind: int) -> Encoder:
    return lambda value, index_of: attributes.u32(kind, index_of(str(value))) if value else b""


def _encap_limit(value: Value, _index_of: Indexes) -> bytes:
    if value == "none":
        return attributes.u32(_IPTUN_FLAGS, _IGNORE_ENCAP_LIMIT)
    limit = attributes.u8(_IPTUN_ENCAP_LIMIT, int(str(value)))
    return limit + attributes.u32(_IPTUN_FLAGS, 0)


def _peer(value: Value, _index_of: Indexes) -> bytes:
    if not value:
        return b""
    header = bytes(16)  # an ifinfomsg of its own stands before the attributes of the peer
    return attributes.attribute(_VETH_PEER, header + attributes.text(IFLA_IFNAME, str(value)))


_ENCODERS: dict[tuple[str, str], Encoder] = {
    ("bridge", "stp"): _u32(_BR_STP_STATE),
    ("bridge", "vlan_filtering"): _u8(_BR_VLAN_FILTERING),
    ("vlan", "vlan_id"): _u16(_VLAN_ID),
    ("vlan", "vlan_protocol"): lambda value, _index_of: attributes.attribute(
        _VLAN_PROTOCOL, struct.pack("!H", _VLAN_PROTOCOLS[str(value)])
    ),
    ("vxlan", "vni"): _u32(_VXLAN_ID),
    ("vxlan", "local"): _either_family(_VXLAN_LOCAL, _VXLAN_LOCAL6),
    ("vxlan", "remote"): _either_family(_VXLAN_REMOTE, _VXLAN_REMOTE6),
    ("vxlan", "port"): _u16_network_order(_VXLAN_PORT),
    ("vxlan", "parent"): _index(_VXLAN_LINK),
    ("vxlan", "learning"): _u8(_VXLAN_LEARNING),
    ("vrf", "table"): _u32(_VRF_TABLE),
    ("veth", "peer"): _peer,
    ("bond", "mode"): lambda value, _index_of: attributes.u8(_BOND_MODE, _BOND_MODES[str(value)]),
    ("bond", "miimon"): _u32(_BOND_MIIMON),
    ("macvlan", "mode"): lambda value, _index_of: attributes.u32(
        _MACVLAN_MODE, _MACVLAN_MODES[str(value)]
    ),
    ("ip6tnl", "local"): _either_family(_IPTUN_LOCAL, _IPTUN_LOCAL),
    ("ip6tnl", "remote"): _either_family(_IPTUN_REMOTE, _IPTUN_REMOTE),
    ("ip6tnl", "parent"): _index(_IPTUN_LINK),
    ("ip6tnl", "mode"): lambda value, _index_of: attributes.u8(
        _IPTUN_PROTO, _IP6TNL_MODES[str(value)]
    ),
    ("ip6tnl", "encap_limit"): _encap_limit,
    ("ip6tnl", "hop_limit"): _u8(_IPTUN_TTL),
}
