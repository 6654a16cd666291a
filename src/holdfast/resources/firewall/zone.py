"""Zone: interfaces that are trusted alike."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.kinds.nft import NFT
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against, nothing_alone
from holdfast.resources.site import Site
from holdfast.resources.spec.repeats import repeated
from holdfast.resources.spec.shape import Spec, link_reference, listed, required


class Zone(Spec):
    interfaces: tuple[str, ...] = required(
        listed(link_reference()), "its interfaces; each is in one zone at most"
    )


def check(resource: Resource) -> Iterator[Fault]:
    yield from repeated(resource.spec.interfaces, ("interfaces",))


def zone_links(site: Site, zone: str) -> tuple[str, ...]:
    """The kernel names of a zone's links."""
    return tuple(site.ifname(name) for name in site.get(Zone, zone).spec.interfaces)


KINDS = (
    Kind(
        Zone,
        "Interfaces that a FirewallPolicy treats alike. Any name will do; an interface in no zone"
        " gets what the policy's defaults say.",
        (NFT.name,),
        "interfaces: [lan]\n",
        nothing_alone,
        check,
        open_to_others=nothing_against,
        groups=("firewall",),
        cross_checks="firewall.firewall_checks",
    ),
)
