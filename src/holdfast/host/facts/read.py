"""All facts, as far as they can be learned now. What cannot be read is unknown, and says why."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from holdfast.dataclass import replace
from holdfast.errors import DriverError
from holdfast.host.facts import kernel, leases, ppp_dns, verdicts
from holdfast.host.facts.kernel import DefaultRoute, LinkFacts
from holdfast.host.facts.on_link import OnLink, read_on_link
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.resources.facts import Address, Facts, Lease, Lookup


def read_facts(
    paths: Paths, lookups: tuple[Lookup, ...], gateways: Collection[tuple[int, Address]] = ()
) -> Facts:
    """Never raises for what is wrong outside: `Facts.troubles` says it. gateways: those whose link
    the kernel is asked for, each with a routing table."""
    troubles: list[str] = []
    links, defaults, on_link = _ask_kernel(troubles, gateways)
    said = leases.read_leases(paths, links.mtus.keys())
    return Facts(
        leases4=said.leases4,
        leases6=said.leases6,
        sessions=_with_dns(links.sessions, paths),
        delegations=said.delegations,
        addresses=links.addresses,
        gateways={key: route.gateway for key, route in defaults.items()},
        on_link=on_link,
        mtus=links.mtus,
        macs=links.macs,
        verdicts=verdicts.read_verdicts(paths, troubles),
        answers=_look_up(paths, lookups, troubles),
        troubles=(*said.troubles, *troubles),
    )


def _ask_kernel(
    troubles: list[str], asked: Collection[tuple[int, Address]]
) -> tuple[LinkFacts, Mapping[tuple[str, int], DefaultRoute], OnLink]:
    links = LinkFacts()
    gateways: dict[tuple[str, int], DefaultRoute] = {}
    on_link: OnLink = {}
    try:
        sock = NetlinkSocket()
    except OSError as error:
        troubles.append(f"the kernel could not be asked for facts: {error.strerror}")
        return links, gateways, on_link
    try:
        links = kernel.read_links(sock)
        for family in (4, 6):
            gateways |= kernel.read_gateways(sock, family)
        on_link = read_on_link(sock, asked)
    except DriverError as error:
        troubles.append(str(error))
    finally:
        sock.close()
    return links, gateways, on_link


def _with_dns(sessions: Mapping[str, Lease], paths: Paths) -> dict[str, Lease]:
    alone = len(sessions) == 1
    return {
        name: replace(lease, dns=ppp_dns.read_servers(paths, name, alone=alone))
        for name, lease in sessions.items()
    }


def _look_up(
    paths: Paths, lookups: tuple[Lookup, ...], troubles: list[str]
) -> Mapping[Lookup, tuple[Address, ...]]:
    if not lookups:
        return {}
    from holdfast.host.facts import answers  # few configurations have names to look up

    return answers.read_answers(paths, lookups, troubles)
