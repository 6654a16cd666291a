"""What has to work after a change as it did before: the default gateway, targets that are
configured, the connection that the operator came in on, and where that came from.

What does not answer before the change says nothing after it, and is not asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import Any

from holdfast.dataclass import asdict, dataclass
from holdfast.engine.path.judgement import Connection
from holdfast.engine.path.network import Network
from holdfast.errors import DriverError
from holdfast.host import tcp_connections
from holdfast.host.facts.kernel import LEARNED_BY, read_gateways
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.resources.facts import Address
from holdfast.resources.firewall.lockout import Operator
from holdfast.resources.router import Router
from holdfast.resources.uplinks.health_target import Target
from holdfast.runtime.confirm.revert import LIFELINE, OPERATOR
from holdfast.runtime.operators import located, way_back
from holdfast.runtime.probes import probe

# A ping over a slow line; more than one is sent before anything is held to be broken.
_TIMEOUT_S = 1.0
# How long what answered before may take to answer again: neighbours are asked for anew, a port of
# a bridge learns, a route settles.
GRACE_S = 5.0
_PAUSE_S = 0.5
_OPERATORS, _SENT = "the operator's connection", "what is sent to"
# How often the state of a connection is looked at.
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Lifeline:
    # "gateway": of `family`; "target": `address` answers; "operator": the way to it; "origin": it
    # answers, and "session": what is sent on the connection is acknowledged, as long as the
    # operator is there.
    kind: str
    family: int = 4
    address: str = ""
    port: int = 0  # target: theirs; operator, session: ours
    local: str = ""  # our end of the operator's connection
    ifname: str = ""  # operator: the link that leads there
    gateway: str | None = None  # operator: by which; None where an older version kept it
    far_port: int = 0  # operator, session: theirs

    def __str__(self) -> str:
        if self.kind == "gateway":
            return f"the IPv{self.family} default gateway"
        if self.kind == "operator":
            return f"{_OPERATORS} from {self.address} to {self.local}"
        if self.kind == "session":
            return f"{_SENT} {self.address} port {self.far_port}"
        return f"{self.address} port {self.port}" if self.port else self.address


def of(router: Router, operator: Operator | None) -> list[Lifeline]:
    """All that could be asked."""
    found = [Lifeline("gateway", family) for family in (4, 6)]
    for target in router.confirm.targets:
        found.append(Lifeline("target", target.address.version, str(target.address), target.port))
    if operator is not None and operator.ifname not in ("", "lo"):
        found += _of_operator(operator)
    return list(dict.fromkeys(found))


def _of_operator(operator: Operator) -> Iterator[Lifeline]:
    version, source, local = operator.source.version, str(operator.source), str(operator.local)
    far_port = operator.connection.remote_port if operator.connection is not None else 0
    gateway = next((leg.gateway for leg in operator.path.nexthops), None)
    way = (operator.ifname, gateway, far_port)
    yield Lifeline("operator", version, source, operator.port, local, *way)
    if far_port:
        yield Lifeline("session", version, source, operator.port, local, far_port=far_port)
    if not operator.source.is_link_local:
        yield Lifeline("origin", version, source, local=local)


def working(lines: Iterable[Lifeline], tag: int) -> list[Lifeline]:
    """Those that answer now."""

    async def ask() -> list[Lifeline]:
        asked = list(lines)
        said = await asyncio.gather(*(_ask(line, tag, watched=0) for line in asked))
        return [line for line, problem in zip(asked, said, strict=True) if not problem]

    return asyncio.run(ask())


async def failing(lines: Sequence[Lifeline], tag: int, grace: float = GRACE_S) -> list[str]:
    """What of them does not answer, and has not for a while: one answer in that time will do."""
    loop = asyncio.get_running_loop()
    end = loop.time() + grace
    left = list(lines)
    while True:
        said = await asyncio.gather(*(_ask(line, tag, _TIMEOUT_S) for line in left))
        silent = [(line, why) for line, why in zip(left, said, strict=True) if why]
        if not silent or loop.time() >= end:
            return [f"{line}: {why}" for line, why in silent]
        left = [line for line, _ in silent]
        await asyncio.sleep(_PAUSE_S)


def broken(lines: Sequence[Lifeline], tag: int, grace: float = GRACE_S) -> list[str]:
    """The same, for who has no event loop."""
    return asyncio.run(failing(lines, tag, grace)) if lines else []


def cause(problems: Iterable[str]) -> str:
    """Of taking a change back for them."""
    return (
        OPERATOR
        if any(problem.startswith((_OPERATORS, _SENT)) for problem in problems)
        else LIFELINE
    )


def plain(lines: Iterable[Lifeline]) -> list[Any]:
    """As JSON."""
    return [list(asdict(line).values()) for line in lines]


def from_plain(said: object) -> list[Lifeline]:
    return [Lifeline(*one) for one in said] if isinstance(said, list) else []


async def _ask(line: Lifeline, tag: int, watched: float) -> str:
    """What is wrong; empty where nothing is. watched: how long a session is looked at."""
    try:
        if line.kind == "gateway":
            return await _gateway(line.family, tag)
        if line.kind == "operator":
            return await _way(line)
        if line.kind == "session":
            return await _session(line, watched)
        kind = "tcp" if line.port else "ping"
        source = ip_address(line.local) if line.local else None
        target = Target(kind, ip_address(line.address), port=line.port, source=source)
        return await probe(target, _TIMEOUT_S)
    except (DriverError, OSError) as error:
        return str(error)


async def _gateway(family: int, tag: int) -> str:
    """Whichever is the default gateway by then: moving it is often what a change is for."""
    gateways = await asyncio.to_thread(_gateways, family, tag)
    if not gateways:
        return "there is none"
    said = await asyncio.gather(
        *(probe(Target("ping", address, ifname), _TIMEOUT_S) for ifname, address in gateways)
    )
    return "" if "" in said else "; ".join(said)


def _gateways(family: int, tag: int) -> list[tuple[str, Address]]:
    sock = NetlinkSocket()
    try:
        found = read_gateways(sock, family, {**LEARNED_BY, "holdfast": tag})
    finally:
        sock.close()
    return [(ifname, route.gateway) for (ifname, _), route in found.items()]


async def _way(line: Lifeline) -> str:
    """The way of our answers has to be the one before; another will do if it is seen to work."""
    problem, moved = await asyncio.to_thread(_way_back, line)
    if not moved or problem:
        return problem
    local, address = ip_address(line.local), ip_address(line.address)
    silent = await probe(Target("ping", address, source=local), _TIMEOUT_S)
    return f"answers go `{moved}` now, and there is no answer from there" if silent else ""


def _way_back(line: Lifeline) -> tuple[str, str]:
    """What is wrong with it, and where it leads if that is elsewhere than before."""
    remote, local = ip_address(line.address), ip_address(line.local)
    zone = line.ifname if remote.is_link_local else ""
    asked = Connection(remote, local, line.far_port, line.port, zone)
    sock = NetlinkSocket()
    try:
        here = located(sock, asked)
        if here is None:
            return f"{local} is no address of this host any more", ""
        connection, back = way_back(sock, here)
    finally:
        sock.close()
    told = back.told(connection.answer(Network(line.family)))
    if back.type != "unicast":
        return f"answers go `{told}` now", ""
    for leg in back.nexthops:
        if leg.dev == line.ifname and line.gateway in (leg.gateway, None):
            return "", ""
    return "", told


async def _session(line: Lifeline, watched: float) -> str:
    """What was sent on it and is not acknowledged is sent again, for as long as nothing comes.

    That nothing waits to be acknowledged says nothing: it may be that nothing was sent yet."""
    ours = ip_address(line.local), line.port
    theirs = ip_address(line.address), line.far_port
    loop = asyncio.get_running_loop()
    end = loop.time() + watched
    while True:
        again = await asyncio.to_thread(tcp_connections.retransmissions, ours, theirs)
        if again is None:
            return "there is no such connection"
        if again:
            return f"sent {again + 1} times, and not acknowledged"
        if loop.time() >= end:
            return ""
        await asyncio.sleep(_LOOK_S)
