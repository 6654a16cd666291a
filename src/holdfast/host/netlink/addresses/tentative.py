"""IPv6 addresses that the kernel still checks for duplicates: they cannot be sources yet."""

from __future__ import annotations

import socket
import time

from holdfast.host.netlink.addresses import address_codec
from holdfast.host.netlink.addresses.address_codec import DAD_FAILED, RTM_GETADDR, TENTATIVE
from holdfast.host.netlink.socket import NetlinkSocket

# A check takes a second, and up to one more before it begins. One that does not end waits for a
# carrier, and nobody knows for how long: no pass may wait that long for each of its routes.
_LONGEST_S = 3.0
_PAUSE_S = 0.05


class Checks:
    def __init__(self, sock: NetlinkSocket) -> None:
        self._sock = sock
        self._left = _LONGEST_S  # of all the waiting there will be

    def passed(self, address: str) -> bool:
        """Waits for the check of an address; whether it was checked just now, and is good."""
        packed = socket.inet_pton(socket.AF_INET6, address)
        waited = False
        while _is_checked(self._sock, packed):
            if self._left <= 0:
                return False
            waited = True
            self._left -= _PAUSE_S
            time.sleep(_PAUSE_S)
        return waited


def _is_checked(sock: NetlinkSocket, packed: bytes) -> bool:
    header = bytes((socket.AF_INET6,)) + bytes(7)
    bodies = sock.dump(RTM_GETADDR, header, "IPv6 addresses")
    found = (address_codec.decode(body, "") for body in bodies if packed in body)
    flags = [address.flags for address in found if address.ip == packed]
    return any(each & TENTATIVE and not each & DAD_FAILED for each in flags)
