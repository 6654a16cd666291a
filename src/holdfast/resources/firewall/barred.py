"""What others have in the way of what is opened: exposed services, and services of the router."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from holdfast.resources.firewall import journey
from holdfast.resources.firewall.exposure import Exposure, exposures
from holdfast.resources.firewall.firewall_policy import FirewallPolicy, openings
from holdfast.resources.firewall.foreign_chains import Fate, ForeignChain, Outcome, outcome
from holdfast.resources.firewall.journey import Journey
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site

_ORDER = ("prerouting", "input", "forward", "postrouting")


def barred(site: Site, chains: Iterable[ForeignChain]) -> dict[str, str]:
    """By resource: which chain drops what it opens or sends it elsewhere, by which of its rules."""
    known = [chain for chain in chains if chain.hook in _ORDER]
    known.sort(key=lambda foreign_chain: (_ORDER.index(foreign_chain.hook), foreign_chain.priority))
    found: dict[str, str] = {}
    for exposure in exposures(site) if known else ():
        why = _exposure(exposure, site, known)
        if why:
            found[exposure.resource.id] = why
    for policy in site.of(FirewallPolicy)[:1] if known else ():
        why = "; ".join(_policy(policy, site, known))
        if why:
            found[policy.id] = why
    return found


def _exposure(exposure: Exposure, site: Site, chains: Sequence[ForeignChain]) -> str:
    for each in journey.of_exposure(exposure, site):
        stopped = _stopped(each, chains)
        if stopped is None:
            continue
        chain, end = stopped
        what = f"it from {each.link}" if len(exposure.outside) > 1 else "it"
        does = f"drops {what}" if end.fate is Fate.DROPPED else f"sends {what} {_place(end)}"
        return f"{chain}, which is not ours, {does} {end.how}"
    return ""


def _policy(policy: Resource, site: Site, chains: Sequence[ForeignChain]) -> Iterator[str]:
    """What is sent elsewhere is not dropped: a policy says what may come in, and not what is
    there to answer it."""
    dropped: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for opening in openings(policy, site):
        for each in journey.of_opening(opening, site):
            stopped = _stopped(each, chains)
            if stopped is not None and stopped[1].fate is Fate.DROPPED:
                chain, end = stopped
                service = f"{opening.name} ({each.protocol} port {each.brought_to.port})"
                dropped[str(chain), end.how][f"{service} from {each.link}"] = None
    for (name, how), services in dropped.items():
        yield f"{name}, which is not ours, drops {', '.join(services)} {how}"


def _stopped(way: Journey, chains: Sequence[ForeignChain]) -> tuple[ForeignChain, Outcome] | None:
    """The first chain that keeps a packet from where it belongs; chains in the order it meets
    them."""
    for chain in chains:
        packet = way.at(chain)
        end = outcome(chain, packet) if packet is not None else None
        if end is None or end.fate is Fate.PASSES:
            continue
        if end.fate is Fate.MOVED and _arrives(way, end):
            return None  # by another's translation, which is not followed any further
        return chain, end
    return None


def _arrives(way: Journey, end: Outcome) -> bool:
    port = way.sent_to.port if end.port is None else end.port
    there = end.address in way.brought_to.addresses if end.address else way.brought_to.local
    return port == way.brought_to.port and there is not False


def _place(end: Outcome) -> str:
    port = "" if end.port is None else f"port {end.port}"
    if not end.address:
        return f"to {port} of the router" if port else "to the router"
    return f"to {end.address} {port}".strip()
