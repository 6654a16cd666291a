"""Operations of a plan carried out on a Network, with what the kernel does beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address, ip_network

from holdfast.dataclass import replace
from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.kinds import route as routes
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.neighbour import NEIGHBOUR
from holdfast.engine.kinds.route import ROUTE, Nexthop
from holdfast.engine.kinds.rule import RULE
from holdfast.engine.kinds.sysctl import SYSCTL
from holdfast.engine.kinds.wireguard import WIREGUARD
from holdfast.engine.path.lookup import Packet, look_up
from holdfast.engine.path.network import (
    IPAddress,
    Network,
    Route,
    Rule,
    disable_ipv6,
    rule_of,
)
from holdfast.engine.plan import Operation, Verb

_REMOVES = (Verb.DELETE, Verb.REPLACE)
_MAKES = (Verb.CREATE, Verb.UPDATE, Verb.REPLACE)
# Of a link, that decide whether it takes packets.
_SETTINGS = {4: ".rp_filter", 6: ".disable_ipv6"}


def concerns(operation: Operation, version: int, addresses: Iterable[IPAddress]) -> bool:
    """Whether it may have to do with the way of packets between these addresses."""
    match operation.kind:
        case ROUTE.name:
            return any(True for _ in about(operation, addresses))
        case RULE.name:
            return _fields(operation).get("family") == version
        case ADDRESS.name | NEIGHBOUR.name:
            return ip_address(str(_fields(operation)["address"])).version == version
        case SYSCTL.name:
            return _key(operation).name.endswith(_SETTINGS[version])
    return operation.kind in (LINK.name, WIREGUARD.name)


def about(operation: Operation, addresses: Iterable[IPAddress]) -> Iterator[Artifact]:
    """The routes of an operation whose destination holds one of the addresses."""
    subject = operation.subject
    wanted = list(addresses)
    if isinstance(subject, Artifact):
        destination = ip_network(str(subject.fields["destination"]))
        if any(address in destination for address in wanted):
            yield subject
    elif subject.template.family == wanted[0].version:
        keys = {key for address in wanted for key in covering(address)}
        for key in keys.intersection(subject.keys):
            yield subject.artifact(key)


def covering(address: IPAddress) -> Iterator[bytes]:
    """The packed keys of all prefixes that hold an address."""
    bits, number = address.max_prefixlen, int(address)
    for length in range(bits + 1):
        masked = number >> (bits - length) << (bits - length)
        yield routes.pack_key(masked.to_bytes(bits // 8, "big"), length)


def gateways(operations: Iterable[Operation], addresses: Iterable[IPAddress]) -> set[IPAddress]:
    """Those whose link the kernel would have to look up."""
    wanted = list(addresses)
    found = {
        ip_address(leg.gateway)
        for operation in operations
        if operation.kind == ROUTE.name and operation.verb in _MAKES
        for artifact in about(operation, wanted)
        for leg in _nexthops(artifact)
        if not leg.dev
    }
    return {gateway for gateway in found if gateway.version == wanted[0].version}


def learn(network: Network, operations: Iterable[Operation]) -> None:
    """What operations say of how things are: of keys and peers, nothing else tells."""
    for operation in operations:
        if operation.kind == WIREGUARD.name and isinstance(operation.observed, Artifact):
            network.tunnels[operation.observed.key.name] = operation.observed.fields


def carry_out(network: Network, operation: Operation, addresses: Iterable[IPAddress]) -> None:
    """addresses: those whose routes the network knows."""
    match operation.kind:
        case ROUTE.name:
            for artifact in about(operation, addresses):
                _change_route(network, operation, artifact)
        case RULE.name:
            _change_rule(network, operation.verb, _artifact(operation))
        case ADDRESS.name:
            _change_address(network, operation, _artifact(operation))
        case NEIGHBOUR.name:
            _change_neighbour(network, operation.verb, _fields(operation))
        case SYSCTL.name:
            if operation.verb in _MAKES:
                _set(network, _key(operation).name, str(_fields(operation)["value"]).strip())
        case WIREGUARD.name:
            fields = _fields(operation) if operation.verb in _MAKES else {}
            network.tunnels[_key(operation).name] = fields
        case LINK.name:
            _change_link(network, operation, _artifact(operation))


def _set(network: Network, name: str, value: str) -> None:
    network.sysctls[name] = value
    if name == disable_ipv6("all"):  # the kernel sets that of each link along with it
        network.sysctls.update((disable_ipv6(dev), value) for dev in network.links)


def _change_route(network: Network, operation: Operation, artifact: Artifact) -> None:
    fields = artifact.fields
    made = Route(
        ip_network(str(fields["destination"])),
        int(str(fields["table"])),
        int(str(fields["metric"])),
        str(fields["type"]),
        tuple(_resolved(network, leg) for leg in _nexthops(artifact)),
        str(fields["prefsrc"]),
    )
    if operation.verb is not Verb.CREATE:
        # Of several with the same identity, the one that leads where this one does.
        same = [route for route in network.routes if route.identity == made.identity]
        exact = [route for route in same if _leads_as(route, made)]
        if operation.verb is Verb.DELETE:
            same = exact or same
        _drop(network, lambda route: route in same and not route.by_kernel)
    if operation.verb in _MAKES and all(leg.dev for leg in made.nexthops):
        network.routes.append(made)


def _leads_as(route: Route, other: Route) -> bool:
    return (route.type, _ways(route)) == (other.type, _ways(other))


def _ways(route: Route) -> set[tuple[str, str]]:
    return {(leg.gateway, leg.dev) for leg in route.nexthops}


def _resolved(network: Network, leg: Nexthop) -> Nexthop:
    """With the link that the kernel would choose for a gateway; "" where it would take none."""
    if leg.dev:
        return leg
    gateway = ip_address(leg.gateway)
    if gateway.version != network.version:
        return leg
    found = look_up(network, Packet(gateway, gateway))
    if found.type == "local" and network.version == 4:
        # Taken for: whatever is there is on that link.
        own = [
            address for address in network.addresses.values() if address["address"] == leg.gateway
        ]
        return Nexthop(dev=str(own[0]["dev"])) if own else leg
    direct = found.type == "unicast" and all(not nexthop.gateway for nexthop in found.nexthops)
    return replace(leg, dev=min(found.links, default="")) if direct else leg


def _change_rule(network: Network, verb: Verb, artifact: Artifact) -> None:
    if verb in _REMOVES:
        gone = next((rule for rule in network.rules if rule.key == artifact.key), None)
        if gone is not None:
            network.rules.remove(gone)
    if verb in _MAKES:
        _insert(network.rules, rule_of(artifact))


def _insert(rules: list[Rule], new: Rule) -> None:
    """Behind those of the same priority, as the kernel does."""
    at = sum(1 for rule in rules if rule.priority <= new.priority)
    rules.insert(at, new)


def _change_address(network: Network, operation: Operation, artifact: Artifact) -> None:
    before = operation.observed
    if operation.verb in _REMOVES:
        _remove_address(network, artifact.key)
    if operation.verb in _MAKES:
        same = isinstance(before, Artifact) and operation.verb is Verb.UPDATE
        fields = {**(before.fields if same and isinstance(before, Artifact) else {})}
        network.addresses[artifact.key] = {**fields, **artifact.fields}
        _add_made(network, artifact.key)


def _add_made(network: Network, key: Key) -> None:
    for made in network.made_for(network.addresses[key]):
        if made not in network.routes:
            network.routes.append(made)


def _remove_address(network: Network, key: Key) -> None:
    fields = network.addresses.pop(key, None)
    if fields is None:
        return
    dev, own = str(fields["dev"]), str(fields["address"])
    staying = {made for address in network.addresses.values() for made in network.made_for(address)}
    # The route to a prefix is kept for others in it, whose source it then names.
    kept = {(made.identity, made.nexthops) for made in staying}
    gone = [made for made in network.made_for(fields) if (made.identity, made.nexthops) not in kept]
    doomed = {(made.identity, made.nexthops) for made in gone}
    _drop(network, lambda route: route.by_kernel and (route.identity, route.nexthops) in doomed)
    if network.version == 6:
        return
    if not network.holds(ip_address(own)):
        _drop(network, lambda route: route.prefsrc == own and not route.by_kernel)
    if not any(address["dev"] == dev for address in network.addresses.values()):
        # The last IPv4 address of a link takes the link's routes along.
        _drop(network, lambda route: route.leads_over(dev))


def _drop(network: Network, doomed: Callable[[Route], bool]) -> None:
    network.routes = [route for route in network.routes if not doomed(route)]


def _change_neighbour(network: Network, verb: Verb, fields: Fields) -> None:
    place = str(fields["address"]), str(fields["dev"])
    if verb in _MAKES:
        network.neighbours[place] = str(fields["mac"])
    else:
        network.neighbours.pop(place, None)  # the kernel asks for it anew


def _change_link(network: Network, operation: Operation, artifact: Artifact) -> None:
    name = artifact.key.name
    if operation.verb in _REMOVES:
        _remove_link(network, name)
    if operation.verb is Verb.UPDATE:
        before = network.links.get(name, {})
        changed = {change.field: change.after for change in operation.changes}
        network.links[name] = {**before, **changed}
        if changed.get("up") is False:
            # What led over it does not come back by itself.
            _drop(network, lambda route: route.type == "unicast" and route.leads_over(name))
        if changed.get("up") is True or "master" in changed:
            _move_made(network, name, before)
    elif operation.verb in _MAKES:
        network.links[name] = artifact.fields


def _move_made(network: Network, name: str, before: Fields) -> None:
    """The kernel makes the routes of a link's addresses anew: it came up, or is in another VRF."""
    if before.get("master") != network.links[name].get("master"):
        _drop(network, lambda route: route.by_kernel and route.leads_over(name))
    for key, fields in network.addresses.items():
        if fields["dev"] == name:
            _add_made(network, key)


def _remove_link(network: Network, name: str) -> None:
    network.links.pop(name, None)
    for key in [key for key, one in network.addresses.items() if one["dev"] == name]:
        _remove_address(network, key)
    _drop(network, lambda route: route.leads_over(name))
    for upper in [upper for upper, one in network.links.items() if one.get("parent") == name]:
        _remove_link(network, upper)


def _nexthops(artifact: Artifact) -> tuple[Nexthop, ...]:
    legs = artifact.fields["nexthops"]
    return tuple(map(routes.parse_nexthop, legs)) if isinstance(legs, tuple) else ()


def _artifact(operation: Operation) -> Artifact:
    if isinstance(operation.subject, Batch):
        raise TypeError(f"{operation.kind} is not one artifact")
    return operation.subject


def _fields(operation: Operation) -> Fields:
    return _artifact(operation).fields


def _key(operation: Operation) -> Key:
    return _artifact(operation).key
