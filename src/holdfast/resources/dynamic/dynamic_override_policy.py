"""DynamicOverridePolicy: which sources may mask which resources of the startup file, and set which
kernel settings of the network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from holdfast.config.part import Directive
from holdfast.resources import registry
from holdfast.resources.dynamic import dynamic_target
from holdfast.resources.dynamic.dynamic_target import TargetSpec
from holdfast.resources.dynamic.source_name import source
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.spec.reading import dotted
from holdfast.resources.spec.shape import Spec, choice, listed, nested, optional, parsed, required

OPERATIONS = ("mask",)
_KEYS = r"net\.[A-Za-z0-9_.*@-]+"


def _parse_keys(text: str) -> str:
    if not re.fullmatch(_KEYS, text):
        raise ValueError(
            f"{text!r} names no settings of the network, as net.ipv4.conf.*.rp_filter does"
        )
    return text


class Allowance(Spec):
    source: str = required(source(), "who may do it")
    operations: tuple[str, ...] = required(listed(choice(*OPERATIONS)), "what may be done")
    targets: tuple[TargetSpec, ...] = required(
        listed(nested(TargetSpec)), "to exactly these resources of the startup file"
    )


class SettingAllowance(Spec):
    source: str = required(source(), "who may do it")
    keys: tuple[str, ...] = required(
        listed(parsed(_parse_keys, "key, `*` for anything", {"pattern": f"^{_KEYS}$"})),
        "the settings it may set",
    )


class DynamicOverridePolicy(Spec):
    allow: tuple[Allowance, ...] = optional(
        listed(nested(Allowance)), "whatever stands in none of them is not masked", default=()
    )
    sysctls: tuple[SettingAllowance, ...] = optional(
        listed(nested(SettingAllowance)),
        "kernel settings of the network that a source may declare; none without",
        default=(),
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: DynamicOverridePolicy = resource.spec
    if not spec.allow and not spec.sysctls:
        yield Fault(("allow",), "is missing: without it, or `sysctls`, nothing is allowed")
    for number, allowance in enumerate(spec.allow):
        for index, target in enumerate(allowance.targets):
            at = ("allow", number, "targets", index)
            field, wrong = dynamic_target.trouble(target.target)
            if wrong:
                yield Fault((*at, field), wrong)
            elif not registry.kind(target.kind).maskable:
                yield Fault(
                    (*at, "kind"), f"{target.kind} cannot be masked: it says what others may"
                )


def allowed(policies: Iterable[Resource], source: str, directive: Directive) -> bool:
    """Whether one of these policies allows a source its directive."""
    wanted = dynamic_target.same(directive.target)
    return any(
        allowance.source == source
        and directive.op in allowance.operations
        and any(dynamic_target.same(target.target) == wanted for target in allowance.targets)
        for policy in policies
        for allowance in policy.spec.allow
    )


def settings_not_allowed(
    policies: Iterable[Resource],
    source: str,
    resources: Iterable[Resource],
    called: Callable[[str], Iterable[str]],
) -> Iterator[str]:
    """The kernel settings among what a source declares that none of these policies lets it set,
    whatever the kind is that sets them. called: the kernel names of a link's resource."""
    patterns = [
        keys
        for policy in policies
        for allowance in policy.spec.sysctls
        if allowance.source == source
        for keys in allowance.keys
    ]
    for resource in resources:
        for setting in registry.kind(resource.kind).settings(resource):
            links = sorted(called(setting.link)) if setting.link else ("",)
            for key in (setting.key.replace("{}", link) if link else setting.key for link in links):
                if not any(matches(pattern, key) for pattern in patterns):
                    path = dotted(("spec", *setting.location))
                    message = f"no DynamicOverridePolicy allows {source} to set {key}"
                    yield f"{resource.place}: {path}: {message} (`sysctls`)"


def matches(pattern: str, key: str) -> bool:
    """Each * stands for any text. The first place at which a piece fits is as good as a later one:
    as a regular expression, several would be tried with one another."""
    first, *pieces = pattern.split("*")
    if not pieces:
        return key == pattern
    last = pieces.pop()
    at = len(first)
    for piece in pieces:
        found = key.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return key.startswith(first) and key.endswith(last) and len(key) - len(last) >= at


KINDS = (
    Kind(
        DynamicOverridePolicy,
        "Lets a source mask resources of the startup file, and set kernel settings of the network,"
        " by a Sysctl or an IPv4ReversePathFilter. Without it a mask is ignored and reported, and a"
        " part with such a setting is rejected. Only the startup file may hold one: a source cannot"
        " allow itself anything.",
        (),
        """\
allow:
  - source: Plugin/inventory
    operations: [mask]
    targets:
      - {apiVersion: net.holdfast.dev/v1alpha1, kind: Interface, name: lan}
sysctls:
  - {source: Plugin/inventory, keys: [net.ipv4.conf.*.rp_filter]}
""",
        nothing_alone,
        check,
        effect="decides which masks and kernel settings of parts take effect",
        maskable=False,
        groups=("config",),
        cross_checks="dynamic.dynamic_checks",
    ),
)
