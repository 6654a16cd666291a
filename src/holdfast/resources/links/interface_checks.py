"""Interfaces against each other: circles, and what two of them would both make."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from holdfast.config.document import Location
from holdfast.resources.checks.clashes import Finding, taken
from holdfast.resources.links.interface import Interface
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.site import Site, ifname_of


def check(site: Site) -> Iterator[Finding]:
    interfaces = site.of(Interface)
    yield from _circles(interfaces)
    yield from _veths(interfaces, site.having(lambda kind: kind.link))
    yield from taken(
        (interface for interface in interfaces if interface.spec.vrf is not None),
        ("vrf", "table"),
        lambda resource: resource.spec.vrf.table,
        "table {} is also the table of",
    )
    yield from _tunnels(interfaces)


def _circles(resources: Iterable[Resource]) -> Iterator[Finding]:
    """Interfaces that are, over masters and parents, on top of themselves."""
    below: dict[str, list[tuple[Location, str]]] = {}
    interfaces: dict[str, Resource] = {}
    for resource in resources:
        spec: Interface = resource.spec
        interfaces[resource.name] = resource
        edges: list[tuple[Location, str]] = []
        if spec.master:
            edges.append((("master",), spec.master))
        if spec.parent:
            edges.append(((str(spec.type), "parent"), spec.parent))
        below[resource.name] = edges
    done: set[str] = set()
    for name in below:
        yield from _walk(name, below, interfaces, done)


def _walk(
    start: str,
    below: Mapping[str, list[tuple[Location, str]]],
    interfaces: Mapping[str, Resource],
    done: set[str],
) -> Iterator[Finding]:
    """Depth first with a stack of its own: a chain may be longer than Python's."""
    path: dict[str, None] = {}
    stack: list[tuple[str, Iterator[tuple[Location, str]]]] = []
    if start not in done:
        stack.append((start, iter(below[start])))
        path[start] = None
    while stack:
        name, edges = stack[-1]
        location, target = next(edges, ((), ""))
        if not target:
            done.add(name)
            stack.pop()
            path.pop(name)
        elif target in path:
            names = list(path)
            circle = [*names[names.index(target) :], target]
            yield interfaces[name], Fault(location, f"goes in a circle: {' -> '.join(circle)}")
        elif target in below and target not in done:
            stack.append((target, iter(below[target])))
            path[target] = None


def _veths(interfaces: list[Resource], links: list[Resource]) -> Iterator[Finding]:
    """Making one end of a veth makes the other: nothing else may make that too."""
    by_name = {ifname_of(resource): resource for resource in links}
    ends = [resource for resource in interfaces if resource.spec.veth is not None]
    yield from taken(ends, ("veth", "peer"), lambda r: r.spec.veth.peer, "{} is also the peer of")
    for resource in ends:
        other = by_name.get(resource.spec.veth.peer)
        if other is None or (isinstance(other.spec, Interface) and other.spec.type is None):
            continue
        veth = other.spec.veth if isinstance(other.spec, Interface) else None
        if veth is None or veth.peer != resource.spec.ifname:
            message = f"{ifname_of(other)} would be made by {other} too, as something else"
            yield resource, Fault(("veth", "peer"), message)


def _tunnels(interfaces: list[Resource]) -> Iterator[Finding]:
    """The kernel has one tunnel between two addresses over one link, whatever it carries."""
    ends: dict[Hashable, Resource] = {}
    for resource in interfaces:
        tunnel = resource.spec.ip6tnl
        if tunnel is None or resource.spec.state == "absent":
            continue
        first = ends.setdefault((tunnel.local, tunnel.remote, tunnel.parent), resource)
        if first is not resource:
            message = f"{first} has the same local end, remote end and parent"
            yield resource, Fault(("ip6tnl",), message)
