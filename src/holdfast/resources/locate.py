"""From an artifact back to the lines that declare it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from typing import TYPE_CHECKING

from holdfast.config.document import Document, Place, SourceFile, parse
from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.intent import BulkIntent, Waiting
from holdfast.engine.kinds import KINDS, bgp_network
from holdfast.engine.kinds import route as routes
from holdfast.engine.kinds.bgp_instance import name_and_vrf
from holdfast.resources import registry
from holdfast.resources.compile import declared
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.resource import Identity, Resource

if TYPE_CHECKING:
    from holdfast.resources.router import Router


@dataclass(frozen=True, slots=True)
class Declaration:
    owner: str  # "RouteList/transit"
    place: str  # "routes.txt:553:1"


def declarations(
    router: Router, key: Key, facts: Facts = NOTHING_KNOWN, root: str = ""
) -> tuple[Declaration, ...]:
    """Who declares an artifact, and where; empty if nobody does."""
    return tuple(_declarations(router, key, facts, root))


def _declarations(router: Router, key: Key, facts: Facts, root: str) -> Iterator[Declaration]:
    identity = _identity(key) if KINDS[key.kind].bulk else None
    document = cache(lambda: parse(router.files[0]))
    for resource, intent in declared(router, facts, root):
        if isinstance(intent, Waiting):
            continue
        if not isinstance(intent, BulkIntent):
            if intent.artifact.key == key:
                yield Declaration(resource.id, resource.place)
            continue
        if identity is None or intent.batch.scope != identity[0]:
            continue
        if identity[1] in intent.batch.keys:
            for place in _places(resource, router.files, document, {identity}):
                yield Declaration(resource.id, str(place[1]))


def _identity(key: Key) -> Identity | None:
    """Scope and key of an artifact of a bulk kind, from its name."""
    try:
        return _NAMED[key.kind](key)
    except (ValueError, OSError):
        return None


def _route(key: Key) -> Identity:
    """`PREFIX [table N] [metric N]`."""
    prefix, *words = key.name.split()
    said = dict(zip(words[::2], words[1::2], strict=False))
    default = routes.IPV6_DEFAULT_METRIC if ":" in prefix else 0
    return routes.identify(
        {
            "destination": prefix,
            "table": int(said.get("table", routes.MAIN_TABLE)),
            "metric": int(said.get("metric", default)),
        }
    )


def _network(key: Key) -> Identity:
    """`PREFIX [vrf NAME]`."""
    prefix, vrf = name_and_vrf(key.name)
    return bgp_network.identify({"prefix": prefix, "vrf": vrf})


_NAMED: Mapping[str, Callable[[Key], Identity]] = {
    routes.ROUTE.name: _route,
    bgp_network.BGP_NETWORK.name: _network,
}


def route_places(
    resource: Resource,
    files: Iterable[SourceFile],
    document: Callable[[], Document],
    wanted: Set[Identity],
) -> Mapping[Identity, Place]:
    """Where a resource declares each of the wanted routes, the first place of each. document: what
    the first of the files holds, asked for only where it is needed."""
    found: dict[Identity, Place] = {}
    for identity, place in _places(resource, files, document, wanted):
        found.setdefault(identity, place)
    return found


def _places(
    resource: Resource,
    files: Iterable[SourceFile],
    document: Callable[[], Document],
    wanted: Set[Identity],
) -> Iterator[tuple[Identity, Place]]:
    lines_declaring = registry.kind(resource.kind).lines_declaring
    if lines_declaring is None:
        for identity in wanted:
            yield identity, _inside(resource, document)
        return
    for number, identity in lines_declaring(resource, files, wanted):
        if resource.content.path:
            yield identity, Place(resource.content.path, number + 1, 1)
        else:
            yield identity, _inside(resource, document, "spec", "routes", number)


def _inside(resource: Resource, document: Callable[[], Document], *location: str | int) -> Place:
    if resource.part:
        return Place(resource.place, 0, 0)
    return document().place(("spec", "resources", resource.index, *location))
