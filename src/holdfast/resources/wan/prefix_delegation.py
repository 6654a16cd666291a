"""IPv6PrefixDelegation: a prefix for the networks behind the router, asked for over one link."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Network

from holdfast.engine.intent import BulkIntent, Waiting
from holdfast.engine.kinds import route as routes
from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.kinds.service import SERVICE
from holdfast.resources.facts import GONE
from holdfast.resources.resource import Fault, Kind, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    optional,
    required,
)
from holdfast.resources.wan import dhcp_client

NTT_PREFIX_LENGTH = 60
SUBNET_LENGTH = 64


class IPv6PrefixDelegation(Spec):
    interface: str = required(link_reference(), "the link towards the server")
    client: str = dhcp_client.client()
    profile: str = optional(
        choice("default", "ntt-ngn-direct-hikari-denwa", "ntt-hgw-lan-pd"),
        "what the provider expects: those of NTT a DUID made of the hardware address, no rapid"
        f" commit, and a /{NTT_PREFIX_LENGTH} asked for",
        default="default",
    )
    prefix_length: int | None = optional(
        integer(1, 128), "the length to ask for; the server may give another"
    )
    required: bool = optional(
        flag(), "a pass without the prefix has not converged, and `apply` says so", default=False
    )

    @property
    def ntt(self) -> bool:
        return self.profile != "default"

    @property
    def hint(self) -> int | None:
        return self.prefix_length or (NTT_PREFIX_LENGTH if self.ntt else None)


def check(resource: Resource) -> Iterator[Fault]:
    spec: IPv6PrefixDelegation = resource.spec
    yield from dhcp_client.check(resource)
    if spec.ntt and spec.hint != NTT_PREFIX_LENGTH:
        message = f"must be {NTT_PREFIX_LENGTH} with profile {spec.profile}, or left out"
        yield Fault(("prefixLength",), message)


def intents(resource: Resource, site: Site) -> Iterator[BulkIntent | Waiting]:
    """What is not in use of a prefix must not go back to where it came from (RFC 7084)."""
    spec: IPv6PrefixDelegation = resource.spec
    dev = site.ifname(spec.interface)
    found = site.facts.delegations.get(dev)
    if found is None or found is GONE:
        lost = "; none is given at present" if found is GONE else ""
        yield Waiting(
            resource.id,
            resource.place,
            f"waits for a delegated prefix on {dev}{lost}",
            keeps=found is None,
            # The routes below carry a tag, which does not say whose they are.
            groups=frozenset({routes.in_table(routes.MAIN_TABLE)}),
            required=spec.required,
        )
        return
    shared = routes.template(6, kind="unreachable")
    keys = [
        routes.pack_key(half.network_address.packed, half.prefixlen)
        for prefix in found
        for half in _halves(prefix)
    ]
    if keys:
        yield BulkIntent(resource.id, routes.batch(shared, keys), resource.place)


def _halves(prefix: IPv6Network) -> Iterator[IPv6Network]:
    """dhcpcd has an unreachable route too, while it runs. Seen of 9.4.1: it takes the end of any
    other one to the same destination for that of its own, which it then leaves behind. So ours
    lead to the halves. A single subnet has nothing that is not in use."""
    if prefix.prefixlen < SUBNET_LENGTH:
        yield from prefix.subnets()


KINDS = (
    Kind(
        IPv6PrefixDelegation,
        "A prefix for the networks behind the router, from a DHCP server. IPv6DelegatedAddress"
        " puts its subnets on links; what is not in use of it is unreachable instead of going in"
        " circles. When the prefix changes, everything made of it follows; while the client has"
        " not said anything (after a restart), everything stays.",
        (ROUTE.name, FILE.name, SERVICE.name),
        "interface: wan\nprefixLength: 56\n",
        intents,
        check,
        combiner="wan.dhcpcd",
        cross_checks="wan.dhcp_client_checks",
        needs_facts=True,
        brings_addresses=True,
        leads_out="interface",
    ),
)
