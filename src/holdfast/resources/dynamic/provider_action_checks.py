"""The policy for provider actions against the rest of the startup file."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.resources.dynamic.plugin import EXECUTES, Plugin
from holdfast.resources.dynamic.provider_action_policy import ProviderActionPolicy
from holdfast.resources.resource import Fault, Finding
from holdfast.resources.site import Site


def check(site: Site) -> Iterator[Finding]:
    policies = site.of(ProviderActionPolicy)
    executors = [
        resource for resource in site.of(Plugin) if EXECUTES in (resource.spec.capabilities or ())
    ]
    for policy in policies[:1]:
        if policy.spec.enabled and not executors:
            message = f"no Plugin has the capability {EXECUTES}: nothing can be executed"
            yield policy, Fault(("enabled",), message, warning=True)
