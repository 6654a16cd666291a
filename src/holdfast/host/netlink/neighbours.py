"""Permanent neighbours: tagged by NDA_PROTOCOL, re-read before every change because the kernel's
delete ignores the tag."""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from collections.abc import Callable, Sequence

from holdfast.dataclass import dataclass, replace
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.kinds.neighbour import neighbour
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import steps
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.links.link_codec import find_index
from holdfast.host.netlink.links.link_names import read_names
from holdfast.host.netlink.socket import (
    CREATE,
    EXCL,
    REPLACE,
    NetlinkError,
    NetlinkSocket,
    Request,
)

_RTM_NEWNEIGH, _RTM_DELNEIGH, RTM_GETNEIGH = 28, 29, 30
_NDA_DST, _NDA_LLADDR, _NDA_PROTOCOL, _NDA_FLAGS_EXT = 1, 2, 12, 15
_NUD_PERMANENT, _NUD_NOARP = 0x80, 0x40
_NTF_EXT_LEARNED = 0x10
_HEADER = struct.Struct("=BBHiHBB")
_FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}
_GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)


@dataclass(frozen=True, slots=True)
class _Seen:
    artifact: Artifact
    protocol: int
    declared: bool  # somebody's static entry, not what the kernel learned


class NeighbourDriver(Driver):
    def __init__(self, sock: NetlinkSocket, tag: int, former: frozenset[int] = frozenset()) -> None:
        self._sock = sock
        self._tag = tag
        self._former = former

    def observe(self, scope: Scope) -> Observed:
        bodies = [
            body
            for family in _FAMILY.values()
            for body in self._sock.dump(RTM_GETNEIGH, bytes((family,)) + bytes(11), "neighbours")
        ]
        names = read_names(self._sock).names
        sightings: dict[Key, list[Sighting]] = {}
        for body in bodies:
            dev = names.get(attributes.to_int(body[4:8]))
            if dev is None:  # its link went away meanwhile, and it with the link
                continue
            seen = _decode(body, dev)
            key = seen.artifact.key
            ours = seen.declared and self._is_ours(seen)
            if ours or key in scope.keys or key in scope.claims:
                sightings.setdefault(key, []).append(self._sighting(seen))
        return Observed(sightings)

    def _sighting(self, seen: _Seen) -> Sighting:
        if not seen.declared:
            return Sighting(seen.artifact, holder="learned by the kernel", transient=True)
        if not self._is_ours(seen):
            return Sighting(seen.artifact, holder=tags.holder_text(seen.protocol))
        tag = tags.tag_text(seen.protocol, seen.protocol)
        return Sighting(seen.artifact, tag=tag, retag=tags.retag(seen.protocol, self._tag))

    def _is_ours(self, seen: _Seen) -> bool:
        return seen.protocol == self._tag or seen.protocol in self._former

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    def _step(self, operation: Operation, artifact: Artifact) -> Result:
        if not operation.verb.changes_host:
            return steps.done(operation)
        index = find_index(self._sock, str(artifact.fields["dev"]))
        if index is None:
            if operation.verb is Verb.DELETE:
                return steps.done(operation)
            return steps.failed(operation, f"link {artifact.fields['dev']} does not exist")
        match operation.verb:
            case Verb.CREATE:
                return self._create(operation, artifact, index)
            case Verb.DELETE:
                return self._delete(operation, artifact, index)
            case _:
                return self._update(operation, artifact, index)

    def _create(self, operation: Operation, artifact: Artifact, index: int) -> Result:
        error = self._write(artifact, index, CREATE | EXCL)
        if error is not None and error.errno == errno.EEXIST:
            seen = self._read(artifact, index)
            if seen is None:
                error = self._write(artifact, index, CREATE | EXCL)
            elif not seen.declared:
                # What the kernel learned is nobody's declaration and gives way.
                error = self._write(artifact, index, CREATE | REPLACE)
        if error is None:
            return steps.done(operation)
        return steps.failed(operation, str(error), exists=error.errno == errno.EEXIST)

    def _update(self, operation: Operation, artifact: Artifact, index: int) -> Result:
        seen = self._read(artifact, index)
        if seen is None or not seen.declared:
            return self._create(operation, artifact, index)
        departures = self._departures(operation, seen)
        if departures:
            return steps.changed(operation, departures)
        error = self._write(artifact, index, REPLACE)
        return steps.done(operation) if error is None else steps.failed(operation, str(error))

    def _delete(self, operation: Operation, artifact: Artifact, index: int) -> Result:
        seen = self._read(artifact, index)
        if seen is None or not seen.declared:
            return steps.done(operation)
        departures = self._departures(operation, seen)
        if departures:
            return steps.changed(operation, departures)
        error = steps.send(self._sock, _RTM_DELNEIGH, 0, _identity(artifact, index))
        if error is None or error.errno in _GONE:
            return steps.done(operation)
        return steps.failed(operation, str(error))

    def _departures(self, operation: Operation, seen: _Seen) -> list[str]:
        return steps.departures(steps.planned_for(operation, self._tag), seen.artifact.fields)

    def _write(self, artifact: Artifact, index: int, flags: int) -> NetlinkError | None:
        mac = bytes.fromhex(str(artifact.fields["mac"]).replace(":", ""))
        body = (
            _identity(artifact, index, _NUD_PERMANENT)
            + attributes.attribute(_NDA_LLADDR, mac)
            + attributes.u8(_NDA_PROTOCOL, self._tag)
        )
        return steps.send(self._sock, _RTM_NEWNEIGH, flags, body)

    def _read(self, artifact: Artifact, index: int) -> _Seen | None:
        what = f"neighbour {artifact.key.name}"
        answer = self._sock.get(Request(RTM_GETNEIGH, 0, _identity(artifact, index)))
        if isinstance(answer, NetlinkError):
            if answer.errno in _GONE:
                return None
            raise DriverError(f"cannot read {what}: {answer}")
        return _decode(answer, str(artifact.fields["dev"]))


def hardware_address(
    sock: NetlinkSocket, ip: ipaddress.IPv4Address | ipaddress.IPv6Address, dev: str
) -> str:
    """The MAC that packets to a neighbour are sent to; "" where none is known."""
    index = find_index(sock, dev)
    if index is None:
        return ""
    answer = sock.get(Request(RTM_GETNEIGH, 0, _identity(neighbour(ip, dev, ""), index)))
    return (
        "" if isinstance(answer, NetlinkError) else str(_decode(answer, dev).artifact.fields["mac"])
    )


def _identity(artifact: Artifact, index: int, state: int = 0) -> bytes:
    ip = ipaddress.ip_address(str(artifact.fields["address"]))
    header = _HEADER.pack(_FAMILY[ip.version], 0, 0, index, state, 0, 0)
    return header + attributes.attribute(_NDA_DST, ip.packed)


def _decode(body: bytes, dev: str) -> _Seen:
    _family, _pad, _pad2, _index, state, flags, _type = _HEADER.unpack_from(body)
    found = attributes.parse(body, 12)
    ip = ipaddress.ip_address(found[_NDA_DST])
    protocol = attributes.to_int(found.get(_NDA_PROTOCOL, b""))
    artifact = neighbour(ip, dev, found.get(_NDA_LLADDR, b"").hex(":"))
    fields = {**artifact.fields, "protocol": protocol}
    if not state & _NUD_PERMANENT:
        fields["state"] = "noarp" if state & _NUD_NOARP else "passing"
    artifact = replace(artifact, fields=fields)
    # A routing daemon's entry (extern_learn, managed) may be in a passing state, yet is declared.
    managed = attributes.to_int(found.get(_NDA_FLAGS_EXT, b""))
    declared = bool(state & (_NUD_PERMANENT | _NUD_NOARP) or flags & _NTF_EXT_LEARNED or managed)
    return _Seen(artifact, protocol, declared)
