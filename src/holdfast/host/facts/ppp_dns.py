"""The DNS servers that the far end of a PPP session named."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

from holdfast.config import regular_file
from holdfast.paths import Paths

FOLDER = "/run/holdfast/ppp"  # where the hook of sessions that Holdfast runs writes them
# pppd's own, for sessions that others run: one file for all of them, the last one's.
SHARED = "/etc/ppp/resolv.conf"


def read_servers(paths: Paths, ifname: str, *, alone: bool) -> tuple[IPv4Address, ...]:
    """alone: it is the only session, so that what was said of any was said of this one."""
    try:
        text = _read(paths.under(FOLDER) / f"{ifname}.servers")
        if text is None and alone:
            text = _read(paths.under(SHARED))
    except OSError:
        return ()
    found = []
    for line in (text or "").splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "nameserver":
            try:
                found.append(IPv4Address(words[1]))
            except ValueError:
                continue
    return tuple(
        ipv4_address
        for ipv4_address in found
        if not ipv4_address.is_unspecified and not ipv4_address.is_loopback
    )


def _read(path: Path) -> str | None:
    try:
        return regular_file.read(path).decode("ascii", errors="replace")
    except FileNotFoundError:
        return None
