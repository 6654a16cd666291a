"""WireGuard devices read again and again, cheaply where nothing changes."""

from __future__ import annotations

import socket
import struct

from holdfast.dataclass import dataclass
from holdfast.errors import DriverError
from holdfast.host.netlink import generic, wireguard_codec
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.netlink.wireguard_codec import Device


@dataclass(frozen=True, slots=True)
class Reading:
    device: Device
    bodies: tuple[bytes, ...]  # as the kernel has it: with nobody at work it says the same again


class WireGuardReader:
    def __init__(self) -> None:
        self._sock: NetlinkSocket | None = None
        self._family: int | None = None

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def read(self, name: str, before: Reading | None) -> Reading | None:
        """`before` itself where nothing is other than then. None where there is no such link, or it
        cannot be read."""
        try:
            index = socket.if_nametoindex(name)
            bodies = self._dump(name, index)
            if bodies is None or (before is not None and before.bodies == bodies):
                return before if bodies is not None else None
            return Reading(wireguard_codec.decode(bodies, index), bodies)
        except DriverError:
            self.close()  # of a socket that broke no answer comes any more
            return None
        except (OSError, ValueError, LookupError, struct.error):
            return None

    def _dump(self, name: str, index: int) -> tuple[bytes, ...] | None:
        if self._sock is None:
            self._sock = generic.connect()
        if self._family is None:  # it may come with the first link of its type
            self._family = generic.find_family(self._sock, "wireguard")
        if self._family is None:
            return None
        request = wireguard_codec.get_device(index)
        return tuple(self._sock.dump(self._family, request, f"WireGuard link {name}"))
