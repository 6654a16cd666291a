"""WireGuardInterface: a WireGuard link with its keys, its peers, and the routes to them."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.config.document import Location
from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Key
from holdfast.engine.intent import BulkIntent, Intent, Waiting
from holdfast.engine.kinds import wireguard
from holdfast.engine.kinds.link import LINK, link
from holdfast.engine.kinds.route import MAIN_TABLE, ROUTE, Nexthop, batch, pack_key, template
from holdfast.engine.kinds.wireguard import WIREGUARD
from holdfast.resources.facts import Lookup
from holdfast.resources.links.wireguard_endpoint import Endpoint, endpoint
from holdfast.resources.links.wireguard_key import STAND_IN, parse_key, public_key
from holdfast.resources.resource import Content, Fault, Folder, Kind, Link, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec import secret_file
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    listed,
    nested,
    optional,
    parsed,
    required,
    text,
)
from holdfast.resources.spec.values import Network, ifname, mark, parse_ifname, prefix, route_table

# What an Ethernet of 1500 leaves when the outer header is IPv6.
DEFAULT_MTU = 1420


class Peer(Spec):
    name: str = required(text(), "what people call it")
    public_key: str = required(parsed(parse_key, "key in base64"), "as `wg pubkey` prints it")
    preshared_key_file: str | None = optional(
        text("path"),
        "a file that only its owner can read, with the key of `wg genpsk` on its first line;"
        " relative to the YAML file",
    )
    endpoint: Endpoint | None = optional(
        endpoint(),
        "where it is to be found at first; without one, it has to call. Once it was heard from, it"
        " may move: that is not undone",
    )
    endpoint_family: str | None = optional(
        choice("ipv4", "ipv6"),
        "which addresses of a name to take; IPv4, or IPv6 where there are none",
    )
    allowed_ips: tuple[Network, ...] = required(
        listed(prefix()),
        "what may come from it and is sent to it; of several peers the one with the longest"
        " prefix gets a packet",
        name="allowedIPs",
    )
    persistent_keepalive: float = optional(
        duration(0, 65535),
        "pause between empty packets that keep the way through a NAT open, in whole seconds; none"
        " are sent where not given",
        default=0.0,
    )

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        return self.endpoint.lookups(self.endpoint_family) if self.endpoint is not None else ()

    def may_be_over(self, family: int) -> bool:
        """Whether it may be reached over IPv4 or IPv6, as far as its endpoint says."""
        if self.endpoint is None:
            return True
        if not isinstance(self.endpoint.host, str):
            return self.endpoint.host.version == family
        return any(lookup.family == family for lookup in self.lookups)


class WireGuardInterface(Spec):
    ifname: str | None = optional(
        ifname(), "the kernel's name of the link; that of the resource where not given"
    )
    private_key_file: str = required(
        text("path"),
        "a file that only its owner can read, with the key of `wg genkey` on its first line;"
        " relative to the YAML file",
    )
    listen_port: int | None = optional(
        integer(1, 65535), "UDP port; any, of the kernel's choice, where not given"
    )
    fwmark: int = optional(mark(), "put on the packets around the tunnelled ones", default=0)
    mtu: int = optional(integer(576, 65535), "largest packet inside, bytes", default=DEFAULT_MTU)
    admin_up: bool = optional(flag(), "set it up or down", default=True)
    peers: tuple[Peer, ...] = optional(
        listed(nested(Peer), least=0), "all others are removed from the link", default=()
    )
    routes: bool = optional(
        flag(),
        "route the `allowedIPs` of all peers through the link, as wg-quick does. What is in the"
        " subnet of an address on the link has a route already",
        default=True,
    )
    route_table: int = optional(route_table(), "of these routes", default=MAIN_TABLE)
    route_metric: int = optional(integer(0, 0xFFFFFFFF), "of these routes", default=0)


@dataclass(frozen=True, slots=True)
class Keys:
    private: str = field(repr=False)
    public: str
    preshared: tuple[str, ...] = field(repr=False)  # for each peer, "" for none


def ifname_of(resource: Resource) -> str:
    spec: WireGuardInterface = resource.spec
    return spec.ifname or resource.name


def lookups(resource: Resource) -> Iterator[Lookup]:
    for peer in resource.spec.peers:
        yield from peer.lookups


def behind(resource: Resource, version: int) -> Iterator[Network]:
    for peer in resource.spec.peers:
        yield from (network for network in peer.allowed_ips if network.version == version)


def check(resource: Resource) -> Iterator[Fault]:
    spec: WireGuardInterface = resource.spec
    if spec.ifname is None:
        try:
            parse_ifname(ifname_of(resource))
        except ValueError as error:
            yield Fault(("ifname",), f"is missing, and its name cannot be one: {error}")
    if not spec.routes:
        for name, value, default in (
            ("routeTable", spec.route_table, MAIN_TABLE),
            ("routeMetric", spec.route_metric, 0),
        ):
            if value != default:
                yield Fault((name,), "has no meaning with `routes: false`")
    names: dict[str, int] = {}
    keys: dict[str, int] = {}
    prefixes: dict[Network, tuple[int, int]] = {}
    for index, peer in enumerate(spec.peers):
        here: Location = ("peers", index)
        first = names.setdefault(peer.name, index)
        if first != index:
            yield Fault((*here, "name"), f"peers[{first}] has this name already")
        first = keys.setdefault(peer.public_key, index)
        if first != index:
            yield Fault((*here, "publicKey"), f"is that of peer {_called(spec, first)} too")
        yield from _check_peer(spec, here, peer)
        for position, allowed in enumerate(peer.allowed_ips):
            owner, at = prefixes.setdefault(allowed, (index, position))
            if (owner, at) != (index, position):
                message = f"{allowed} is allowed for peer {_called(spec, owner)} too, in"
                message += f" peers[{owner}].allowedIPs[{at}]; the kernel sends it to one of them"
                yield Fault((*here, "allowedIPs", position), message)


def _called(spec: WireGuardInterface, index: int) -> str:
    return f"{spec.peers[index].name} (peers[{index}])"


def _check_peer(spec: WireGuardInterface, here: Location, peer: Peer) -> Iterator[Fault]:
    if peer.persistent_keepalive % 1:
        yield Fault((*here, "persistentKeepalive"), "must be whole seconds")
    if peer.endpoint_family is not None and not peer.lookups:
        yield Fault((*here, "endpointFamily"), "has no meaning without a name in `endpoint`")
    if not spec.routes or spec.fwmark or spec.route_table != MAIN_TABLE:
        return
    for position, allowed in enumerate(peer.allowed_ips):
        if allowed.prefixlen == 0:
            yield Fault(
                (*here, "allowedIPs", position),
                f"a route to {allowed} through the link would take WireGuard's own packets too;"
                " say `routes: false`, or another `routeTable`, or a `fwmark` for a RoutingRule to"
                " tell them by",
            )


def read(resource: Resource, folder: Folder) -> Content:
    """The keys. They are no part of the configuration that the ledger keeps."""
    spec: WireGuardInterface = resource.spec
    faults: list[Fault] = []

    def key(name: str, location: Location) -> str:
        found = secret_file.read(folder, name, location, parse_key, stand_in=STAND_IN)
        faults.extend(found.faults)
        return found.value

    private = key(spec.private_key_file, ("privateKeyFile",))
    preshared = tuple(
        key(peer.preshared_key_file, ("peers", index, "presharedKeyFile"))
        if peer.preshared_key_file is not None
        else ""
        for index, peer in enumerate(spec.peers)
    )
    if not private:
        return Content(None, faults=tuple(faults))
    public = public_key(private)
    for index, peer in enumerate(spec.peers):
        if peer.public_key == public:
            message = "is the public key of this interface, which cannot be its own peer"
            faults.append(Fault(("peers", index, "publicKey"), message))
    return Content(Keys(private, public, preshared), faults=tuple(faults))


def intents(resource: Resource, site: Site) -> Iterator[Intent | BulkIntent | Waiting]:
    spec: WireGuardInterface = resource.spec
    keys: Keys = resource.content
    name = site.ifname(resource.name)
    made = link(name, {"type": "wireguard", "up": spec.admin_up, "mtu": spec.mtu})
    yield Intent(resource.id, made, resource.place)
    peers = []
    for peer, preshared in zip(spec.peers, keys.preshared, strict=True):
        where = peer.endpoint.resolve(peer.endpoint_family, site) if peer.endpoint else ""
        if where is None:
            # Everything else is as it shall be, and a peer that calls is answered.
            reason = f"waits for the DNS to say where peer {peer.name} is"
            yield Waiting(resource.id, resource.place, reason, groups_only=True)
        peers.append(
            wireguard.Peer(
                peer.public_key,
                tuple(map(str, peer.allowed_ips)),
                where or "",
                int(peer.persistent_keepalive),
                preshared,
            )
        )
    told = wireguard.wireguard(
        name, keys.private, keys.public, peers, listen_port=spec.listen_port, fwmark=spec.fwmark
    )
    yield Intent(resource.id, told, resource.place, requires=(made.key,))
    if spec.routes and spec.admin_up:
        yield from _routes(resource, site, name, (made.key, told.key))


def _routes(
    resource: Resource, site: Site, name: str, requires: tuple[Key, ...]
) -> Iterator[BulkIntent]:
    spec: WireGuardInterface = resource.spec
    on_link = (
        [address.network for address in site.addresses(name)]
        if spec.route_table == MAIN_TABLE
        else []
    )
    for family in (4, 6):
        prefixes = sorted(
            allowed
            for peer in spec.peers
            for allowed in peer.allowed_ips
            if allowed.version == family
            and not any(_holds(network, allowed) for network in on_link)
        )
        if prefixes:
            shared = template(
                family,
                table=spec.route_table,
                metric=spec.route_metric,
                nexthops=(Nexthop(dev=name),),
            )
            routes = [pack_key(one.network_address.packed, one.prefixlen) for one in prefixes]
            yield BulkIntent(resource.id, batch(shared, routes), resource.place, requires)


def _holds(network: Network, allowed: Network) -> bool:
    return network.version == allowed.version and allowed.subnet_of(network)  # type: ignore[arg-type]  # the same version


KINDS = (
    Kind(
        WireGuardInterface,
        "A WireGuard link, its keys and its peers. Addresses are put on it by IPv4StaticAddress and"
        " IPv6StaticAddress. A change touches the peers that differ and no others. Keys stand in"
        " files that only root can read, and nowhere else.",
        (LINK.name, WIREGUARD.name, ROUTE.name),
        """\
ifname: wg0
privateKeyFile: wg0.key
listenPort: 51820
peers:
  - name: office
    publicKey: nSo3VxMXxNtZ9BN4mEfPCN7UVkIi+DHLmZ+2eO1krmo=
    endpoint: vpn.example.net:51820
    allowedIPs: [10.20.0.0/16, "2001:db8:20::/48"]
    persistentKeepalive: 25s
  - name: laptop
    publicKey: ZriUggz4PdxtncpaDDJ6UmXWYuUMQrBKZoEu8s7Cl2I=
    allowedIPs: [10.99.0.2/32]
""",
        intents,
        check,
        read,
        cross_checks="links.wireguard_checks",
        needs_facts=True,
        link=Link(ifname_of, 1420),
        lookups=lookups,
        behind=behind,
    ),
)
