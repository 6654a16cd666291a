"""A provider's access concentrator: pppoe-server, where the kernel speaks PPP at all."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.resources.site import Site
from holdfast.resources.wan.pppoe_interface import PPPoEInterface

_AF_PPPOX = 24
_DEVICE = "/dev/ppp"
_PROGRAMS = {"pppoe-server": "pppoe", "pppd": "ppp"}  # and the packages they are in
_SESSIONS = 4  # at once, of one concentrator
# pppd has its folder compiled in, with options of the machine that are none of the provider's. Each
# session has a pseudo terminal.
_APART = """\
mount --bind "$1" /etc/ppp && mkdir -p /dev/pts && mount -t devpts none /dev/pts || exit
shift && exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Concentrator:
    name: str
    services: tuple[str, ...] = ()  # that it offers by name; whoever asks for none is served too


def wanted(site: Site, interface: str) -> tuple[Concentrator, ...]:
    """The concentrators that sessions over an Interface expect to find."""
    found: dict[str, dict[str, None]] = {}
    for session in site.of(PPPoEInterface):
        spec = session.spec
        if spec.interface == interface and spec.managed is not False:
            services = found.setdefault(spec.ac_name or "provider", {})
            # pppoe-server hands it to a shell, in quotes of this kind.
            if spec.service_name is not None and "'" not in spec.service_name:
                services[spec.service_name] = None
    return tuple(Concentrator(name, tuple(services)) for name, services in found.items())


def lacking(path: str) -> str:
    """Why there can be none, "" where there can. path: where programs are looked for."""
    try:
        socket.socket(_AF_PPPOX, socket.SOCK_STREAM, 0).close()
    except OSError as error:
        return f"this kernel has no PPPoE ({error.strerror})"
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        there = Path(_DEVICE).exists()
        return f"{_DEVICE} is for root alone" if there else f"there is no {_DEVICE}"
    for program, package in _PROGRAMS.items():
        if shutil.which(program, path=path) is None:
            return f"{program} is not installed: install {package}"
    return ""


def command(
    concentrator: Concentrator, number: int, far: str, base: str, folder: Path
) -> list[str]:
    """What runs one until it is ended. Whoever dials in is let in, and given an address and the
    name server BASE.2.

    number: of all that are served. base: "198.18.0". folder: empty, for what pppd looks for.
    """
    options = folder / "server"
    options.write_text(f"noauth\n+ipv6\nms-dns {base}.2\nlcp-echo-interval 10\n")
    apart = ["unshare", "--mount", "sh", "-c", _APART, "sh", str(folder)]
    words = ["pppoe-server", "-F", "-I", far, "-C", concentrator.name, "-O", str(options)]
    words += ["-L", f"{base}.2", "-R", f"{base}.{200 + _SESSIONS * number % 50}"]
    words += ["-N", str(_SESSIONS), "-o", str(_SESSIONS * number)]
    for service in concentrator.services:
        words += ["-S", service]
    return [*apart, *words]
