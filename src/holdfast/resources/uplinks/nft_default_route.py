"""The nftables tables of default route policies, one for each family."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.nft import nft_table
from holdfast.resources import nft_text
from holdfast.resources.resource import Declared, Resource
from holdfast.resources.site import Site
from holdfast.resources.uplinks import default_route_policy, marking, uplink
from holdfast.resources.uplinks.marking import Marks

ORDER = 70  # among combiners

_PRIORITY = -151  # one before policy routes
_FAMILIES = {4: "ip", 6: "ip6"}


def combine(site: Site) -> Iterator[Declared]:
    for family, word in _FAMILIES.items():
        policies = site.of(default_route_policy.POLICIES[family])
        if not policies:
            continue
        text = nft_text.body(_parts(policies, family, site))
        artifact = nft_table(word, "holdfast_default_route", text)
        for resource in policies:
            yield resource, Intent(resource.id, artifact, resource.place)


def _parts(policies: list[Resource], family: int, site: Site) -> Iterator[str]:
    known = marking.marks(site, family)
    rest: list[str] = []
    for index, resource in enumerate(marking.decided_first(site) if family == 4 else ()):
        name = f"other{index}"
        chosen = marking.selected(resource)
        yield from chosen.sets(name)
        rest += chosen.rules(name, "return")
    departures: dict[str, None] = {}
    arrivals: dict[str, str] = {}
    for index, policy in enumerate(policies):
        name = f"default{index}"
        chosen = marking.selected(policy)
        yield from chosen.sets(name)
        active = default_route_policy.choices(policy, site)[0]
        if active.candidate.route_set is None:
            yield marking.decision(name, known, [active.ways[0].mark])
            rest += chosen.rules(name, f"goto {name}")
        else:
            # Without a mark it comes to the table of policy routes, which knows the targets.
            rest += chosen.rules(name, "return")
        for ifname in _links(policy, known, site):
            arrivals.setdefault(ifname, chosen.outside(name))
            if default_route_policy.for_router(policy.spec):
                departures[ifname] = None
    yield marking.prerouting(_PRIORITY, known, arrivals, rest)
    yield marking.output(_PRIORITY, known, departures)


def _links(policy: Resource, known: Marks, site: Site) -> Iterator[str]:
    for one in uplink.uplinks_of(policy):
        ifname = site.ifname(one.link)
        if known.arrivals.get(ifname) == one.mark:
            yield ifname
