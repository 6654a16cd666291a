"""The names of the links that are there."""

from __future__ import annotations

import socket


def read_link_names() -> frozenset[str]:
    return frozenset(name for _, name in socket.if_nameindex())
