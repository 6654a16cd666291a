"""Sources and policies against the rest of the startup file."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.config.document import Location
from holdfast.resources.dynamic.dynamic_config_source import DynamicConfigSource
from holdfast.resources.dynamic.dynamic_override_policy import DynamicOverridePolicy
from holdfast.resources.dynamic.source_name import plugin_of
from holdfast.resources.resource import Fault, Finding, Resource
from holdfast.resources.site import Site


def check(site: Site) -> Iterator[Finding]:
    yield from _sources(site)
    yield from _callers(site)
    for policy in site.of(DynamicOverridePolicy):
        yield from _policy(policy, site)


def _sources(site: Site) -> Iterator[Finding]:
    """Two policies and lifetimes for one source would contradict each other."""
    seen: dict[str, Resource] = {}
    for source in site.of(DynamicConfigSource):
        first = seen.setdefault(source.spec.contributor, source)
        if first is not source:
            message = f"{source.spec.contributor} has a source already: {first}"
            yield source, Fault(("source" if source.spec.source else "pluginRef",), message)


def _callers(site: Site) -> Iterator[Finding]:
    """A token, or a socket, says whose call it is: it cannot be that of two."""
    seen: dict[tuple[str, str], Resource] = {}
    for source in site.of(DynamicConfigSource):
        spec = source.spec
        given: list[tuple[Location, str]]
        given = [(("tokens", number), token) for number, token in enumerate(spec.tokens or ())]
        given += [(("socket",), spec.socket)] if spec.socket else []
        for location, value in given:
            first = seen.setdefault((str(location[0]), value), source)
            if first is not source:
                yield source, Fault(location, f"is that of {first} already")


def _policy(policy: Resource, site: Site) -> Iterator[Finding]:
    bound = {source.spec.contributor for source in site.of(DynamicConfigSource)}
    for number, allowance in enumerate(policy.spec.allow):
        if allowance.source not in bound:
            plugin = plugin_of(allowance.source)
            wanted = f"pluginRef {plugin}" if plugin else f"source {allowance.source}"
            message = f"no DynamicConfigSource has {wanted}: it contributes nothing"
            yield policy, Fault(("allow", number, "source"), message, warning=True)
        for index, target in enumerate(allowance.targets):
            if (target.kind, target.name) not in site.named:
                at = ("allow", number, "targets", index, "name")
                message = f"there is no {target.kind}/{target.name} to be masked"
                yield policy, Fault(at, message, warning=True)
