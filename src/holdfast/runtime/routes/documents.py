"""Requests as documents of the routing kinds, and what each is called.

The name of a document says which object it is about, in one spelling each: two owners that declare
the same prefix declare resources of the same kind and name, however each of them wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import Any

from holdfast.api import route_control_pb2 as rc
from holdfast.api import routes_pb2 as routes
from holdfast.config.part import Raw, Target
from holdfast.resources.routing.bfd_session import BFDSession
from holdfast.resources.routing.bgp_instance import BGPInstance
from holdfast.resources.routing.bgp_peer import BGPPeer
from holdfast.resources.routing.bgp_prefix import BGPPrefix
from holdfast.resources.routing.ospf_interface import OSPFInterface
from holdfast.resources.routing.ospf_prefix import OSPFPrefix
from holdfast.runtime.routes import text
from holdfast.runtime.routes.text import Address, Network, invalid

GROUP = "routing.holdfast.dev/v1alpha1"
PEER, PREFIX, BFD = BGPPeer.__name__, BGPPrefix.__name__, BFDSession.__name__
OSPF, OSPF_PREFIX = OSPFInterface.__name__, OSPFPrefix.__name__
INSTANCE = BGPInstance.__name__
# The resource that stands for a link, by the kernel's name. Raises CallRefused where none does.
LinkOf = Callable[[str], str]
KINDS = (PEER, PREFIX, BFD, OSPF, OSPF_PREFIX, INSTANCE)

# The BGP instance of the router itself. Others are declared in the startup file.
_INSTANCE = "default"
_MAX_PREFIX = 1000
_BFD_INTERVAL_MS, _BFD_MULTIPLIER = 300, 3
_OSPF_COST, _OSPF_HELLO_S, _OSPF_DEAD_S = 10, 10, 40
_MOST_AS = (1 << 32) - 1
_MOST_COMMUNITIES = 32
_FAMILIES = {
    rc.ADDRESS_FAMILY_IPV4_UNICAST: "ipv4",
    rc.ADDRESS_FAMILY_IPV6_UNICAST: "ipv6",
}


def document(target: Target, spec: dict[str, Any]) -> Raw:
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": {"name": target.name},
        "spec": {name: value for name, value in spec.items() if value is not None},
    }


def target_of(raw: Raw) -> Target:
    return Target(raw["apiVersion"], raw["kind"], raw["metadata"]["name"])


def _target(kind: str, *words: str) -> Target:
    """A name begins and ends with a letter or digit, and has no colons: fe80:: is fe80--0."""
    name = "-".join(words).replace(":", "-").replace("/", "-")
    return Target(GROUP, kind, f"{name}0" if name.endswith("-") else name)


def peer_target(address: Address) -> Target:
    return _target(PEER, "peer", str(address))


def prefix_target(network: Network, protocol: rc.Protocol.ValueType) -> Target:
    kind = PREFIX if protocol == rc.PROTOCOL_BGP else OSPF_PREFIX
    return _target(kind, "prefix", _host(network), str(network.prefixlen))


def _host(network: Network) -> str:
    host = str(network.network_address)
    return f"{host}0" if host.endswith(":") else host


def bfd_target(address: Address) -> Target:
    return _target(BFD, "bfd", str(address))


def ospf_target(ifname: str) -> Target:
    """Interfaces may be called what no resource may be: a name like that is said in bytes."""
    if re.fullmatch(r"[A-Za-z0-9._-]+", ifname):
        return Target(GROUP, OSPF, f"ospf.{ifname}" if ifname[-1].isalnum() else f"ospf.{ifname}.0")
    return Target(GROUP, OSPF, f"ospf-{ifname.encode().hex()}")


INSTANCE_TARGET = Target(GROUP, INSTANCE, _INSTANCE)


def peer(message: rc.BGPPeer, local_as: int) -> Raw:
    """local_as: of the instance; 0 while there is none."""
    neighbor = text.usable("neighbor_address", message.neighbor_address)
    _as_number("remote_as", message.remote_as)
    _peer_type(message, local_as)
    if message.password:
        raise invalid(
            "password cannot be declared over this API, as the ledger keeps no secrets: declare the"
            " peer in the startup file, with `passwordFile`"
        )
    return document(
        peer_target(neighbor),
        {
            "address": str(neighbor),
            "remoteAS": message.remote_as,
            **_timers(message),
            "description": text.checked("description", message.description, 80) or None,
            "families": _families(message),
            "source": _source(message, neighbor),
            "ebgpMultihop": _multihop(message.ebgp_multihop),
            "bfd": _peer_bfd(message),
        },
    )


def _as_number(field: str, number: int) -> None:
    if not 0 < number <= _MOST_AS:
        raise invalid(f"{field} is missing: the number of an AS, from 1 to {_MOST_AS}")


def _peer_type(message: rc.BGPPeer, local_as: int) -> None:
    if message.peer_type not in rc.PeerType.values():
        raise invalid(f"peer_type: there is no type {message.peer_type}")
    if not message.peer_type or not local_as:
        return
    internal = message.peer_type == rc.PEER_TYPE_INTERNAL
    if internal != (message.remote_as == local_as):
        said = rc.PeerType.Name(message.peer_type).removeprefix("PEER_TYPE_").lower()
        raise invalid(
            f"peer_type is {said}, and remote_as is {message.remote_as} where the instance's AS is"
            f" {local_as}: leave the type out, or correct the AS"
        )


def _timers(message: rc.BGPPeer) -> dict[str, str]:
    keepalive, hold = message.keepalive, message.hold_time
    if not keepalive and not hold:
        return {}
    if not keepalive or not hold:
        raise invalid("keepalive and hold_time are given both, or neither")
    if hold > 65535 or hold < 3:
        raise invalid(f"hold_time: {hold} is not from 3 to 65535 seconds")
    if hold < 3 * keepalive:
        raise invalid(f"hold_time: {hold} is less than three times the keepalive of {keepalive}")
    return {"keepalive": f"{keepalive}s", "holdTime": f"{hold}s"}


def _families(message: rc.BGPPeer) -> list[dict[str, Any]]:
    """As clients of RouteControl know it: a peer is listened to without a filter, and too many
    prefixes are a warning. 0 that is sent is no bound."""
    wanted = list(message.address_families) or [rc.ADDRESS_FAMILY_IPV4_UNICAST]
    unknown = [number for number in wanted if number not in _FAMILIES]
    if unknown:
        raise invalid(f"address_families: there is no family {unknown[0]} to exchange")
    most = message.max_prefix if message.HasField("max_prefix") else _MAX_PREFIX
    bound = {"maxPrefixes": most, "maxPrefixesWarning": True} if most else {}
    return [
        {"family": family, "importAll": True, **bound}
        for family in sorted({_FAMILIES[number] for number in wanted})
    ]


def _source(message: rc.BGPPeer, neighbor: Address) -> str | None:
    if not message.source_address:
        return None
    source = text.usable("source_address", message.source_address)
    if source.version != neighbor.version:
        raise invalid(f"source_address: {source} is of another family than {neighbor}")
    return str(source)


def _multihop(hops: int) -> int | None:
    if hops > 255:
        raise invalid(f"ebgp_multihop: {hops} is not from 1 to 255")
    return hops or None


def _peer_bfd(message: rc.BGPPeer) -> dict[str, Any] | None:
    given = (message.bfd_min_rx_ms, message.bfd_min_tx_ms, message.bfd_detect_multiplier)
    if not message.bfd_enabled:
        if any(given):
            raise invalid("bfd_enabled is not set, so that the timers of BFD have no meaning")
        return None
    return _bfd_timers(*given, "bfd_")


def _bfd_timers(rx: int, tx: int, multiplier: int, begin: str = "") -> dict[str, Any]:
    given = {
        "min_rx_ms": rx or _BFD_INTERVAL_MS,
        "min_tx_ms": tx or _BFD_INTERVAL_MS,
        "detect_multiplier": multiplier or _BFD_MULTIPLIER,
    }
    for field in ("min_rx_ms", "min_tx_ms"):
        if not 10 <= given[field] <= 60000:
            raise invalid(f"{begin}{field}: {given[field]} is not from 10 to 60000 milliseconds")
    if not 2 <= given["detect_multiplier"] <= 255:
        raise invalid(f"{begin}detect_multiplier: {multiplier} is not from 2 to 255")
    return {
        "receiveInterval": f"{given['min_rx_ms']}ms",
        "transmitInterval": f"{given['min_tx_ms']}ms",
        "detectMultiplier": given["detect_multiplier"],
    }


def prefix(
    given: str, protocol: rc.Protocol.ValueType, attributes: rc.PrefixAttributes | None
) -> Raw:
    network = text.network("prefix", given)
    _protocol(protocol)
    sent = attributes if attributes is not None and attributes.ListFields() else None
    if protocol == rc.PROTOCOL_OSPF:
        if sent is not None:
            raise invalid("attributes are of BGP: OSPF advertises a prefix without")
        return document(prefix_target(network, protocol), {"prefix": str(network)})
    spec: dict[str, Any] = {"prefix": str(network)}
    if sent is not None:
        spec |= _attributes(sent, network)
    return document(prefix_target(network, protocol), spec)


def _attributes(sent: rc.PrefixAttributes, network: Network) -> dict[str, Any]:
    """0 that was sent is a value; what was not sent is none."""
    if len(sent.communities) > _MOST_COMMUNITIES:
        raise invalid(f"communities are {len(sent.communities)}: at most {_MOST_COMMUNITIES}")
    given = sorted({text.community("communities", community) for community in sent.communities})
    hop = None
    if sent.next_hop:
        hop = text.usable("next_hop", sent.next_hop)
        if hop.version != network.version:
            raise invalid(f"next_hop: {hop} is of another family than {network}")
    large = [one for one in given if one.count(":") == 2]
    return {
        "localPreference": sent.local_preference if sent.HasField("local_preference") else None,
        "med": sent.med if sent.HasField("med") else None,
        "communities": [one for one in given if one not in large] or None,
        "largeCommunities": large or None,
        "nextHop": None if hop is None else str(hop),
    }


def _protocol(protocol: int) -> None:
    if protocol not in (rc.PROTOCOL_BGP, rc.PROTOCOL_OSPF):
        raise invalid(f"protocol: {protocol} is neither PROTOCOL_BGP nor PROTOCOL_OSPF")


def bfd(message: rc.EnableBFDRequest | routes.BFDSessionObject, link: LinkOf) -> Raw:
    address = text.usable("peer_address", message.peer_address)
    interface = message.interface_name
    return document(
        bfd_target(address),
        {
            "peer": str(address),
            "interface": link(text.ifname("interface_name", interface)) if interface else None,
            **_bfd_timers(message.min_rx_ms, message.min_tx_ms, message.detect_multiplier),
        },
    )


def ospf(message: rc.EnableOSPFRequest | routes.OSPFInterfaceObject, link: LinkOf) -> Raw:
    ifname = text.ifname("interface_name", message.interface_name)
    area = text.area("area_id", message.area_id)
    cost = message.cost or _OSPF_COST
    hello, dead = message.hello_interval or _OSPF_HELLO_S, message.dead_interval or _OSPF_DEAD_S
    if cost > 65535:
        raise invalid(f"cost: {cost} is more than 65535")
    if hello > 65535 or dead > 65535:
        raise invalid("hello_interval and dead_interval are at most 65535 seconds")
    if dead < hello:
        raise invalid(f"dead_interval: {dead} is less than the hello_interval of {hello}")
    return document(
        ospf_target(ifname),
        {
            "interface": link(ifname),
            "area": area,
            "passive": message.passive or None,
            "cost": cost,
            "helloInterval": f"{hello}s",
            "deadInterval": f"{dead}s",
        },
    )


def instance(local_as: int, router_id: str) -> Raw:
    _as_number("local_as", local_as)
    found = text.usable("router_id", router_id)
    if found.version != 4:
        raise invalid(f"router_id: {found} is no IPv4 address")
    return document(INSTANCE_TARGET, {"localAS": local_as, "routerID": str(found)})


def peer_key(given: str, field: str = "neighbor_address") -> Target:
    return peer_target(text.address(field, given))


def prefix_key(given: str, protocol: rc.Protocol.ValueType) -> Target:
    network = text.network("prefix", given)
    _protocol(protocol)
    return prefix_target(network, protocol)


def bfd_key(given: str) -> Target:
    return bfd_target(text.address("peer_address", given))


def ospf_key(given: str) -> Target:
    return ospf_target(text.ifname("interface_name", given))


def object_of(given: routes.RouteObject, local_as: int, link: LinkOf) -> Raw:
    which = given.WhichOneof("object")
    if which == "peer":
        return peer(given.peer, local_as)
    if which == "prefix":
        advertised_prefix = given.prefix
        return prefix(
            advertised_prefix.prefix, advertised_prefix.protocol, advertised_prefix.attributes
        )
    if which == "bfd":
        return bfd(given.bfd, link)
    if which == "ospf":
        return ospf(given.ospf, link)
    if which == "instance":
        return instance(given.instance.local_as, given.instance.router_id)
    raise invalid("an object of `put` is empty: say peer, prefix, bfd, ospf or instance")


def key_of(given: routes.RouteKey) -> Target:
    which = given.WhichOneof("key")
    if which == "peer":
        return peer_key(given.peer, "peer")
    if which == "prefix":
        return prefix_key(given.prefix.prefix, given.prefix.protocol)
    if which == "bfd":
        return bfd_key(given.bfd)
    if which == "ospf":
        return ospf_key(given.ospf)
    if which == "instance":
        return INSTANCE_TARGET
    raise invalid("a key of `withdraw` is empty: say peer, prefix, bfd, ospf or instance")


def by_api(raw: Raw) -> bool:
    """Whether a document has the name that this API gives it: others may call theirs what they
    like, and say several things in one."""
    target = target_of(raw)
    try:
        return target == _by_api(target, raw["spec"])
    except (KeyError, TypeError, ValueError):
        return False


def _by_api(target: Target, spec: Any) -> Target | None:
    if target.kind == INSTANCE:
        return INSTANCE_TARGET
    if target.kind == PEER:
        return peer_target(ip_address(spec["address"]))
    if target.kind == BFD:
        return bfd_target(ip_address(spec["peer"]))
    if target.kind == PREFIX:
        return prefix_target(ip_network(spec["prefix"]), rc.PROTOCOL_BGP)
    if target.kind == OSPF_PREFIX:
        return prefix_target(ip_network(spec["prefix"]), rc.PROTOCOL_OSPF)
    # The kernel's name is in its own, and the document has the resource's.
    return target if target.name.startswith(("ospf.", "ospf-")) else None


def network_of(raw: Raw) -> Network:
    return ip_network(raw["spec"]["prefix"])


def address_of(raw: Raw) -> Address:
    return ip_address(raw["spec"]["address" if raw["kind"] == PEER else "peer"])
