"""WireGuard devices as generic netlink tells and takes them."""

from __future__ import annotations

import socket
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.kinds.wireguard import Peer
from holdfast.host.netlink import attributes, generic

GET_DEVICE, SET_DEVICE = 0, 1
_REPLACE_PEERS = 1
_IFINDEX, _PRIVATE_KEY, _PUBLIC_KEY, _FLAGS, _LISTEN_PORT, _FWMARK, _PEERS = 1, 3, 4, 5, 6, 7, 8

_REMOVE_ME, _REPLACE_ALLOWED, _UPDATE_ONLY = 1, 2, 4
_PEER_KEY, _PEER_PSK, _PEER_FLAGS, _PEER_ENDPOINT, _PEER_KEEPALIVE = 1, 2, 3, 4, 5
_PEER_RECEIVED, _PEER_ALLOWED = 7, 9

_FAMILY, _ADDRESS, _MASK = 1, 2, 3

_NO_KEY = bytes(32)
# An attribute holds less than 64 KiB: the peers of one message, and of one peer its prefixes.
_MESSAGE = 48 << 10
_PREFIXES = 400


@dataclass(frozen=True, slots=True)
class SeenPeer:
    peer: Peer
    received: int = 0  # bytes, of what was proven to come from it


@dataclass(frozen=True, slots=True)
class Device:
    index: int
    public_key: str = ""  # "" without a private key
    private_key: str = field(default="", repr=False)
    listen_port: int = 0
    fwmark: int = 0
    peers: dict[str, SeenPeer] = field(default_factory=dict)  # by public key

    @property
    def blank(self) -> bool:
        """As a link is made. A port tells nothing: the kernel picks one when it goes up."""
        return not (self.public_key or self.fwmark or self.peers)


def decode(bodies: Iterable[bytes], index: int) -> Device:
    """A device from the messages of its dump. A peer with many prefixes goes on in the next
    message, with its key said again and nothing else but prefixes."""
    device = Device(index)
    peers: dict[str, SeenPeer] = {}
    for body in bodies:
        found = attributes.parse(body, generic.HEADER_SIZE)
        if _LISTEN_PORT in found:
            device = replace(
                device,
                public_key=_key(found.get(_PUBLIC_KEY, b"")),
                private_key=_key(found.get(_PRIVATE_KEY, b"")),
                listen_port=attributes.to_int(found[_LISTEN_PORT]),
                fwmark=attributes.to_int(found.get(_FWMARK, b"")),
            )
        for entry in _entries(found.get(_PEERS, b"")):
            seen = _peer(attributes.parse(entry))
            first = peers.get(seen.peer.public_key)
            if first is not None:
                allowed = first.peer.allowed_ips + seen.peer.allowed_ips
                seen = replace(first, peer=replace(first.peer, allowed_ips=allowed))
            peers[seen.peer.public_key] = seen
    return replace(device, peers=peers)


def _entries(data: bytes) -> Iterator[bytes]:
    """The members of a list: attributes that all have the same type."""
    offset = 0
    while offset + 4 <= len(data):
        (length,) = struct.unpack_from("=H", data, offset)
        if length < 4:
            raise struct.error("attribute cut short")
        yield data[offset + 4 : offset + length]
        offset += (length + 3) & ~3


def _key(raw: bytes) -> str:
    return b64encode(raw).decode() if any(raw) else ""


def _peer(found: dict[int, bytes]) -> SeenPeer:
    peer = Peer(
        public_key=b64encode(found[_PEER_KEY]).decode(),
        allowed_ips=tuple(map(_prefix, _entries(found.get(_PEER_ALLOWED, b"")))),
        endpoint=_endpoint(found.get(_PEER_ENDPOINT, b"")),
        keepalive=attributes.to_int(found.get(_PEER_KEEPALIVE, b"")),
        preshared_key=_key(found.get(_PEER_PSK, b"")),
    )
    return SeenPeer(peer, attributes.to_int(found.get(_PEER_RECEIVED, b"")))


def _prefix(entry: bytes) -> str:
    found = attributes.parse(entry)
    return f"{ip_address(found[_ADDRESS])}/{attributes.to_int(found[_MASK])}"


def _endpoint(raw: bytes) -> str:
    """A struct sockaddr_in or sockaddr_in6."""
    if not raw:
        return ""
    (family,) = struct.unpack_from("=H", raw)
    (port,) = struct.unpack_from("!H", raw, 2)
    if family == socket.AF_INET:
        return f"{ip_address(raw[4:8])}:{port}"
    (scope,) = struct.unpack_from("=I", raw, 24)
    zone = f"%{scope}" if scope else ""
    return f"[{ip_address(raw[8:24])}{zone}]:{port}"


def _packed_endpoint(text: str) -> bytes:
    address, _, port = text.rpartition(":")
    ip = ip_address(address.strip("[]"))
    if ip.version == 4:
        family = struct.pack("=H", socket.AF_INET)
        return family + struct.pack("!H", int(port)) + ip.packed + bytes(8)
    family = struct.pack("=H", socket.AF_INET6)
    return family + struct.pack("!HI", int(port), 0) + ip.packed + bytes(4)


def get_device(index: int) -> bytes:
    return generic.header(GET_DEVICE) + attributes.u32(_IFINDEX, index)


def blank(index: int) -> bytes:
    """Takes off everything that can be told to a device."""
    return (
        _set(index)
        + attributes.u32(_FLAGS, _REPLACE_PEERS)
        + attributes.attribute(_PRIVATE_KEY, _NO_KEY)
        + attributes.u16(_LISTEN_PORT, 0)
        + attributes.u32(_FWMARK, 0)
    )


def set_private_key(index: int, key: str) -> bytes:
    return _set(index) + attributes.attribute(_PRIVATE_KEY, b64decode(key))


def set_listen_port(index: int, port: int) -> bytes:
    return _set(index) + attributes.u16(_LISTEN_PORT, port)


def set_fwmark(index: int, mark: int) -> bytes:
    return _set(index) + attributes.u32(_FWMARK, mark)


def set_peers(index: int, peers: Iterable[bytes]) -> list[bytes]:
    """As many messages as it takes. peers: each as `new_peer`, `changed_peer` and `removed_peer`
    encode it."""
    lists: list[list[bytes]] = []
    size = 0
    for peer in peers:
        if not lists or size + len(peer) > _MESSAGE:
            lists.append([])
            size = 0
        lists[-1].append(peer)
        size += len(peer)
    return [_set(index) + attributes.nested(_PEERS, *members) for members in lists]


def _set(index: int) -> bytes:
    return generic.header(SET_DEVICE) + attributes.u32(_IFINDEX, index)


def new_peer(peer: Peer) -> Iterator[bytes]:
    own = attributes.u32(_PEER_FLAGS, _REPLACE_ALLOWED)
    if peer.preshared_key:
        own += attributes.attribute(_PEER_PSK, b64decode(peer.preshared_key))
    own += _endpoint_and_keepalive(peer.endpoint, peer.keepalive)
    return _in_pieces(peer.public_key, own, peer.allowed_ips)


def changed_peer(before: Peer, after: Peer) -> Iterator[bytes]:
    """Only what differs, so that a session goes on. Prefixes that are only added are added; to take
    one away the kernel has to be told all."""
    missing = [
        allowed_ip for allowed_ip in after.allowed_ips if allowed_ip not in set(before.allowed_ips)
    ]
    replaces = not set(before.allowed_ips) <= set(after.allowed_ips)
    own = attributes.u32(_PEER_FLAGS, _UPDATE_ONLY | (_REPLACE_ALLOWED if replaces else 0))
    if before.preshared_key != after.preshared_key:
        own += attributes.attribute(_PEER_PSK, b64decode(after.preshared_key) or _NO_KEY)
    own += _endpoint_and_keepalive(
        after.endpoint if after.endpoint != before.endpoint else "",
        after.keepalive if after.keepalive != before.keepalive else None,
    )
    return _in_pieces(after.public_key, own, after.allowed_ips if replaces else missing)


def removed_peer(public_key: str) -> bytes:
    return _encoded(public_key, attributes.u32(_PEER_FLAGS, _REMOVE_ME))


def _endpoint_and_keepalive(endpoint: str, keepalive: int | None) -> bytes:
    own = b""
    if endpoint:
        own += attributes.attribute(_PEER_ENDPOINT, _packed_endpoint(endpoint))
    if keepalive is not None:
        own += attributes.u16(_PEER_KEEPALIVE, keepalive)
    return own


def _in_pieces(public_key: str, own: bytes, prefixes: Iterable[str]) -> Iterator[bytes]:
    encoded = [_encoded_prefix(prefix) for prefix in prefixes]
    yield _encoded(public_key, own, encoded[:_PREFIXES])
    for start in range(_PREFIXES, len(encoded), _PREFIXES):
        more = attributes.u32(_PEER_FLAGS, _UPDATE_ONLY)
        yield _encoded(public_key, more, encoded[start : start + _PREFIXES])


def _encoded(public_key: str, own: bytes, prefixes: Iterable[bytes] = ()) -> bytes:
    allowed = attributes.nested(_PEER_ALLOWED, *prefixes)
    key = attributes.attribute(_PEER_KEY, b64decode(public_key))
    return attributes.nested(0, key, own, allowed)


def _encoded_prefix(text: str) -> bytes:
    network = ip_network(text)
    family = socket.AF_INET if network.version == 4 else socket.AF_INET6
    return attributes.nested(
        0,
        attributes.u16(_FAMILY, family),
        attributes.attribute(_ADDRESS, network.network_address.packed),
        attributes.u8(_MASK, network.prefixlen),
    )
