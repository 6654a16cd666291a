"""DynamicOverridePolicy: which sources may mask which resources of the startup file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.config.part import Directive
from holdfast.resources import registry
from holdfast.resources.dynamic import dynamic_target
from holdfast.resources.dynamic.dynamic_target import TargetSpec
from holdfast.resources.dynamic.source_name import source
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.shape import Spec, choice, listed, nested, required

OPERATIONS = ("mask",)


class Allowance(Spec):
    source: str = required(source(), "who may do it")
    operations: tuple[str, ...] = required(listed(choice(*OPERATIONS)), "what may be done")
    targets: tuple[TargetSpec, ...] = required(
        listed(nested(TargetSpec)), "to exactly these resources of the startup file"
    )


class DynamicOverridePolicy(Spec):
    allow: tuple[Allowance, ...] = required(
        listed(nested(Allowance)), "whatever stands in none of them is not allowed"
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: DynamicOverridePolicy = resource.spec
    for number, allowance in enumerate(spec.allow):
        for index, target in enumerate(allowance.targets):
            at = ("allow", number, "targets", index)
            field, wrong = dynamic_target.trouble(target.target)
            if wrong:
                yield Fault((*at, field), wrong)
            elif target.kind in registry.STARTUP_ONLY:
                yield Fault(
                    (*at, "kind"), f"{target.kind} cannot be masked: it says what others may"
                )


def allowed(policies: Iterable[Resource], source: str, directive: Directive) -> bool:
    """Whether one of these policies allows a source its directive."""
    wanted = dynamic_target.same(directive.target)
    return any(
        allowance.source == source
        and directive.op in allowance.operations
        and any(dynamic_target.same(one.target) == wanted for one in allowance.targets)
        for policy in policies
        for allowance in policy.spec.allow
    )


KINDS = {
    "DynamicOverridePolicy": Kind(
        "DynamicOverridePolicy",
        DynamicOverridePolicy,
        "Lets a source mask resources of the startup file. Without it a mask is ignored and"
        " reported. Only the startup file may hold one: a source cannot allow itself anything.",
        (),
        """\
allow:
  - source: Plugin/inventory
    operations: [mask]
    targets:
      - {apiVersion: net.holdfast.dev/v1alpha1, kind: Interface, name: lan}
""",
        nothing_alone,
        check,
        effect="decides which masks of parts take effect",
    )
}
