"""The epoch: the boot and the network namespace, which objects of the kernel live as long as."""

from __future__ import annotations

import socket
import sys

from holdfast.host.facts import clock

# Unlike the inode of /proc/self/ns/net, the cookie is never given to another namespace.
_SO_NETNS_COOKIE = 71


def read_epoch() -> str:
    with socket.socket(socket.AF_UNIX) as probe:
        cookie = probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    return f"{clock.boot_id()}/{int.from_bytes(cookie, sys.byteorder)}"
