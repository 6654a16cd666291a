"""Single probes of a target, from inside the process: each answers what went wrong, or nothing.

Sockets are bound to an interface or a mark before anything is sent, so that a probe takes the path
it is to judge and no other.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import struct

from holdfast.resources.uplinks.health_target import Target

_SO_MARK = 36
_ICMP6_FILTER = 1
_ECHO = {4: (8, 0), 6: (128, 129)}  # request, reply
_LONGEST_HEAD = 4096


async def probe(target: Target, timeout: float) -> str:
    """What went wrong; empty where the target answered as it should."""
    asked = asyncio.ensure_future(_KINDS[target.kind](target))
    try:
        # Not asyncio.timeout(): where this process gets no core for as long, it would take an
        # answer that has been there for a while, and is about to be read, for none.
        await asyncio.wait((asked,), timeout=timeout)
        if asked.done():
            return asked.result()
        return f"no answer from {target.address} within {timeout:g} s"
    except OSError as error:
        # asyncio puts its own words in place of the system's.
        return f"{target.address}: {os.strerror(error.errno) if error.errno else error}"
    finally:
        asked.cancel()


def _socket(target: Target, kind: int, protocol: int = 0) -> socket.socket:
    family = socket.AF_INET if target.family == 4 else socket.AF_INET6
    made = socket.socket(family, kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, protocol)
    try:
        if target.ifname:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, target.ifname.encode())
        if target.mark:
            made.setsockopt(socket.SOL_SOCKET, _SO_MARK, target.mark)
        if target.source is not None:
            made.bind((str(target.source), 0))
    except OSError:
        made.close()
        raise
    return made


def _place(target: Target, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
    if target.family == 4:
        return str(target.address), port
    link_local = target.address.is_link_local and target.ifname
    scope = socket.if_nametoindex(target.ifname) if link_local else 0
    return str(target.address), port, 0, scope


async def _ping(target: Target) -> str:
    """A raw socket: ping sockets are for groups that a sysctl names, which is none by default."""
    loop = asyncio.get_running_loop()
    request, reply = _ECHO[target.family]
    protocol = socket.IPPROTO_ICMP if target.family == 4 else socket.IPPROTO_ICMPV6
    token = secrets.token_bytes(16)
    with _socket(target, socket.SOCK_RAW, protocol) as sock:
        if target.family == 6:
            let_in(sock, reply)  # the kernel also fills in the checksum
        head = struct.pack("!BBHHH", request, 0, 0, os.getpid() & 0xFFFF, 1)
        if target.family == 4:
            head = head[:2] + struct.pack("!H", _checksum(head + token)) + head[4:]
        await loop.sock_sendto(sock, head + token, _place(target, 0))
        while True:
            data, source = await loop.sock_recvfrom(sock, 2048)
            if target.family == 4:
                data = data[(data[0] & 0xF) * 4 :]
            # The token tells our answer from those to every other ping on this machine.
            if data[:1] == bytes((reply,)) and data[8:] == token:
                sender = source[0].partition("%")[0]
                if sender == str(target.address):
                    return ""


def let_in(sock: socket.socket, kind: int) -> None:
    """Let only ICMPv6 messages of one kind reach a raw socket."""
    blocked = bytearray(b"\xff" * 32)
    blocked[kind // 8] &= ~(1 << kind % 8) & 0xFF
    sock.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, bytes(blocked))


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


async def _tcp(target: Target) -> str:
    loop = asyncio.get_running_loop()
    with _socket(target, socket.SOCK_STREAM) as sock:
        await loop.sock_connect(sock, _place(target, target.port))
    return ""


async def _http(target: Target) -> str:
    loop = asyncio.get_running_loop()
    shown = str(target.address) if target.family == 4 else f"[{target.address}]"
    host = target.host or (shown if target.port == 80 else f"{shown}:{target.port}")
    with _socket(target, socket.SOCK_STREAM) as sock:
        await loop.sock_connect(sock, _place(target, target.port))
        request = (
            f"GET {target.path} HTTP/1.1\r\nHost: {host}\r\n"
            "User-Agent: holdfast\r\nConnection: close\r\n\r\n"
        )
        await loop.sock_sendall(sock, request.encode())
        head = b""
        while b"\n" not in head and len(head) < _LONGEST_HEAD:
            data = await loop.sock_recv(sock, 1024)
            if not data:
                break
            head += data
    words = head.split(b"\n")[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        return f"{shown} port {target.port} did not answer in HTTP"
    status = int(words[1])
    return "" if 200 <= status < 400 else f"{shown}{target.path} answered {status}"


async def _dns(target: Target) -> str:
    """Any answer of a server that works will do, also that there is no such name."""
    from holdfast.host.facts.dns_message import (  # few checks are of this kind
        Nonsense,
        ServerFailed,
        Truncated,
        encode_question,
        parse_name,
        read_answer,
    )

    loop = asyncio.get_running_loop()
    identity = secrets.randbelow(1 << 16)
    name = parse_name(target.name)
    with _socket(target, socket.SOCK_DGRAM) as sock:
        sock.connect(_place(target, target.port))
        await loop.sock_sendall(sock, encode_question(identity, name, 4))
        while True:
            data = await loop.sock_recv(sock, 4096)
            try:
                read_answer(data, identity, name, 4)
            except Nonsense:
                continue
            except Truncated:
                pass
            except ServerFailed as error:
                return f"{target.address} could not answer: {error}"
            return ""


_KINDS = {"ping": _ping, "tcp": _tcp, "http": _http, "dns": _dns}
