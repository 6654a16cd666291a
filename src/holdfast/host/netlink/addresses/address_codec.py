"""Addresses as the kernel tells and takes them: ifaddrmsg and its attributes."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Mapping

from holdfast.dataclass import dataclass, replace
from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.kinds.address import ADDRESS, address
from holdfast.host.netlink import attributes

RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS, _IFA_RT_PRIORITY, _IFA_PROTO = 1, 2, 8, 9, 11
SECONDARY, TENTATIVE, PERMANENT, NO_PREFIX_ROUTE = 0x01, 0x40, 0x80, 0x200
DAD_FAILED = 0x08
TEMPORARY = SECONDARY  # of an IPv6 address: the kernel made it for privacy's sake

# Keeps a link from having no IPv4 address for a moment, which would cost it every route over it.
# Nobody has this one (RFC 7600). It is tagged as ours: should it be left behind, the next pass
# deletes it.
PLACEHOLDER = bytes((192, 0, 0, 8))

_HEADER = struct.Struct("=BBBBI")
_SCOPES = {"global": 0, "site": 200, "link": 253, "host": 254, "nowhere": 255}
_SCOPE_NAMES = {number: name for name, number in _SCOPES.items()}
_FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}
FAMILIES = frozenset(map(int, _FAMILY.values()))


@dataclass(frozen=True, slots=True)
class SeenAddress:
    artifact: Artifact
    index: int
    version: int
    ip: bytes
    network: bytes
    prefix_length: int
    scope: str
    flags: int
    protocol: int
    metric: int  # of the route to its prefix; 0: the kernel's choice
    body: bytes

    @property
    def key(self) -> Key:
        return self.artifact.key

    @property
    def subnet(self) -> tuple[int, bytes, int]:
        """The network it is in, on its link."""
        return self.index, self.network, self.prefix_length


def decode(body: bytes, dev: str, vrf: int = 0) -> SeenAddress:
    family, prefix_length, flags, scope_number, index = _HEADER.unpack_from(body)
    found = attributes.parse(body, 8)
    far = found[_IFA_ADDRESS]
    near = found.get(_IFA_LOCAL, far)
    if _IFA_FLAGS in found:
        flags = attributes.to_int(found[_IFA_FLAGS])
    version = 4 if family == socket.AF_INET else 6
    scope = _SCOPE_NAMES.get(scope_number, str(scope_number))
    protocol = attributes.to_int(found.get(_IFA_PROTO, b""))
    artifact = address(
        ipaddress.ip_interface((near, prefix_length)),
        dev,
        scope=scope,
        no_prefix_route=bool(flags & NO_PREFIX_ROUTE),
        vrf=vrf,
    )
    fields = {**artifact.fields, "protocol": protocol}
    if version == 6 and flags & DAD_FAILED:
        # The kernel keeps it, uses it for nothing, and does not check it again.
        fields["duplicate"] = "another machine on the link has it"
    if near != far:
        # A point-to-point address. IPv4 keeps it beside one without a peer, so it is another
        # object; IPv6 allows only one of the two, so it holds the same identity.
        fields["peer"] = socket.inet_ntop(family, far)
        if version == 4:
            artifact = replace(
                artifact, key=Key(ADDRESS.name, f"{artifact.key.name} peer {fields['peer']}")
            )
    network = ipaddress.ip_network((far, prefix_length), strict=False)
    return SeenAddress(
        artifact=replace(artifact, fields=fields),
        index=index,
        version=version,
        ip=near,
        network=network.network_address.packed,
        prefix_length=prefix_length,
        scope=scope,
        flags=flags,
        protocol=protocol,
        metric=attributes.to_int(found.get(_IFA_RT_PRIORITY, b"")),
        body=body,
    )


def encode(fields: Fields, index: int, tag: int) -> bytes:
    """A new address as declared. IPv6 takes its scope from the address itself."""
    ip = ipaddress.ip_address(str(fields["address"]))
    header = _HEADER.pack(
        _FAMILY[ip.version], fields["prefix_length"], 0, _SCOPES[str(fields["scope"])], index
    )
    flags = NO_PREFIX_ROUTE if fields["no_prefix_route"] is True else 0
    return (
        header
        + attributes.attribute(_IFA_LOCAL, ip.packed)
        + attributes.attribute(_IFA_ADDRESS, ip.packed)
        + attributes.u32(_IFA_FLAGS, flags)
        + attributes.u8(_IFA_PROTO, tag)
    )


def placeholder(index: int, tag: int) -> bytes:
    """The message that makes it: a source for nothing, without a route to its prefix."""
    fields: Fields = {
        "address": socket.inet_ntoa(PLACEHOLDER),
        "prefix_length": 32,
        "scope": "host",
        "no_prefix_route": True,
    }
    return encode(fields, index, tag)


def rebuild(seen: SeenAddress, fields: Fields, tag: int) -> bytes:
    """An address as it was seen (label, broadcast, lifetimes), but with the fields declared."""
    family, _prefix_length, low_flags, _scope, index = _HEADER.unpack_from(seen.body)
    flags = seen.flags & ~NO_PREFIX_ROUTE
    if fields["no_prefix_route"] is True:
        flags |= NO_PREFIX_ROUTE
    kept: Mapping[int, bytes] = {
        **attributes.parse(seen.body, 8),
        _IFA_FLAGS: attributes.parse(attributes.u32(_IFA_FLAGS, flags))[_IFA_FLAGS],
        _IFA_PROTO: bytes((tag,)),
    }
    header = _HEADER.pack(
        family, fields["prefix_length"], low_flags, _SCOPES[str(fields["scope"])], index
    )
    return header + b"".join(attributes.attribute(kind, value) for kind, value in kept.items())


def delete_body(seen: SeenAddress) -> bytes:
    """IPv4 tells addresses apart by local address, peer and prefix length: all three are named."""
    found = attributes.parse(seen.body, 8)
    return seen.body[:8] + b"".join(
        attributes.attribute(kind, found[kind])
        for kind in (_IFA_LOCAL, _IFA_ADDRESS)
        if kind in found
    )
