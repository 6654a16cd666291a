"""Links as the kernel tells them, and single links looked up by name or index."""

from __future__ import annotations

import errno
import struct

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact, Value
from holdfast.engine.kinds.link import link
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links import link_types
from holdfast.host.netlink.links.link_names import IFLA_EXT_MASK, IFLA_IFNAME, RTM_GETLINK
from holdfast.host.netlink.links.link_types import Names
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request

IFLA_ADDRESS, IFLA_MTU, IFLA_MASTER, IFLA_IFALIAS, IFLA_GROUP = 1, 4, 10, 20, 27
IFF_UP = 1
_SKIP_STATS = 1 << 3

_HEADER = struct.Struct("=BBHiII")


@dataclass(frozen=True, slots=True)
class SeenLink:
    artifact: Artifact
    index: int
    group: int
    kind: str
    up: bool


def header(index: int = 0, flags: int = 0, change: int = 0) -> bytes:
    return _HEADER.pack(0, 0, 0, index, flags, change)


def decode(body: bytes, name_of: Names) -> SeenLink:
    _family, _pad, _type, index, flags, _change = _HEADER.unpack_from(body)
    found = attributes.parse(body, 16)
    kind = link_types.kind_of(found)
    master = attributes.to_int(found.get(IFLA_MASTER, b""))
    fields: dict[str, Value] = {
        "type": kind,
        "up": bool(flags & IFF_UP),
        "mtu": attributes.to_int(found.get(IFLA_MTU, b"")),
        "mac": found.get(IFLA_ADDRESS, b"").hex(":"),
        "master": name_of(master) if master else "",
        "alias": attributes.to_text(found.get(IFLA_IFALIAS, b"")),
        **link_types.type_fields(found, name_of),
        "ifindex": index,
    }
    return SeenLink(
        artifact=link(attributes.to_text(found[IFLA_IFNAME]), fields),
        index=index,
        group=attributes.to_int(found.get(IFLA_GROUP, b"")),
        kind=kind,
        up=bool(flags & IFF_UP),
    )


def find_link(sock: NetlinkSocket, name: str) -> bytes | None:
    """The link of this very name. The kernel also answers to alternative names, which are not
    identities here."""
    body = _get(sock, header() + attributes.text(IFLA_IFNAME, name), f"link {name}")
    if body is None or attributes.to_text(attributes.parse(body, 16)[IFLA_IFNAME]) != name:
        return None
    return body


def find_index(sock: NetlinkSocket, name: str) -> int | None:
    body = find_link(sock, name)
    return None if body is None else attributes.to_int(body[4:8])


def get_link(sock: NetlinkSocket, index: int) -> bytes | None:
    return _get(sock, header(index), f"link {index}")


def name_of(sock: NetlinkSocket, index: int) -> str:
    body = get_link(sock, index)
    return "" if body is None else attributes.to_text(attributes.parse(body, 16)[IFLA_IFNAME])


def _get(sock: NetlinkSocket, body: bytes, what: str) -> bytes | None:
    mask = attributes.u32(IFLA_EXT_MASK, _SKIP_STATS)
    answer = sock.get(Request(RTM_GETLINK, 0, body + mask))
    if not isinstance(answer, NetlinkError):
        return answer
    if answer.errno == errno.ENODEV:
        return None
    raise DriverError(f"cannot read {what}: {answer}")
