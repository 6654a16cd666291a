"""The IPv6 token of a link (`ip token`): the part of a host in addresses that routers give out the
prefix of. The kernel forgets it with the link's IPv6, which a small MTU ends, or with the link."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

from holdfast.host import steps
from holdfast.host.foreign_state.links import Link
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links.link_codec import header
from holdfast.host.netlink.socket import NetlinkSocket

_RTM_SETLINK = 19
_IFLA_AF_SPEC, _IFLA_INET6_TOKEN = 26, 7


def read(link: Link) -> Iterator[bytes]:
    """With the index of the link before it, where it has one."""
    token = _token(link)
    if any(token):
        yield link.body[4:8] + token


def index(body: bytes) -> int:
    return attributes.to_int(body[:4])


def set_back(sock: NetlinkSocket, body: bytes, now: Link) -> Iterator[str]:
    """Where there is none by now; tells what was set, or "cannot …"."""
    if any(_token(now)):
        return
    token = body[4:]
    told = f"token {ipaddress.ip_address(token)}"
    said = attributes.nested(socket.AF_INET6, attributes.attribute(_IFLA_INET6_TOKEN, token))
    message = header(now.index) + attributes.nested(_IFLA_AF_SPEC, said)
    error = steps.send(sock, _RTM_SETLINK, 0, message)
    yield told if error is None else f"cannot set {told}: {error}"


def _token(link: Link) -> bytes:
    families = attributes.parse(link.said.get(_IFLA_AF_SPEC, b""))
    return attributes.parse(families.get(socket.AF_INET6, b"")).get(_IFLA_INET6_TOKEN, b"")
