"""The operator's own connection: a plan that would cut it is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.engine.artifact import Artifact
from holdfast.engine.plan import Plan

if TYPE_CHECKING:  # most passes are not started over SSH
    from holdfast.cli.load import Loaded
    from holdfast.resources.lockout import Operator
    from holdfast.resources.values import Address

_VARIABLE = "SSH_CONNECTION"  # "SOURCE PORT LOCAL PORT", set by sshd


def guarded(plan: Plan, loaded: Loaded, *, allow: bool) -> Plan:
    """The plan, refused where it would cut the connection that the operator came in on."""
    if allow or plan.refusal or not plan.changes:
        return plan
    came_in = _operator(_variable())
    if came_in is None:
        return plan
    reason = _cut(plan, loaded, came_in)
    if not reason:
        return plan
    told = f"this would cut {came_in}: {reason}; if that is meant, say --allow-lockout"
    return replace(plan, refusal=told)


def _cut(plan: Plan, loaded: Loaded, came_in: Operator) -> str:
    from holdfast.engine.cut_off import Ground, cut_off
    from holdfast.resources.lockout import carriers, lockout
    from holdfast.resources.site import site_of

    site = site_of(loaded.router.resources, loaded.facts, loaded.root)
    tables = {
        op.subject.key.name
        for op in plan.changes
        if isinstance(op.subject, Artifact) and op.kind == "nft"
    }
    links = carriers(site, came_in.ifname)
    ground = Ground(str(came_in.local), links, came_in.source, came_in.way)
    return cut_off(plan, ground) or lockout(site, came_in, tables)


def _operator(said: str) -> Operator | None:
    """Who started this over SSH; None where nobody did, or not through this network namespace."""
    if not said:
        return None
    words = said.split()
    try:
        source, zone = _address(words[0])
        local, _ = _address(words[2])
        port = int(words[3])
    except (IndexError, ValueError):
        return None  # not what sshd writes
    from holdfast.host.netlink.route_lookup import look_up, matching
    from holdfast.host.netlink.socket import NetlinkSocket
    from holdfast.resources.lockout import Operator

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


def _variable() -> str:
    """Ours, or that of whoever started us: `sudo` takes it away."""
    own = os.environ.get(_VARIABLE)
    if own is not None:
        return own
    for environment in _ancestors():
        for entry in environment.split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == _VARIABLE.encode():
                return value.decode(errors="replace")
    return ""


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
