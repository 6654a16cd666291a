"""The peer of a WireGuard link that packets to an address go to, by what the link is told."""

from __future__ import annotations

from ipaddress import ip_network

from holdfast.engine.artifact import Fields
from holdfast.engine.kinds.wireguard import key_of
from holdfast.engine.path.network import IPAddress


def secrets_for(fields: Fields, address: IPAddress) -> tuple[str, str, str] | None:
    """What has to stay for the peer to understand us: our key, its key, and the one they share.
    None where no peer has the address."""
    peers = fields.get("peers")
    found: tuple[int, str] | None = None
    for peer in peers if isinstance(peers, tuple) else ():
        length = _longest(peer, address)
        if length is not None and (found is None or length > found[0]):
            found = length, peer
    if found is None:
        return None
    return str(fields.get("public_key")), key_of(found[1]), _said(found[1], "psk")


def _longest(peer: str, address: IPAddress) -> int | None:
    prefixes = _said(peer, "allowed-ips").split(",")
    networks = [ip_network(prefix) for prefix in prefixes if prefix != "none"]
    return max((network.prefixlen for network in networks if address in network), default=None)


def _said(peer: str, what: str) -> str:
    for word in peer.split():
        name, _, value = word.partition("=")
        if name == what:
            return value
    return ""
