"""Parts against each other and the startup file: each is taken in whole, or not at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from holdfast.config import merge as merging
from holdfast.config.merge import Ignored, Mask
from holdfast.config.part import Directive, Part, Target
from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import Problem
from holdfast.resources import registry
from holdfast.resources.checks import cross_checks
from holdfast.resources.dynamic import contribution, dynamic_target, source_policy
from holdfast.resources.dynamic.contribution import Contribution
from holdfast.resources.dynamic.dynamic_override_policy import (
    DynamicOverridePolicy,
    allowed,
    settings_not_allowed,
)
from holdfast.resources.dynamic.source_name import plugin_of
from holdfast.resources.resource import Fault, Finding, Resource
from holdfast.resources.router import Router
from holdfast.resources.spec.reading import dotted

# Of a part that is rejected: enough to repair it by. A reason may quote what the part says.
_REASONS_SHOWN = 20
_REASON_MAX = 1024

Reasons = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    given: Contribution
    masks: tuple[Mask, ...]
    ignored: tuple[Ignored, ...]


@dataclass(slots=True)
class Merger:
    startup: Router
    admitted: Mapping[str, Resource]  # what admits each source that may contribute
    accepted: dict[str, Taken] = field(default_factory=dict)  # by source
    reasons: dict[str, Reasons] = field(default_factory=dict)  # against the newest part of a source
    against: dict[str, Reasons] = field(default_factory=dict)  # and against what stood in for it
    warnings: tuple[Problem, ...] = ()
    _declared: dict[str, Resource] = field(init=False)  # of the startup file, by id
    policies: list[Resource] = field(init=False)

    def __post_init__(self) -> None:
        self._declared = {resource.id: resource for resource in self.startup.resources}
        self.policies = [
            resource
            for resource in self.startup.resources
            if isinstance(resource.spec, DynamicOverridePolicy)
        ]

    def take(self, parts: Sequence[Part], standby: Mapping[str, Part]) -> None:
        """parts: one of each source, in order. standby: what stays in force, by source, where the
        other is rejected. Where a rejected one is valid after all, with what stands in for
        others, it is taken."""
        first = self._slots(parts, standby)
        newest = self._read(parts, first, self.reasons)
        self._settle(newest)
        left = [standby[source] for source in sorted(self.reasons) if source in standby]
        others = self._read(left, first, self.against)
        while self._stands_in(others) or self._is_promoted(newest):
            self._settle(newest)

    def judge(self, part: Part) -> Taken:
        """Its masks, by the policies of the startup file; its resources are not looked at."""
        masks, ignored = merging.judge(part, self._objection)
        return Taken(Contribution(part, (), (), ()), tuple(masks), tuple(ignored))

    def suppressed(self) -> Iterator[tuple[Resource, Target, merging.Cover]]:
        masks = [mask for one in self.accepted.values() for mask in one.masks]
        for name, (target, cover) in self._covered(masks).items():
            yield self._declared[name], target, cover

    def resources(self) -> tuple[Resource, ...]:
        return self._resources(self.accepted.values())

    def holders(self) -> dict[str, Resource]:
        """What is declared so far, by id."""
        taken = chain.from_iterable(one.given.resources for one in self.accepted.values())
        return {resource.id: resource for resource in (*taken, *self._declared.values())}

    def findings(self, more: Iterable[Resource]) -> list[Finding]:
        """What is wrong with all that is accepted and these after it, and what may be."""
        return list(self._findings((*self.resources(), *more)))

    def note_warnings(self, more: Iterable[Resource]) -> None:
        """They are accepted, too."""
        found = self.findings(more)
        self.warnings = tuple(
            problem(resource, fault) for resource, fault in found if resource.part
        )

    def _slots(self, parts: Iterable[Part], standby: Mapping[str, Part]) -> dict[str, int]:
        """The index of the first resource of each source in the effective config. It is the same
        for whichever part of it is taken, so that nothing else changes its place."""
        found: dict[str, int] = {}
        free = 1 + max((resource.index for resource in self.startup.resources), default=-1)
        for part in parts:
            found[part.source] = free
            other = standby.get(part.source)
            free += max(len(part.resources), len(other.resources) if other else 0)
        return found

    def _read(
        self, parts: Iterable[Part], first: Mapping[str, int], reasons: dict[str, Reasons]
    ) -> dict[str, Contribution]:
        """Those that can be tried, by source."""
        found: dict[str, Contribution] = {}
        for part in parts:
            if part.source not in self.admitted:
                reasons[part.source] = (unnamed(part.source),)
                continue
            try:
                read = contribution.read(part, first[part.source])
            except Exception as error:  # one part must never keep all others from being merged
                reasons[part.source] = shown([_fault(error)])
                continue
            if read.problems:
                reasons[part.source] = shown(map(str, read.problems))
            else:
                found[part.source] = read
        return found

    def _settle(self, newest: Mapping[str, Contribution]) -> None:
        """Until none of those that wait can be taken."""
        while True:
            waiting = [one for source, one in newest.items() if source not in self.accepted]
            if not [one for one in waiting if self._takes(one, self.reasons)]:
                return

    def _stands_in(self, others: Mapping[str, Contribution]) -> bool:
        """Whether one more does."""
        waiting = (one for source, one in others.items() if source not in self.accepted)
        return any(self._takes(one, self.against) for one in waiting)

    def _is_promoted(self, newest: Mapping[str, Contribution]) -> bool:
        """Whether a rejected part can take the place of what stands in for it by now."""
        for source, given in newest.items():
            if source in self.reasons and source in self.accepted:
                other = self.accepted.pop(source)
                if self._takes(given, self.reasons):
                    return True
                self.accepted[source] = other
        return False

    def _takes(self, given: Contribution, reasons: dict[str, Reasons]) -> bool:
        """Accepts it if the configuration is valid with it."""
        source = given.part.source
        try:
            taken = replace(self.judge(given.part), given=given)
            found = [*self._conflicts(given), *self._not_allowed(given)]
            found = found or self._trouble_with(taken)
            if found:  # perhaps for want of a mask
                found += map(str, taken.ignored)
        except Exception as error:  # as above
            found = [_fault(error)]
        if found:
            reasons[source] = shown(found)
            return False
        self.accepted[source] = taken
        reasons.pop(source, None)
        return True

    def _trouble_with(self, taken: Taken) -> list[str]:
        if not taken.given.resources and not taken.masks:
            return []
        problems, warnings = self._check([*self.accepted.values(), taken])
        if not problems:
            self.warnings = warnings
        return [f"with it the configuration is invalid: {one}" for one in problems]

    def _objection(self, source: str, directive: Directive) -> str:
        """Why a directive has no effect; empty where it has."""
        target = directive.target
        _, wrong = dynamic_target.trouble(target)
        if wrong:
            return wrong
        if not registry.kind(target.kind).maskable:
            return f"a {target.kind} cannot be masked"
        if str(target) not in self._declared:
            return "the startup file declares no such resource"
        if not allowed(self.policies, source, directive):
            return f"no DynamicOverridePolicy allows {source} to {directive.op} it"
        return ""

    def _not_allowed(self, given: Contribution) -> Iterator[str]:
        source = given.part.source
        others = list(self._besides(source))
        policy = self.admitted[source]
        yield from source_policy.refusals(policy, given.part, given.resources, others)
        called = source_policy.Links.of((*others, *given.resources)).called
        yield from settings_not_allowed(self.policies, source, given.resources, called)
        if any(registry.kind(resource.kind).link is not None for resource in given.resources):
            yield from self.led_astray(given)

    def led_astray(self, given: Contribution) -> Iterator[str]:
        """What a part in force may not declare any more once this one says which link a name
        stands for."""
        for source, taken in self.accepted.items():
            if source == given.part.source:
                continue
            others = (*self._besides(source), *given.resources)
            mine = taken.given
            called = source_policy.Links.of((*others, *mine.resources)).called
            for reason in (
                *source_policy.refusals(self.admitted[source], mine.part, mine.resources, others),
                *settings_not_allowed(self.policies, source, mine.resources, called),
            ):
                yield f"with it {source} would be led to another link: {reason}"

    def _besides(self, source: str) -> Iterator[Resource]:
        """What others declare: the startup file, and other sources whose parts are accepted."""
        yield from self.startup.resources
        for name, taken in self.accepted.items():
            if name != source:
                yield from taken.given.resources

    def _conflicts(self, given: Contribution) -> Iterator[str]:
        taken = chain.from_iterable(one.given.resources for one in self.accepted.values())
        others = {resource.id: resource for resource in taken}
        for resource in given.resources:
            holder = self._declared.get(resource.id) or others.get(resource.id)
            if holder is not None:
                yield f"{resource.place}: {resource.id} is declared already, at {holder.place}"

    def _covered(self, masks: Iterable[Mask]) -> dict[str, tuple[Target, merging.Cover]]:
        """By id of the resource."""
        spelled = [
            Mask(
                mask.part,
                replace(mask.directive, target=dynamic_target.same(mask.directive.target)),
            )
            for mask in masks
        ]
        return {str(target): (target, cover) for target, cover in merging.covers(spelled).items()}

    def _resources(self, accepted: Iterable[Taken]) -> tuple[Resource, ...]:
        taken = list(accepted)
        masked = self._covered(mask for one in taken for mask in one.masks)
        remaining = [resource for resource in self.startup.resources if resource.id not in masked]
        added = chain.from_iterable(one.given.resources for one in taken)
        return (*remaining, *sorted(added, key=lambda resource: resource.index))

    def _check(self, accepted: Iterable[Taken]) -> tuple[list[Problem], tuple[Problem, ...]]:
        """What is wrong with all of it together, and what of the parts may be."""
        problems: list[Problem] = []
        warnings: list[Problem] = []
        for resource, fault in self._findings(self._resources(accepted)):
            if not fault.warning:
                problems.append(problem(resource, fault))
            elif resource.part:
                warnings.append(problem(resource, fault))
        return problems, tuple(warnings)

    def _findings(self, resources: Sequence[Resource]) -> Iterator[Finding]:
        names: dict[str, set[str]] = defaultdict(set)
        for resource in resources:
            names[resource.kind].add(resource.name)
        # Not the very lines of routes that clash: to find them in a long list takes half a second,
        # and a bad part would cost that whenever its source says it again.
        return cross_checks.check(resources, names, lambda _resource, _wanted: {})


def unnamed(source: str) -> str:
    """What a source is told that no DynamicConfigSource names."""
    if name := plugin_of(source):
        return f"no DynamicConfigSource has pluginRef {name}"
    return (
        f"no DynamicConfigSource names {source}, so it contributes nothing: to allow it, declare"
        f" one in the startup file with `source: {source}` and, under `allow`, what it may declare"
    )


def shown(reasons: Iterable[str]) -> Reasons:
    found = [
        reason if len(reason) <= _REASON_MAX else f"{reason[:_REASON_MAX]}…" for reason in reasons
    ]
    more = len(found) - _REASONS_SHOWN
    return (*found[:_REASONS_SHOWN], f"and {more} more") if more > 0 else tuple(found)


def _fault(error: Exception) -> str:
    return f"a fault in Holdfast itself: {error!r}"


def problem(resource: Resource, fault: Fault) -> Problem:
    if fault.at is not None:
        return Problem(str(fault.at), "", fault.message)
    return Problem(resource.place, dotted(("spec", *fault.location)), fault.message)
