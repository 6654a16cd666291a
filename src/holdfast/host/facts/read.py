"""All facts, as far as they can be learned now. What cannot be read is unknown, and says why."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.dataclass import replace
from holdfast.errors import DriverError
from holdfast.host.facts import kernel, leases, ppp_dns, verdicts
from holdfast.host.facts.kernel import DefaultRoute, LinkFacts
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.resources.facts import Address, Facts, Lease, Lookup


def read_facts(paths: Paths, lookups: tuple[Lookup, ...]) -> Facts:
    """Never raises for what is wrong outside: `Facts.troubles` says it."""
    troubles: list[str] = []
    links, gateways = _ask_kernel(troubles)
    said = leases.read_leases(paths, links.mtus.keys())
    return Facts(
        leases4=said.leases4,
        leases6=said.leases6,
        sessions=_with_dns(links.sessions, paths),
        delegations=said.delegations,
        addresses=links.addresses,
        gateways={key: route.gateway for key, route in gateways.items()},
        mtus=links.mtus,
        macs=links.macs,
        verdicts=verdicts.read_verdicts(paths, troubles),
        answers=_look_up(paths, lookups, troubles),
        troubles=(*said.troubles, *troubles),
    )


def _ask_kernel(
    troubles: list[str],
) -> tuple[LinkFacts, Mapping[tuple[str, int], DefaultRoute]]:
    links = LinkFacts()
    gateways: dict[tuple[str, int], DefaultRoute] = {}
    try:
        sock = NetlinkSocket()
    except OSError as error:
        troubles.append(f"the kernel could not be asked for facts: {error.strerror}")
        return links, gateways
    try:
        links = kernel.read_links(sock)
        for family in (4, 6):
            gateways |= kernel.read_gateways(sock, family)
    except DriverError as error:
        troubles.append(str(error))
    finally:
        sock.close()
    return links, gateways


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
