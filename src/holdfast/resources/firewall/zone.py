"""Zone: interfaces that are trusted alike."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.resources.repeats import repeated
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.shape import Spec, listed, reference, required
from holdfast.resources.site import LINK_KINDS, Site


class Zone(Spec):
    interfaces: tuple[str, ...] = required(
        listed(reference(*LINK_KINDS)), "its interfaces; each is in one zone at most"
    )


def check(resource: Resource) -> Iterator[Fault]:
    yield from repeated(resource.spec.interfaces, ("interfaces",))


def zone_links(site: Site, zone: str) -> tuple[str, ...]:
    """The kernel names of a zone's links."""
    return tuple(site.ifname(name) for name in site.get("Zone", zone).spec.interfaces)


KINDS = {
    "Zone": Kind(
        "Zone",
        Zone,
        "Interfaces that a FirewallPolicy treats alike. Any name will do; an interface in no zone"
        " gets what the policy's defaults say.",
        ("nft",),
        "interfaces: [lan]\n",
        nothing_alone,
        check,
    )
}
