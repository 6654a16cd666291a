"""A program that deletes a route whenever it is there. It has no idea that anybody minds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PROGRAM = """
import socket, struct, sys, time
address, length = sys.argv[1].split("/")
family, size = (socket.AF_INET, 4) if "." in address else (socket.AF_INET6, 16)
destination = struct.pack("=HH", 4 + size, 1) + socket.inet_pton(family, address)
body = struct.pack("=BBBBBBBBI", family, int(length), 0, 0, 254, 0, 255, 0, 0) + destination
sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
sock.bind((0, 0))
while True:
    sock.send(struct.pack("=IHHII", 16 + len(body), 25, 5, 1, 0) + body)
    sock.recv(4096)
    time.sleep(float(sys.argv[2]))
"""


@contextmanager
def undoing(route: str, pause: float = 0.005) -> Iterator[int]:
    """Its process, in the network namespace of the caller."""
    command = [sys.executable, "-c", _PROGRAM, route, str(pause)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
