"""The exact identity of a resource, as policies, directives and plugins name it."""

from __future__ import annotations

from holdfast.config.part import Target
from holdfast.resources import registry
from holdfast.resources.spec.shape import Spec, required, text


class TargetSpec(Spec):
    api_version: str = required(text("group and version"), "group and version of the kind")
    kind: str = required(text("kind"), "kind of the resource")
    name: str = required(text("name"), "name of the resource")

    @property
    def target(self) -> Target:
        return Target(self.api_version, self.kind, self.name)


def trouble(target: Target) -> tuple[str, str]:
    """The field that cannot be, and why; empty where nothing is wrong.

    Groups are compared, not their spelling: routerd.net says the same as holdfast.dev.
    """
    wrong = registry.kind_trouble(target.kind)
    if wrong:
        return "kind", wrong
    versions = registry.api_versions(target.kind)
    if target.api_version not in versions:
        message = f"{target.kind} belongs to {versions[0]}, not {target.api_version!r}"
        return "apiVersion", message
    return "", ""


def same(target: Target) -> Target:
    """As all spellings of it are written: under the first group of its kind."""
    return target._replace(api_version=registry.api_versions(target.kind)[0])


def target_of(kind: str, name: str) -> Target:
    return Target(registry.api_versions(kind)[0], kind, name)
