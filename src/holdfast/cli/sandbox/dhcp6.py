"""A DHCPv6 server as a provider has one: whoever asks is lent an address and a prefix (RFC 8415).

dnsmasq, which is the rest of the provider, cannot delegate prefixes.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv6Address, IPv6Network
from typing import NoReturn

from holdfast.dataclass import dataclass, field

_SERVER_PORT, _CLIENT_PORT = 547, 546
_AGENTS_AND_SERVERS = "ff02::1:2"
_SOLICIT, _ADVERTISE, _REQUEST, _CONFIRM, _RENEW, _REBIND, _REPLY = 1, 2, 3, 4, 5, 6, 7
_RELEASE, _DECLINE, _INFORMATION_REQUEST = 8, 9, 11
_LENDING = {_SOLICIT, _REQUEST, _RENEW, _REBIND}
_CLIENT_ID, _SERVER_ID, _IA_NA, _ADDRESS, _PREFERENCE, _STATUS = 1, 2, 3, 5, 7, 13
_RAPID_COMMIT, _DNS, _IA_PD, _PREFIX = 14, 23, 25, 26
_OPTION = struct.Struct("!HH")
_IA = struct.Struct("!4sII")
_LENT_PREFIX = struct.Struct("!IIB16s")
_PREFERRED_S, _VALID_S = 3600, 7200
_AT_ONCE = 255  # the preference that makes a client wait for no other server
_LENGTHS = range(48, 65)
_LENGTH = 56  # of the prefix for a client that wishes for none in particular


@dataclass(frozen=True, slots=True)
class Link:
    """One network that is served."""

    ifname: str
    gateway: IPv6Address  # of the provider, which answers names too; addresses are of its /64
    pool: IPv6Network  # of which every delegation is a /48, or the first part of one


@dataclass(slots=True)
class Server:
    link: Link
    duid: bytes = field(default_factory=lambda: b"\0\4" + secrets.token_bytes(16))
    _numbers: dict[bytes, int] = field(default_factory=dict)  # of each client's association

    def answer(self, data: bytes) -> tuple[bytes, list[IPv6Network]]:
        """Nothing where there is nothing to say; and the prefixes that are delegated by it."""
        if len(data) < 4:
            return b"", []
        options = list(_options(data[4:]))
        first = dict(reversed(options))
        client = first.get(_CLIENT_ID, b"")
        if data[0] not in _LENDING | {_CONFIRM, _RELEASE, _DECLINE, _INFORMATION_REQUEST}:
            return b"", []
        if first.get(_SERVER_ID, self.duid) != self.duid:
            return b"", []
        said = [_option(_SERVER_ID, self.duid), _option(_DNS, self.link.gateway.packed)]
        if client:
            said.append(_option(_CLIENT_ID, client))
        kind = _REPLY
        delegated: list[IPv6Network] = []
        if data[0] in _LENDING:
            said += self._lend(client, options, delegated)
        elif data[0] != _INFORMATION_REQUEST:
            said.append(_option(_STATUS, bytes(2)))
        if data[0] == _SOLICIT and _RAPID_COMMIT in first:
            said.append(_option(_RAPID_COMMIT, b""))
        elif data[0] == _SOLICIT:
            kind = _ADVERTISE
            said.append(_option(_PREFERENCE, bytes((_AT_ONCE,))))
        return bytes((kind,)) + data[1:4] + b"".join(said), delegated

    def _lend(
        self, client: bytes, options: Sequence[tuple[int, bytes]], delegated: list[IPv6Network]
    ) -> Iterator[bytes]:
        for kind, value in options:
            if kind not in (_IA_NA, _IA_PD) or len(value) < _IA.size:
                continue
            number = self._numbers.setdefault(client + value[:4], len(self._numbers))
            if kind == _IA_NA:
                address = IPv6Network((self.link.gateway, 64), strict=False)[0x100 + number]
                times = struct.pack("!II", _PREFERRED_S, _VALID_S)
                lent = _option(_ADDRESS, address.packed + times)
            else:
                prefix = self._prefix(number, value[_IA.size :])
                delegated.append(prefix)
                parts = _PREFERRED_S, _VALID_S, prefix.prefixlen, prefix.network_address.packed
                lent = _option(_PREFIX, _LENT_PREFIX.pack(*parts))
            head = _IA.pack(value[:4], _PREFERRED_S // 2, _PREFERRED_S * 4 // 5)
            yield _option(kind, head + lent)

    def _prefix(self, number: int, wishes: bytes) -> IPv6Network:
        length = _LENGTH
        for kind, value in _options(wishes):
            if kind == _PREFIX and len(value) >= _LENT_PREFIX.size and value[8] in _LENGTHS:
                length = value[8]
        start = int(self.link.pool.network_address) + (number << (128 - 48))
        return IPv6Network((start, length))


def serve(links: Sequence[Link], enter: Callable[[], None], route: Callable[..., None]) -> None:
    """In a process of its own, from when this returns until it is ended.

    enter: moves it to where the links are. route: told of each prefix, to whom it went, and the
    link that leads there.
    """
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.close(reader)
            enter()
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
                servers = _listen(sock, links)
                os.close(writer)
                _answer_all(sock, servers, route)
        finally:
            os._exit(1)
    os.close(writer)
    os.read(reader, 1)  # until it listens
    os.close(reader)


def _listen(sock: socket.socket, links: Sequence[Link]) -> dict[int, Server]:
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind(("::", _SERVER_PORT))
    servers = {}
    for link in links:
        index = socket.if_nametoindex(link.ifname)
        group = socket.inet_pton(socket.AF_INET6, _AGENTS_AND_SERVERS) + struct.pack("=I", index)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        servers[index] = Server(link)
    return servers


def _answer_all(
    sock: socket.socket, servers: dict[int, Server], route: Callable[..., None]
) -> NoReturn:
    while True:
        data, (address, _, _, index) = sock.recvfrom(2048)
        server = servers.get(index)
        if server is None:
            continue
        said, delegated = server.answer(data)
        client = address.partition("%")[0]
        for prefix in delegated:
            route(prefix, client, server.link.ifname)
        if said:
            try:
                sock.sendto(said, (client, _CLIENT_PORT, 0, index))
            except OSError:
                continue  # our own address is still being checked; the client asks again


def _option(kind: int, value: bytes) -> bytes:
    return _OPTION.pack(kind, len(value)) + value


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _OPTION.size <= len(data):
        kind, size = _OPTION.unpack_from(data, at)
        yield kind, data[at + 4 : at + 4 + size]
        at += 4 + size
