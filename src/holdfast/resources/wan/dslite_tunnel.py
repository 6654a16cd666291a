"""DSLiteTunnel: IPv4 over an IPv6 provider, through its AFTR (RFC 6333)."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, IPv6Interface, IPv6Network

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Value
from holdfast.engine.intent import BulkIntent, Intent, Waiting
from holdfast.engine.kinds.address import ADDRESS, address_key
from holdfast.engine.kinds.address import address as address_artifact
from holdfast.engine.kinds.link import LINK, link, link_key
from holdfast.engine.kinds.route import ROUTE, Nexthop, batch, pack_key, template
from holdfast.resources.facts import Lease, LinkAddress, Lookup
from holdfast.resources.resource import Fault, Kind, Link, Reach, Resource, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec import dns_name
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    device_reference,
    flag,
    integer,
    listed,
    optional,
    parsed,
    reference,
    required,
)
from holdfast.resources.spec.values import (
    EVERYTHING,
    Address,
    address,
    any_ipv6,
    encap_limit,
    ifname,
)
from holdfast.resources.wan import delegated_address
from holdfast.resources.wan.delegated_address import IPv6DelegatedAddress, Missing, parse_suffix

# What an access line of 1500 leaves, less 40 for the outer header, less the few bytes that access
# networks in front of an AFTR take.
DEFAULT_MTU = 1454
_UNIQUE_LOCAL = IPv6Network("fc00::/7")  # no AFTR would answer to these
_SOURCES = ("interface", "static", "delegatedAddress")


class DSLiteTunnel(Spec):
    interface: str = required(device_reference(), "the link to the provider")
    tunnel_name: str | None = optional(
        ifname(), "the kernel's name of the tunnel; that of the resource where not given"
    )
    aftr_fqdn: str | None = optional(
        dns_name.domain(any_ipv6),
        "the name of the AFTR, asked for in the DNS",
        name="aftrFQDN",
    )
    remote_address: Address | None = optional(
        address(6), "the address of the AFTR; prevails over `aftrFQDN`"
    )
    aftr_dns_servers: tuple[Address, ...] = optional(
        listed(address()), "whom to ask; the system's own servers if none", default=(),
        name="aftrDNSServers",
    )  # fmt: skip
    aftr_address_ordinal: int = optional(
        integer(1, 65535), "which of the addresses, in numerical order, from 1", default=1
    )
    aftr_address_selection: str = optional(
        choice("ordinal", "ordinalModulo"),
        "`ordinal`: just that one, waited for if there are fewer; `ordinalModulo`: counted round",
        default="ordinal",
    )
    local_address: Address | None = optional(address(6), "for `localAddressSource: static`")
    local_address_source: str = optional(
        choice(*_SOURCES),
        "`interface`: the first global address of the link; `static`: `localAddress`;"
        " `delegatedAddress`: an address of its own beside `localDelegatedAddress`",
        default="interface",
    )
    local_delegated_address: str | None = optional(
        reference(IPv6DelegatedAddress), "in whose subnet the local end is"
    )
    local_address_suffix: IPv6Address | None = optional(
        parsed(parse_suffix, "end of an IPv6 address", reach=any_ipv6),
        "the last 64 bits of the local end; the delegated address itself where not given",
    )
    default_route: bool = optional(
        flag(), "send IPv4 through it, by a default route in the main table", default=False
    )
    route_metric: int = optional(integer(0, 0xFFFFFFFF), "of that route", default=50)
    mtu: int = optional(integer(1280, 65535), "largest packet inside, bytes", default=DEFAULT_MTU)
    encapsulation_limit: str = optional(
        encap_limit(), "how many more tunnels may be entered on the way", default="none"
    )

    @property
    def lookup(self) -> Lookup | None:
        if self.remote_address is not None or self.aftr_fqdn is None:
            return None
        return Lookup(self.aftr_fqdn, 6, tuple(map(str, self.aftr_dns_servers)))


def ifname_of(resource: Resource) -> str:
    spec: DSLiteTunnel = resource.spec
    return spec.tunnel_name or resource.name


def lookups(resource: Resource) -> tuple[Lookup, ...]:
    spec: DSLiteTunnel = resource.spec
    return (spec.lookup,) if spec.lookup is not None else ()


def check(resource: Resource) -> Iterator[Fault]:
    spec: DSLiteTunnel = resource.spec
    if spec.aftr_fqdn is None and spec.remote_address is None:
        yield Fault((), "needs `aftrFQDN` or `remoteAddress`: where the tunnel leads")
    if spec.tunnel_name is None:
        try:
            ifname().read(resource.name)
        except ValueError as error:
            yield Fault(("tunnelName",), f"is missing, and its name cannot be one: {error}")
    for field, end in (
        ("remoteAddress", spec.remote_address),
        ("localAddress", spec.local_address),
    ):
        if end is not None and (end.is_unspecified or end.is_loopback or end.is_multicast):
            yield Fault((field,), f"{end} cannot be the end of a tunnel")
    source = spec.local_address_source
    for field, value, wanted in (
        ("localAddress", spec.local_address, "static"),
        ("localDelegatedAddress", spec.local_delegated_address, "delegatedAddress"),
        ("localAddressSuffix", spec.local_address_suffix, "delegatedAddress"),
    ):
        if value is not None and source != wanted:
            yield Fault((field,), f"has no meaning with `localAddressSource: {source}`")
    if source == "static" and spec.local_address is None:
        yield Fault(("localAddress",), "is missing; `localAddressSource: static` needs it")
    if source == "delegatedAddress" and spec.local_delegated_address is None:
        message = "is missing; `localAddressSource: delegatedAddress` needs it"
        yield Fault(("localDelegatedAddress",), message)


def remote_address(resource: Resource, site: Site) -> IPv6Address | None:
    """The far end as far as it is known."""
    found = _remote(resource.spec, site)
    return found if isinstance(found, IPv6Address) else None


def _remote(spec: DSLiteTunnel, site: Site) -> IPv6Address | Missing:
    lookup = spec.lookup
    if lookup is None:
        return IPv6Address(spec.remote_address or "::")
    answers = site.facts.answers.get(lookup)
    if answers is None:
        return Missing(f"waits for the DNS to say where {spec.aftr_fqdn} is", keeps=True)
    known = sorted(answer for answer in answers if isinstance(answer, IPv6Address))
    ordinal = spec.aftr_address_ordinal - 1
    if known and spec.aftr_address_selection == "ordinalModulo":
        ordinal %= len(known)
    if ordinal >= len(known):
        wanted = spec.aftr_address_ordinal
        reason = f"waits for address {wanted} of {spec.aftr_fqdn}, which has {len(known)}"
        return Missing(reason, keeps=True)
    return known[ordinal]


@dataclass(frozen=True, slots=True)
class _Local:
    address: IPv6Address
    made: tuple[IPv6Interface, str] | None = None  # an address of our own, and its link


def _local(spec: DSLiteTunnel, site: Site) -> _Local | Missing:
    if spec.local_address is not None:
        return _Local(IPv6Address(spec.local_address))
    if spec.local_delegated_address is not None:
        beside = site.get(IPv6DelegatedAddress, spec.local_delegated_address)
        found = delegated_address.resolve(beside, site)
        if isinstance(found, Missing):
            return found
        if spec.local_address_suffix is None:
            return _Local(found.ip)
        number = int(found.network.network_address) | int(spec.local_address_suffix)
        own = IPv6Interface((number, 128))
        return _Local(own.ip, (own, site.ifname(beside.spec.interface)))
    dev = site.ifname(spec.interface)
    for ipv6_interface in _addresses(dev, site):
        if isinstance(ipv6_interface, IPv6Interface) and not _is_local(ipv6_interface.ip):
            return _Local(ipv6_interface.ip)
    return Missing(f"waits for a global IPv6 address on {dev}", keeps=True)


def _is_local(address: IPv6Address) -> bool:
    return address.is_link_local or address in _UNIQUE_LOCAL


def _addresses(dev: str, site: Site) -> Iterator[LinkAddress]:
    """Those that last first: the kernel's own come and go, and it lists the newest first."""
    yield from site.addresses(dev)
    lease = site.facts.leases6.get(dev)
    if isinstance(lease, Lease):
        yield from lease.addresses
    yield from site.facts.addresses.get(dev, ())


def intents(resource: Resource, site: Site) -> Iterator[Intent | BulkIntent | Waiting]:
    local, remote = _local(resource.spec, site), _remote(resource.spec, site)
    if isinstance(local, Missing):
        yield from _wait(resource, local, site)
    elif isinstance(remote, Missing):
        yield from _wait(resource, remote, site)
    else:
        yield from _tunnel(resource, local, remote, site)


def _wait(resource: Resource, missing: Missing, site: Site) -> Iterator[BulkIntent | Waiting]:
    yield Waiting(resource.id, resource.place, missing.reason, missing.keeps)
    if missing.keeps:
        # The tunnel that is there stays. So does the route through it, which is known by its tag
        # alone and not by who made it.
        yield from _default_route(resource, site)


def _tunnel(
    resource: Resource, local: _Local, remote: IPv6Address, site: Site
) -> Iterator[Intent | BulkIntent]:
    spec: DSLiteTunnel = resource.spec
    parent = site.ifname(spec.interface)
    requires = [link_key(parent)]
    if local.made is not None:
        own, dev = local.made
        artifact = address_artifact(own, dev, allow_overlap=True)
        yield Intent(resource.id, artifact, resource.place, requires=site.link_key(dev))
        requires.append(address_key(own, dev))
    fields: dict[str, Value] = {
        "type": "ip6tnl",
        "up": True,
        "mtu": spec.mtu,
        "local": str(local.address),
        "remote": str(remote),
        "parent": parent,
        "mode": "ipip6",
        "encap_limit": spec.encapsulation_limit,
        "hop_limit": 64,
    }
    tunnel = link(site.ifname(resource.name), fields)
    yield Intent(resource.id, tunnel, resource.place, requires=tuple(requires))
    yield from _default_route(resource, site)


def _default_route(resource: Resource, site: Site) -> Iterator[BulkIntent]:
    spec: DSLiteTunnel = resource.spec
    if spec.default_route:
        name = site.ifname(resource.name)
        way = template(4, metric=spec.route_metric, nexthops=(Nexthop(dev=name),))
        whole = batch(way, [pack_key(bytes(4), 0)])
        yield BulkIntent(resource.id, whole, resource.place, (link_key(name),))


def reaches(resource: Resource) -> Iterator[Reach]:
    if resource.spec.default_route:
        yield Reach(("defaultRoute",), EVERYTHING[4])


KINDS = (
    Kind(
        DSLiteTunnel,
        "A DS-Lite tunnel: IPv4 in IPv6 to the provider's AFTR. Where the AFTR is given by name or"
        " the local end comes from a delegated prefix, it waits until both are known; a new answer"
        " moves the tunnel in place.",
        (LINK.name, ADDRESS.name, ROUTE.name),
        """\
interface: wan
tunnelName: ds-lite
aftrFQDN: gw.example.net
localAddressSource: delegatedAddress
localDelegatedAddress: lan
localAddressSuffix: ::100
defaultRoute: true
""",
        intents,
        check,
        open_to_others=nothing_against,
        reaches=reaches,
        cross_checks="wan.dslite_checks",
        needs_facts=True,
        link=Link(ifname_of, DEFAULT_MTU, field="tunnelName", remote=remote_address),
        lookups=lookups,
        leads_out="interface",
    ),
)
