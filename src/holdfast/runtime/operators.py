"""The connections that operators came in on: a plan that would cut one is not carried out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.dataclass import dataclass, replace
from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.plan import Plan

if TYPE_CHECKING:  # most commands are not started over SSH
    from holdfast.engine.path.judgement import Connection, Loss
    from holdfast.engine.path.lookup import Path as Way
    from holdfast.host.netlink.socket import NetlinkSocket
    from holdfast.resources.facts import Facts
    from holdfast.resources.firewall.lockout import Operator
    from holdfast.resources.router import Router
    from holdfast.resources.spec.values import Address

_VARIABLE = b"SSH_CONNECTION"  # "SOURCE PORT LOCAL PORT", set by sshd


def cut(
    plan: Plan, router: Router, facts: Facts, root: str, came_in: Operator, *, trial: bool = False
) -> str:
    """Why a plan would cut a connection; empty where it would not. trial: what becomes of it is
    seen, and taken back, so that what may work may be tried."""
    from holdfast.resources.firewall.lockout import lockout, lower_links
    from holdfast.resources.site import site_of

    site = site_of(router.resources, facts, root)
    tables = {
        op.subject.key.name
        for op in plan.changes
        if isinstance(op.subject, Artifact) and op.kind == NFT.name
    }
    found = loss(plan, came_in, lower_links(site))
    if found is not None and (found.certain or not trial):
        return _told(came_in, found)
    reason = lockout(site, came_in, tables)
    said = f"this would cut {came_in}: {reason}; if that is meant, say --allow-lockout"
    return said if reason else ""


def loss(plan: Plan, came_in: Operator, lower: Mapping[str, str]) -> Loss | None:
    """What becomes of the way of the connection."""
    connection = came_in.connection
    if connection is None or came_in.ifname == "lo":
        return None
    from holdfast.engine.path import judgement
    from holdfast.host.netlink.path_read import learn_path, read_network
    from holdfast.host.netlink.socket import NetlinkSocket

    operations, known = judgement.relevant(plan.changes, connection)
    if not operations:
        return None
    sock = NetlinkSocket()
    try:
        network = read_network(sock, connection.remote.version, known)
        ports = learn_path(sock, network, connection.answer(network), came_in.path)
    finally:
        sock.close()
    situation = judgement.Situation(connection, network, came_in.path, lower, ports)
    return judgement.judge(situation, operations, known)


def _told(came_in: Operator, found: Loss) -> str:
    operation = found.operation
    owners = ", ".join(operation.owners)
    place = f" ({owners} at {operation.origin})" if operation.origin else f" ({owners})"
    said = "would cut" if found.certain else "may cut"
    trial = "" if found.certain else ", or try it with --confirm-within"
    return (
        f"this {said} {came_in}: it would {found.doing}{place if owners else ''}, and {found.why};"
        f" if that is meant, say --allow-lockout{trial}"
    )


def cut_any(plan: Plan, router: Router, facts: Facts, root: str) -> str:
    """The same of everybody who is logged in now."""
    return Lockouts().cut(plan, router, facts, root)


@dataclass(slots=True)
class Lockouts:
    """What was refused because of somebody stays refused while that one is logged in: also while
    the address they came in by, which they are known by, is away for a moment."""

    _refused: Router | None = None
    _because_of: str = ""
    _reason: str = ""

    def _is_refused(self, router: Router) -> bool:
        """The same files read again are another router."""
        return self._refused is not None and self._refused.files == router.files

    def cut(self, plan: Plan, router: Router, facts: Facts, root: str) -> str:
        """Why a plan would cut off any of those who are logged in now."""
        for said in sorted(logged_in()):
            came_in = operator(said)
            if came_in is None:
                if self._is_refused(router) and said == self._because_of:
                    return self._reason
                continue
            reason = cut(plan, router, facts, root, came_in)
            if reason:
                self._refused, self._because_of, self._reason = router, said, reason
                return reason
        return ""


def logged_in() -> set[str]:
    """What sshd said of everybody who is logged in through this network namespace."""
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
    return said - {""}


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
        far_port, port = int(words[1]), int(words[3])
    except (IndexError, ValueError):
        return None  # not what sshd writes
    from holdfast.engine.path.judgement import Connection
    from holdfast.host.netlink.socket import NetlinkSocket
    from holdfast.resources.firewall.lockout import Operator

    asked = Connection(source, local, far_port, port, zone)
    sock = NetlinkSocket()
    try:
        here = located(sock, asked)
        if here is None:
            return None
        connection, back = way_back(sock, here)
    finally:
        sock.close()
    ifname = zone or ("lo" if back.type == "local" else min(back.links, default=""))
    return Operator(source, local, port, ifname, connection, back)


def located(sock: NetlinkSocket, asked: Connection) -> Connection | None:
    """With the VRF that our end is in; None where that is no address of this host."""
    from holdfast.host.netlink.path_read import vrf_of
    from holdfast.host.netlink.routes.route_lookup import look_up

    here = look_up(sock, asked.local)
    if asked.link or (here is not None and here.type == "local"):
        return asked
    vrf = vrf_of(sock, asked.local)
    return replace(asked, vrf=vrf) if vrf else None


def way_back(sock: NetlinkSocket, asked: Connection) -> tuple[Connection, Way]:
    """Of what we send on a connection, by the kernel's word; and that connection, with its mark."""
    from holdfast.engine.path.network import Network
    from holdfast.host.netlink import path_read
    from holdfast.host.netlink.routes import route_lookup

    connection = path_read.marked(sock, asked)
    packet = connection.answer(Network(connection.version))
    return connection, route_lookup.path(sock, packet, connection.link or connection.vrf)


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
