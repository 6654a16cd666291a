"""FirewallPolicy: what may come to the router and what may pass through it."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.config.document import Location
from holdfast.dataclass import dataclass
from holdfast.engine.kinds.nft import NFT
from holdfast.resources.firewall.zone import Zone, zone_links
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against, nothing_alone
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    listed,
    nested,
    optional,
    reference,
    required,
)
from holdfast.resources.spec.values import EVERYTHING

# Zones that go without saying where they exist; no other name means anything.
INSIDE, OUTSIDE = "lan", "wan"


class Input(Spec):
    default: str = optional(
        choice("drop", "accept"),
        "what becomes of packets to the router that nothing lets in",
        default="drop",
    )


class Allowance(Spec):
    from_: str = required(reference(Zone), "where connections come from", name="from")
    to: str = required(reference(Zone), "where they may go", name="to")


class Forward(Spec):
    default: str = optional(
        choice("drop", "accept"),
        "what becomes of connections through the router that nothing allows",
        default="drop",
    )
    allow: tuple[Allowance, ...] = optional(
        listed(nested(Allowance), least=0), "connections that may be made", default=()
    )


class Wan(Spec):
    enabled: bool = optional(flag(), "from the Zone `wan` too", default=False)


class Access(Spec):
    from_zones: tuple[str, ...] | None = optional(
        listed(reference(Zone), least=0),
        "from where; the Zone `lan` where there is one and nothing else is said, `[]` for nowhere",
    )
    wan: Wan = optional(nested(Wan), "shorthand for the Zone `wan`", default=Wan())


class OtherAccess(Spec):
    protocol: str = required(choice("tcp", "udp"), "of the service")
    ports: tuple[int, ...] = required(listed(integer(1, 65535)), "where it listens")
    from_zones: tuple[str, ...] = required(listed(reference(Zone)), "from where")


class RouterAccess(Spec):
    ssh: Access = optional(nested(Access), "TCP port 22", default=Access())
    dns: Access = optional(nested(Access), "TCP and UDP port 53", default=Access())
    dhcp: Access = optional(
        nested(Access), "UDP ports 67 and 547, of DHCPv4 and DHCPv6 servers", default=Access()
    )
    other: tuple[OtherAccess, ...] = optional(
        listed(nested(OtherAccess), least=0), "further services of the router", default=()
    )


class FirewallPolicy(Spec):
    preset: str | None = optional(
        choice("home-router"), "`home-router`: allow connections from Zone `lan` to Zone `wan`"
    )
    input: Input = optional(nested(Input), "packets to the router", default=Input())
    forward: Forward = optional(
        nested(Forward), "connections through the router", default=Forward()
    )
    router_access: RouterAccess = optional(
        nested(RouterAccess), "services of the router itself", default=RouterAccess()
    )


# Access, protocols, ports.
SERVICES = {
    "ssh": (("tcp",), (22,)),
    "dns": (("tcp", "udp"), (53,)),
    "dhcp": (("udp",), (67, 547)),
}


@dataclass(frozen=True, slots=True)
class Opening:
    """A service of the router that some links may use."""

    name: str
    protocols: tuple[str, ...]
    ports: tuple[int, ...]
    zones: tuple[str, ...]
    links: tuple[str, ...]


def openings(policy: Resource, site: Site) -> Iterator[Opening]:
    access: RouterAccess = policy.spec.router_access
    for name, (protocols, ports) in SERVICES.items():
        yield _opening(site, name, protocols, ports, _zones(getattr(access, name), site))
    for index, other in enumerate(access.other):
        zones = tuple(dict.fromkeys(other.from_zones))
        yield _opening(site, f"other[{index}]", (other.protocol,), other.ports, zones)


def _opening(
    site: Site,
    name: str,
    protocols: tuple[str, ...],
    ports: tuple[int, ...],
    zones: tuple[str, ...],
) -> Opening:
    links = tuple(link for zone in zones for link in zone_links(site, zone))
    return Opening(name, protocols, tuple(sorted(set(ports))), zones, links)


def _zones(access: Access, site: Site) -> tuple[str, ...]:
    said = access.from_zones
    if said is None:
        said = (INSIDE,) if site.find(Zone, INSIDE) is not None else ()
    outside = (OUTSIDE,) if access.wan.enabled else ()
    return tuple(dict.fromkeys((*said, *outside)))


def allowances(policy: Resource, site: Site) -> Iterator[tuple[str, str]]:
    """Pairs of kernel names: from the first, connections through the second may be made."""
    spec: FirewallPolicy = policy.spec
    pairs = {(each.from_, each.to) for each in spec.forward.allow}
    if _home_router(policy) and all(site.find(Zone, zone) for zone in (INSIDE, OUTSIDE)):
        pairs.add((INSIDE, OUTSIDE))
    for source, target in sorted(pairs):
        for from_ in zone_links(site, source):
            for to in zone_links(site, target):
                yield from_, to


def _home_router(policy: Resource) -> bool:
    # The alias system knows no other policy, whether the preset is named or not.
    return policy.spec.preset == "home-router" or policy.alias


def unsaid_zones(policy: Resource, zones: set[str]) -> Iterator[tuple[Location, str]]:
    """What a policy leaves to zones named `lan` and `wan`, where there are no such."""
    spec: FirewallPolicy = policy.spec
    missing = " and no ".join(f"Zone {name}" for name in (INSIDE, OUTSIDE) if name not in zones)
    if spec.preset == "home-router" and missing:
        message = f"home-router lets Zone {INSIDE} connect to Zone {OUTSIDE}, and there is no"
        yield ("preset",), f"{message} {missing}; say it under forward.allow instead"
    for name in SERVICES:
        access: Access = getattr(spec.router_access, name)
        here = ("routerAccess", name)
        if access.wan.enabled and OUTSIDE not in zones:
            message = f"there is no Zone {OUTSIDE}; list the zone under fromZones"
            yield (*here, "wan", "enabled"), message
        # Where everything is let in anyway, nothing depends on it.
        if access.from_zones is None and INSIDE not in zones and spec.input.default == "drop":
            message = f"there is no Zone {INSIDE} to go by; say from which zones, [] for none"
            yield (*here, "fromZones"), message


def check(resource: Resource) -> Iterator[Fault]:
    spec: FirewallPolicy = resource.spec
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(spec.forward.allow):
        if (each.from_, each.to) in seen:
            message = f"from {each.from_} to {each.to} is allowed above already"
            yield Fault(("forward", "allow", index), message)
        seen.add((each.from_, each.to))


def reaches(_resource: Resource) -> Iterator[Reach]:
    """It is about every packet to the router and through it."""
    for network in EVERYTHING.values():
        yield Reach((), network)


KINDS = (
    Kind(
        FirewallPolicy,
        "What may come to the router, and what may pass through it. Answers to what was sent,"
        " neighbour discovery, path MTU discovery, ping, and the replies of DHCP servers get in"
        " whatever the policy says. A file holds one at most.",
        (NFT.name,),
        """\
input: {default: drop}
forward:
  default: drop
  allow: [{from: home, to: uplink}]
routerAccess:
  ssh: {fromZones: [home]}
  dns: {fromZones: [home]}
  dhcp: {fromZones: [home]}
""",
        nothing_alone,
        check,
        open_to_others=nothing_against,
        reaches=reaches,
        groups=("firewall",),
        combiner="firewall.nft_filter",
        cross_checks="firewall.firewall_checks",
        only_one="there can be one FirewallPolicy, and there is",
        opens_ports=True,
    ),
)
