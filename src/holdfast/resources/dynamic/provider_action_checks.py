"""The policy for provider actions against the rest of the startup file."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.resources.dynamic.plugin import EXECUTES
from holdfast.resources.resource import Fault, Finding
from holdfast.resources.site import Site


def check(site: Site) -> Iterator[Finding]:
    policies = site.of("ProviderActionPolicy")
    for other in policies[1:]:
        message = f"there can be one policy for provider actions, and there is {policies[0]}"
        yield other, Fault((), message)
    executors = [one for one in site.of("Plugin") if EXECUTES in (one.spec.capabilities or ())]
    for policy in policies[:1]:
        if policy.spec.enabled and not executors:
            message = f"no Plugin has the capability {EXECUTES}: nothing can be executed"
            yield policy, Fault(("enabled",), message, warning=True)
