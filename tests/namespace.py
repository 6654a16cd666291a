"""Private namespaces for tests: entered by the test process itself, gone with the test."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from holdfast.host import namespace_holder

_CLONE_NEWUTS, _CLONE_NEWNET = 0x04000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


class Namespace:
    """Runs other programs, `ip` above all, beside Holdfast in the test's namespace."""

    def run(self, *command: str, stdin: str | None = None) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, input=stdin)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def ip(self, command: str) -> str:
        return self.run("ip", *command.split())

    def ip_batch(self, *commands: str) -> None:
        """In few processes: under user-mode Linux, each takes a good part of a second."""
        for option, group in groupby(commands, lambda one: one[: one.find(" ")] * (one[0] == "-")):
            lines = "\n".join(one.removeprefix(option) for one in group)
            self.run("ip", *option.split(), "-batch", "-", stdin=lines)

    def ip_json(self, command: str) -> Any:
        return json.loads(self.run("ip", "-j", *command.split()) or "[]")

    def veth(self, name: str, peer: str, *addresses: str) -> None:
        """A pair of links, both up, with addresses on the first."""
        self.ip_batch(
            f"link add {name} type veth peer name {peer}",
            f"link set {name} up",
            f"link set {peer} up",
            *(
                f"addr add {address} dev {name}" + (" nodad" if ":" in address else "")
                for address in addresses
            ),
        )


def _set_up(link: str) -> None:
    """Without a process, which every test would start."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh14x", link.encode(), _IFF_UP)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, request)


@contextmanager
def private_namespaces() -> Iterator[Namespace]:
    saved = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("net", "uts")]
    try:
        _call("unshare", _CLONE_NEWNET | _CLONE_NEWUTS)
        namespace = Namespace()
        _set_up("lo")
        yield namespace
        namespace_holder.forget()  # it is gone with the test
    finally:
        for descriptor in saved:
            _call("setns", descriptor, 0)
            os.close(descriptor)
