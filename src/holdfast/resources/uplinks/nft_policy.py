"""The nftables table of policy routes and route sets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.nft import nft_table
from holdfast.resources import nft_text
from holdfast.resources.resource import Declared, Resource
from holdfast.resources.site import Site
from holdfast.resources.uplinks import default_route_policy, marking, uplink
from holdfast.resources.uplinks.policy_route import IPv4PolicyRoute
from holdfast.resources.uplinks.policy_route_set import IPv4PolicyRouteSet
from holdfast.resources.uplinks.uplink import State

ORDER = 60  # among combiners

_PRIORITY = -150  # mangle; default route policies come one before
_HASHED = {"sourceAddress": "ip saddr", "destinationAddress": "ip daddr"}


def combine(site: Site) -> Iterator[Declared]:
    resources = site.of(IPv4PolicyRoute, IPv4PolicyRouteSet)
    artifact = nft_table("ip", "holdfast_policy", nft_text.body(_parts(resources, site)))
    for resource in resources:
        yield resource, Intent(resource.id, artifact, resource.place)


def _parts(resources: list[Resource], site: Site) -> Iterator[str]:
    known = marking.marks(site, 4)
    defaults = list(_defaults(site))
    if not defaults:
        # So that this table need not be replaced when a default route fails over.
        known = known.only(
            one.mark for resource in resources for one in uplink.uplinks_of(resource)
        )
    taking = {resource.id for resource in (*marking.decided_first(site), *defaults)}
    rest: list[str] = []
    arrivals: dict[str, str] = {}
    for index, resource in enumerate(resources):
        name = f"policy{index}"
        chosen = marking.selected(resource)
        yield from chosen.sets(name)
        if resource.id in taking:
            yield marking.decision(name, known, *_choice(resource, site))
            rest += chosen.rules(name, f"goto {name}")
        for one in uplink.uplinks_of(resource):
            ifname = site.ifname(one.link)
            if known.arrivals.get(ifname) == one.mark:
                arrivals.setdefault(ifname, chosen.outside(name))
    yield marking.prerouting(_PRIORITY, known, arrivals, rest)
    yield marking.output(_PRIORITY, known, ())


def _defaults(site: Site) -> Iterator[Resource]:
    """Sets that are the default now."""
    for policy in site.of(default_route_policy.POLICIES[4]):
        active = default_route_policy.choices(policy, site)[0]
        if active.candidate.route_set is not None:
            yield site.get(IPv4PolicyRouteSet, active.candidate.route_set)


def _choice(resource: Resource, site: Site) -> tuple[list[int], str]:
    """The marks, and how one of several is picked."""
    targets = list(uplink.uplinks_of(resource))
    states = {target.mark: marking.usable(target, site) for target in targets}
    ready = [target.mark for target in targets if states[target.mark] is State.READY]
    choice = ready or [target.mark for target in targets if states[target.mark] is not State.DOWN]
    if len(choice) == 1:
        return choice, ""
    fields = " . ".join(_HASHED[name] for name in resource.spec.hash_fields)
    # A seed of its own choosing would deal the flows anew with every change of the table.
    seed = hashlib.sha256(resource.id.encode()).hexdigest()[:8]
    return choice, f"jhash {fields} mod {len(choice)} seed 0x{seed}"
