"""The service manager is told how the daemon stands: one datagram, where it asked for that."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """state: `READY=1`, `STOPPING=1`. Whether anybody listens changes nothing."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place.startswith(("/", "@")):
        return
    if place.startswith("@"):
        place = "\0" + place[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.sendto(state.encode(), place)
