"""From resources to intents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.engine.intent import BulkIntent, Desired, Intent
from holdfast.resources import registry
from holdfast.resources.resource import Resource
from holdfast.resources.topology import Topology, topology

if TYPE_CHECKING:
    from holdfast.resources.router import Router


def compile_router(router: Router) -> Desired:
    known = topology(router.resources)
    return Desired(tuple(intent for _, intent in declared_intents(router.resources, known)))


def declared_intents(
    resources: Iterable[Resource], known: Topology
) -> Iterator[tuple[Resource, Intent | BulkIntent]]:
    """Every intent with the resource that has it. References must have been checked."""
    for resource in resources:
        for intent in registry.kind(resource.kind).intents(resource, known):
            yield resource, intent
