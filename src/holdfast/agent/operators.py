"""The connections that operators came in on: a plan that would cut one is not carried out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.engine.artifact import Artifact
from holdfast.engine.plan import Plan

if TYPE_CHECKING:  # most commands are not started over SSH
    from holdfast.resources.facts import Facts
    from holdfast.resources.firewall.lockout import Operator
    from holdfast.resources.router import Router
    from holdfast.resources.values import Address

_VARIABLE = b"SSH_CONNECTION"  # "SOURCE PORT LOCAL PORT", set by sshd


def cut(plan: Plan, router: Router, facts: Facts, root: str, came_in: Operator) -> str:
    """Why a plan would cut a connection; empty where it would not."""
    from holdfast.engine.cut_off import Ground, cut_off
    from holdfast.resources.firewall.lockout import carriers, lockout
    from holdfast.resources.site import site_of

    site = site_of(router.resources, facts, root)
    tables = {
        op.subject.key.name
        for op in plan.changes
        if isinstance(op.subject, Artifact) and op.kind == "nft"
    }
    links = carriers(site, came_in.ifname)
    ground = Ground(str(came_in.local), links, came_in.source, came_in.way)
    reason = cut_off(plan, ground) or lockout(site, came_in, tables)
    said = f"this would cut {came_in}: {reason}; if that is meant, say --allow-lockout"
    return said if reason else ""


def cut_any(plan: Plan, router: Router, facts: Facts, root: str) -> str:
    """The same of everybody who is logged in now."""
    cuts = (cut(plan, router, facts, root, one) for one in present())
    return next(filter(None, cuts), "")


def present() -> list[Operator]:
    """Everybody who is logged in over SSH through this network namespace."""
    namespace = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 (Path follows it elsewhere)
    said: set[str] = set()
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            if os.stat(place / "ns/net").st_ino == namespace:  # noqa: PTH116
                said.add(variable((place / "environ").read_bytes()))
        except OSError:
            continue  # it ended, or is none of ours to ask
    return [found for one in sorted(said) if (found := operator(one)) is not None]


def variable(environment: bytes) -> str:
    """What sshd said of a connection, in the environment of a process; empty where nothing."""
    for entry in environment.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == _VARIABLE:
            return value.decode(errors="replace")
    return ""


def ancestral() -> str:
    """Of this process, or of whoever started it: `sudo` takes it away."""
    own = os.environ.get(_VARIABLE.decode())
    if own is not None:
        return own
    return next(filter(None, map(variable, _ancestors())), "")


def operator(said: str) -> Operator | None:
    """Who came in so; None where nobody did, or not through this network namespace."""
    words = said.split()
    try:
        source, zone = _address(words[0])
        local, _ = _address(words[2])
        port = int(words[3])
    except (IndexError, ValueError):
        return None  # not what sshd writes
    from holdfast.host.netlink.route_lookup import look_up, matching
    from holdfast.host.netlink.socket import NetlinkSocket
    from holdfast.resources.firewall.lockout import Operator

    if zone:
        return Operator(source, local, port, zone)
    sock = NetlinkSocket()
    try:
        here = look_up(sock, local)
        if here is None or here.type != "local":
            return None
        back = look_up(sock, source)
        ifname = back.ifname if back is not None else ""
        return Operator(source, local, port, ifname, matching(sock, source))
    finally:
        sock.close()


def _address(text: str) -> tuple[Address, str]:
    """An address, and the link that a link-local one names."""
    address, _, zone = text.partition("%")
    found = ip_address(address)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped, ""
    return found, zone


def _ancestors() -> Iterator[bytes]:
    """The environments of the processes above, as far as they may be read."""
    pid = os.getppid()
    while pid > 1:
        try:
            yield Path(f"/proc/{pid}/environ").read_bytes()
            # The name before it may hold anything, brackets included.
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return
        pid = int(fields[1])
