"""What has to work after a change as it did before: the default gateway, targets that are
configured, the connection that the operator came in on, and where that came from.

What does not answer before the change says nothing after it, and is not asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import Any

from holdfast.agent.health.probes import probe
from holdfast.dataclass import dataclass
from holdfast.errors import DriverError
from holdfast.host.facts.kernel import LEARNED_BY, read_gateways
from holdfast.host.netlink.route_lookup import look_up
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.resources.facts import Address
from holdfast.resources.firewall.lockout import Operator
from holdfast.resources.policy.health_target import Target
from holdfast.resources.router import Router

# A ping over a slow line; more than one is sent before anything is held to be broken.
_TIMEOUT_S = 1.0
# How long what answered before may take to answer again: neighbours are asked for anew, a port of
# a bridge learns, a route settles.
GRACE_S = 5.0
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Lifeline:
    # "gateway": of `family`; "target": `address` answers; "operator": the way to it; "origin": it
    # answers, as long as the operator is there.
    kind: str
    family: int = 4
    address: str = ""
    port: int = 0
    local: str = ""  # operator: our end of the connection
    ifname: str = ""  # operator: the link that leads there

    def __str__(self) -> str:
        if self.kind == "gateway":
            return f"the IPv{self.family} default gateway"
        if self.kind == "operator":
            return f"the operator's connection from {self.address} to {self.local}"
        return f"{self.address} port {self.port}" if self.port else self.address


def of(router: Router, operator: Operator | None) -> list[Lifeline]:
    """All that could be asked."""
    found = [Lifeline("gateway", family) for family in (4, 6)]
    for target in router.confirm.targets:
        found.append(Lifeline("target", target.address.version, str(target.address), target.port))
    if operator is not None and operator.ifname not in ("", "lo"):
        source = str(operator.source)
        found.append(
            Lifeline(
                "operator",
                operator.source.version,
                source,
                local=str(operator.local),
                ifname=operator.ifname,
            )
        )
        if not operator.source.is_link_local:
            found.append(Lifeline("origin", operator.source.version, source))
    return list(dict.fromkeys(found))


def working(lines: Iterable[Lifeline], tag: int) -> list[Lifeline]:
    """Those that answer now."""

    async def ask() -> list[Lifeline]:
        asked = list(lines)
        said = await asyncio.gather(*(_ask(line, tag) for line in asked))
        return [line for line, problem in zip(asked, said, strict=True) if not problem]

    return asyncio.run(ask())


async def failing(lines: Sequence[Lifeline], tag: int, grace: float = GRACE_S) -> list[str]:
    """What of them does not answer, and has not for a while: one answer in that time will do."""
    loop = asyncio.get_running_loop()
    end = loop.time() + grace
    left = list(lines)
    while True:
        said = await asyncio.gather(*(_ask(line, tag) for line in left))
        silent = [(line, why) for line, why in zip(left, said, strict=True) if why]
        if not silent or loop.time() >= end:
            return [f"{line}: {why}" for line, why in silent]
        left = [line for line, _ in silent]
        await asyncio.sleep(_PAUSE_S)


def broken(lines: Sequence[Lifeline], tag: int, grace: float = GRACE_S) -> list[str]:
    """The same, for who has no event loop."""
    return asyncio.run(failing(lines, tag, grace)) if lines else []


def plain(lines: Iterable[Lifeline]) -> list[Any]:
    """As JSON."""
    return [
        [line.kind, line.family, line.address, line.port, line.local, line.ifname] for line in lines
    ]


def from_plain(said: object) -> list[Lifeline]:
    return [Lifeline(*one) for one in said] if isinstance(said, list) else []


async def _ask(line: Lifeline, tag: int) -> str:
    """What is wrong; empty where nothing is."""
    try:
        if line.kind == "gateway":
            return await _gateway(line.family, tag)
        if line.kind == "operator":
            return await asyncio.to_thread(_way_back, line)
        kind = "tcp" if line.port else "ping"
        return await probe(Target(kind, ip_address(line.address), port=line.port), _TIMEOUT_S)
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


def _way_back(line: Lifeline) -> str:
    sock = NetlinkSocket()
    try:
        here = look_up(sock, ip_address(line.local))
        if here is None or here.type != "local":
            return f"{line.local} is no address of this host any more"
        back = look_up(sock, ip_address(line.address))
    finally:
        sock.close()
    if back is None:
        return f"no route leads to {line.address} any more"
    if back.ifname != line.ifname:
        return f"{line.address} is reached through {back.ifname or back.type}, not {line.ifname}"
    return ""
