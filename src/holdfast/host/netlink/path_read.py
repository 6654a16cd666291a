"""All that decides the way of a connection, read from the kernel (engine/path/network.py)."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Collection
from ipaddress import ip_address, ip_network

from holdfast.dataclass import replace
from holdfast.engine.path import changes
from holdfast.engine.path.judgement import Connection
from holdfast.engine.path.lookup import Packet, Path
from holdfast.engine.path.network import (
    IPAddress,
    Network,
    Route,
    Rule,
    disable_ipv6,
    rp_filter,
    rule_of,
)
from holdfast.host.netlink import attributes, rule_codec
from holdfast.host.netlink.addresses.address_read import AddressReader
from holdfast.host.netlink.conntrack import mark_of
from holdfast.host.netlink.links import link_codec
from holdfast.host.netlink.links.link_names import IFLA_IFNAME, dump_links
from holdfast.host.netlink.neighbours import RTM_GETNEIGH, hardware_address
from holdfast.host.netlink.routes import route_decode
from holdfast.host.netlink.routes.route_codec import OddTemplate
from holdfast.host.netlink.routes.route_read import dump_runs
from holdfast.host.netlink.rule_codec import SeenRule
from holdfast.host.netlink.rules import RuleReader
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.sysctl import setting_path

_BY_KERNEL = 2  # RTPROT_KERNEL
_AF_BRIDGE = 7
_NDA_LLADDR, _NDA_MASTER = 2, 9
_PROC = pathlib.Path("/proc/sys")


def read_network(
    sock: NetlinkSocket, version: int, addresses: Collection[IPAddress] = ()
) -> Network:
    """addresses: those that are asked about. Of a million routes, theirs alone are taken apart."""
    bodies = dump_links(sock)
    names = {
        attributes.to_int(body[4:8]): attributes.to_text(attributes.parse(body, 16)[IFLA_IFNAME])
        for body in bodies
    }
    found = Network(version)
    for body in bodies:
        seen = link_codec.decode(body, lambda index: names.get(index, ""))
        found.links[seen.artifact.key.name] = seen.artifact.fields
    for address in AddressReader(sock).read().addresses:
        if address.version == version:
            found.addresses[address.key] = address.artifact.fields
    found.rules = [_rule(seen) for seen in RuleReader(sock).read(version)]
    if not addresses:
        return found
    reader = route_decode.Reader(names)
    keys = {key for address in addresses for key in changes.covering(address)}
    for body in route_decode.pick(dump_runs(sock, version), version, keys):
        found.routes.append(_route(reader, body))
    return found


def vrf_of(sock: NetlinkSocket, address: IPAddress) -> str:
    """The VRF that an address of this host is in; "" where it is in none."""
    network = read_network(sock, address.version)
    for fields in network.addresses.values():
        if fields["address"] == str(address):
            return network.vrf(str(fields["dev"]))
    return ""


def marked(sock: NetlinkSocket, connection: Connection) -> Connection:
    """With its mark, where a rule goes by marks: answers are then given that of their connection,
    or the rule would be for nobody. Nothing is asked of connection tracking otherwise, which might
    have to be loaded for that."""
    rules = map(rule_of, (seen.artifact for seen in RuleReader(sock).read(connection.version)))
    if not any(rule.mark & rule.mask for rule in rules):
        return connection
    ours, theirs = connection.ends
    return replace(connection, mark=mark_of(ours, theirs))


def learn_path(sock: NetlinkSocket, network: Network, packet: Packet, path: Path) -> list[str]:
    """What else counts for the way that a packet takes: its next hop's MAC, settings of links.
    Answers with the ports of bridges that the next hop is behind."""
    if network.version == 6:
        settings = list(map(disable_ipv6, path.links))
    else:
        links = path.links | network.links_of(packet.source)
        settings = list(map(rp_filter, ("all", *links)))
    network.sysctls.update((name, _setting(name)) for name in settings)
    ports = []
    for nexthop in path.nexthops:
        address = nexthop.gateway or str(packet.destination)
        known = hardware_address(sock, ip_address(address), nexthop.dev)
        if known:
            network.neighbours[address, nexthop.dev] = known
            if network.links.get(nexthop.dev, {}).get("type") == "bridge":
                ports += _ports(sock, network, nexthop.dev, known)
    return ports


def _ports(sock: NetlinkSocket, network: Network, bridge: str, mac: str) -> list[str]:
    """Those that the bridge has seen a MAC on, which is one where it is."""
    header = bytes((_AF_BRIDGE,)) + bytes(11)
    index = network.links[bridge]["ifindex"]
    names = {fields["ifindex"]: name for name, fields in network.links.items()}
    found = []
    for body in sock.dump(RTM_GETNEIGH, header, "forwarding tables of bridges"):
        said = attributes.parse(body, 12)
        at = names.get(attributes.to_int(body[4:8]), "")
        same = said.get(_NDA_LLADDR, b"").hex(":") == mac
        if same and attributes.to_int(said.get(_NDA_MASTER, b"")) == index and at not in found:
            found.append(at)
    return [port for port in found if port and port != bridge]


def _route(reader: route_decode.Reader, body: bytes) -> Route:
    shared, key = reader.read(body)
    source = b""
    if isinstance(shared, OddTemplate):
        source = shared.source
    return Route(
        ip_network((key[1:], key[0])),
        shared.table,
        shared.metric,
        shared.type,
        shared.nexthops,
        shared.prefsrc,
        ip_network((source[1:].ljust(len(key) - 1, b"\0"), source[0])) if source else None,
        by_kernel=route_decode.protocol_of(body) == _BY_KERNEL,
    )


def _rule(seen: SeenRule) -> Rule:
    """With what rules of others may ask for."""
    rule = rule_of(seen.artifact)
    for name, value in rule_codec.besides(seen).items():
        match name:
            case "not":
                rule = replace(rule, inverted=True)
            case "l3mdev":
                rule = replace(rule, vrf=True)
            case "uidrange":
                rule = replace(rule, users=struct.unpack("=II", value))
            case "ipproto":
                rule = replace(rule, protocol=value[0])
            case "sport":
                rule = replace(rule, source_ports=struct.unpack("=HH", value))
            case "dport":
                rule = replace(rule, destination_ports=struct.unpack("=HH", value))
            case "realms":
                pass  # decides nothing
            case "sport_mask" | "dport_mask" if value == b"\xff\xff":
                pass  # said of a single port by kernels from 6.15 on
            case _:
                rule = replace(rule, unsure=True)
    return rule


def _setting(name: str) -> str:
    try:
        return (_PROC / setting_path(name)).read_text().strip()
    except OSError:
        return ""  # no such link any more, or no IPv6
