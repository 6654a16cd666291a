"""From resources and facts to intents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.engine.intent import BulkIntent, Desired, Intent, Waiting
from holdfast.resources import registry
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.resource import Declared, Resource
from holdfast.resources.site import Site, site_of

if TYPE_CHECKING:
    from holdfast.resources.router import Router


def compile_router(router: Router, facts: Facts = NOTHING_KNOWN, root: str = "") -> Desired:
    """root: what `--root` puts before every path, "" for nothing."""
    intents: list[Intent | BulkIntent] = []
    waiting: list[Waiting] = []
    for _, one in declared(router, facts, root):
        if isinstance(one, Waiting):
            waiting.append(one)
        else:
            intents.append(one)
    return Desired(tuple(intents), tuple(waiting))


def declared(router: Router, facts: Facts, root: str) -> Iterator[Declared]:
    """Everything that is asked for, each with a resource that asks for it."""
    site = site_of(router.resources, facts, root)
    yield from declared_intents(router.resources, site)
    yield from combined_intents(site)


def declared_intents(resources: Iterable[Resource], site: Site) -> Iterator[Declared]:
    """What each resource asks for by itself. References must have been checked."""
    for resource in resources:
        for intent in registry.kind(resource.kind).intents(resource, site):
            yield resource, intent


def combined_intents(site: Site) -> Iterator[Declared]:
    """What resources ask for together: one configuration file, one nftables table of many."""
    for combiner in registry.combiners(site.by_kind):
        yield from combiner(site)
