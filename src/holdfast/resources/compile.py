"""From resources and facts to intents.

Where the code of a kind is at fault, a configuration that is to come into force is refused: it
raises in `compile_router`. One that is in force goes on without the resources that it concerns:
`compile_others`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    return _sorted(declared(router, facts, root))


def compile_others(
    router: Router, facts: Facts, root: str, told: Callable[[Exception], str]
) -> Desired:
    """As `compile_router`; but resources whose code is at fault wait, and the others do not wait
    for them. told: of a fault, in words."""
    site = site_of(router.resources, facts, root)

    def wait(resources: Iterable[Resource], error: Exception) -> Iterator[Declared]:
        for resource in resources:
            reason = told(error)
            yield resource, Waiting(resource.id, resource.place, reason, required=True, fault=True)

    def asked() -> Iterator[Declared]:
        for resource in router.resources:
            try:
                yield from list(declared_intents((resource,), site))
            except Exception as error:  # of whatever kind: that is what it is for
                yield from wait((resource,), error)
        for kinds, combiner in registry.combiners(site.by_kind):
            try:
                yield from list(combiner(site))
            except Exception as error:  # as above
                yield from wait(
                    (resource for kind in kinds for resource in site.by_kind[kind]), error
                )

    return _sorted(asked())


def _sorted(asked: Iterable[Declared]) -> Desired:
    intents: list[Intent | BulkIntent] = []
    waiting: list[Waiting] = []
    for _, one in asked:
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
    for _, combiner in registry.combiners(site.by_kind):
        yield from combiner(site)
