"""Private namespaces for tests: entered by the test process itself, gone with the test."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.host import namespace_holder

_CLONE_NEWUTS, _CLONE_NEWNET = 0x04000000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


class Namespace:
    """Runs other programs, `ip` above all, beside Holdfast in the test's namespace."""

    def run(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def ip(self, command: str) -> str:
        return self.run("ip", *command.split())

    def ip_json(self, command: str) -> Any:
        return json.loads(self.run("ip", "-j", *command.split()) or "[]")

    def veth(self, name: str, peer: str, *addresses: str) -> None:
        """A pair of links, both up, with addresses on the first."""
        self.ip(f"link add {name} type veth peer name {peer}")
        self.ip(f"link set {name} up")
        self.ip(f"link set {peer} up")
        for address in addresses:
            self.ip(f"addr add {address} dev {name}" + (" nodad" if ":" in address else ""))


@contextmanager
def private_namespaces() -> Iterator[Namespace]:
    saved = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("net", "uts")]
    try:
        _call("unshare", _CLONE_NEWNET | _CLONE_NEWUTS)
        namespace = Namespace()
        namespace.ip("link set lo up")
        yield namespace
        namespace_holder.forget()  # it is gone with the test
    finally:
        for descriptor in saved:
            _call("setns", descriptor, 0)
            os.close(descriptor)
