"""The effective config: the startup file and all parts in force, merged. Pure.

1. Of each source the newest part counts, no longer than its DynamicConfigSource lets it; those
   that are over are dropped.
2. The others are taken in order of source, generation and name. Each is taken in whole or rejected
   whole, with its reasons: it may not be read, declare what the startup file or an accepted part
   declares already, or make the configuration invalid. A rejected part leaves no trace: the rest
   is as if it had never been there. One that refers to what a later one contributes is tried again
   after that.
3. Masks that a DynamicOverridePolicy of the startup file allows suppress their targets; others are
   ignored and reported, and the rest of their part stands.
4. What remains is checked as a whole, as the startup file is.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.config import merge as merging
from holdfast.config.document import SourceFile
from holdfast.config.merge import Ignored, Mask
from holdfast.config.part import RECORD, Directive, Part, Target
from holdfast.errors import Problem
from holdfast.resources import registry, together
from holdfast.resources.dynamic import contribution, dynamic_target
from holdfast.resources.dynamic.contribution import Contribution
from holdfast.resources.dynamic.dynamic_override_policy import allowed
from holdfast.resources.dynamic.source_name import plugin_of
from holdfast.resources.reading import dotted
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.router import Router

# Of a part that is rejected: enough to repair it by.
_REASONS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A resource of the startup file that masks keep out of the effective config."""

    target: Target
    resource: Resource
    masked_by: tuple[str, ...]  # "Plugin/inventory#12", sorted
    until: float | None  # None: until it is withdrawn
    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    part: Part
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effective:
    startup: Router
    router: Router  # what is reconciled
    suppressed: tuple[Suppressed, ...] = ()
    added: tuple[Resource, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    active: tuple[Part, ...] = ()  # in force, with the end that they have under their policies
    expired: tuple[Part, ...] = ()
    next_change: float | None = None  # when the first part that is not over will be

    @property
    def findings(self) -> Iterator[str]:
        """Everything that does not take effect, in a line each."""
        for rejected in self.rejected:
            more = f" (and {len(rejected.reasons) - 1} more)" if len(rejected.reasons) > 1 else ""
            yield f"{rejected.part.ref} is rejected: {rejected.reasons[0]}{more}"
        yield from map(str, self.ignored)


def merge(
    startup: Router, parts: Iterable[Part], now: float, before: Effective | None = None
) -> Effective:
    """startup: valid by itself. now: seconds since 1970. before: an earlier merge, whose router is
    kept where sources said nothing but the same again; the places of resources then name the
    generation that brought them."""
    lifetimes = _lifetimes(startup)
    newest = [merging.capped(part, lifetimes.get(part.source)) for part in merging.newest(parts)]
    current, expired = merging.split(newest, now)
    if before is not None and before.startup is startup and _repeats(before, current):
        merged = _renewed(before, {part.source: part for part in current})
    else:
        merged = _merged(startup, current, lifetimes)
    return replace(merged, expired=tuple(expired), next_change=merging.next_change(current))


def _repeats(before: Effective, current: Iterable[Part]) -> bool:
    """Do the sources say nothing but the same again?"""
    said, says = (
        sorted((part.source, part.digest) for part in parts) for parts in (_judged(before), current)
    )
    return said == says


def _judged(merged: Effective) -> list[Part]:
    return [*merged.active, *(one.part for one in merged.rejected)]


def _renewed(before: Effective, parts: Mapping[str, Part]) -> Effective:
    merger = _Merger(before.startup)
    for old in before.active:
        masks, ignored = merging.judge(parts[old.source], merger.objection)
        merger.masks += masks
        merger.ignored += ignored
    said = {old.ref: parts[old.source].ref for old in _judged(before)}
    rejected = [
        Rejected(parts[one.part.source], tuple(_renamed(reason, said) for reason in one.reasons))
        for one in before.rejected
    ]
    return replace(
        merger.finish(),
        router=before.router,
        added=before.added,
        active=tuple(parts[old.source] for old in before.active),
        rejected=tuple(rejected),
    )


def _renamed(reason: str, refs: Mapping[str, str]) -> str:
    """With the generations of today: a reason may name any part, not just the rejected one."""
    known = "|".join(map(re.escape, refs))
    return re.sub(rf"(?:{known})(?!\d)", lambda found: refs[found[0]], reason)


def _merged(startup: Router, parts: Sequence[Part], lifetimes: Mapping[str, float]) -> Effective:
    merger = _Merger(startup)
    waiting = merger.read(parts, lifetimes)
    while waiting:
        left = [one for one in waiting if not merger.takes(one)]
        if len(left) == len(waiting):
            break
        waiting = left
    return merger.finish()


def _lifetimes(startup: Router) -> dict[str, float]:
    """How long parts of each plugin that may contribute are in force at most."""
    return {
        f"Plugin/{one.spec.plugin_ref}": one.spec.ttl
        for one in startup.resources
        if one.kind == "DynamicConfigSource"
    }


@dataclass(slots=True)
class _Merger:
    startup: Router
    accepted: list[Contribution] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)
    rejected: dict[str, Rejected] = field(default_factory=dict)  # by source
    warnings: tuple[Problem, ...] = ()
    declared: dict[str, Resource] = field(init=False)  # of the startup file, by id

    def __post_init__(self) -> None:
        self.declared = {one.id: one for one in self.startup.resources}

    def read(self, parts: Sequence[Part], lifetimes: Mapping[str, float]) -> list[Contribution]:
        """Those that can be tried."""
        found = []
        first = 1 + max((one.index for one in self.startup.resources), default=-1)
        for part in parts:
            read = contribution.read(part, first)
            first += len(part.resources)
            if plugin_of(part.source) and part.source not in lifetimes:
                self._reject(part, f"no DynamicConfigSource has pluginRef {plugin_of(part.source)}")
            elif read.problems:
                self._reject(part, *map(str, read.problems))
            else:
                found.append(read)
        return found

    def takes(self, given: Contribution) -> bool:
        """Accepts it if the configuration is valid with it."""
        part = given.part
        masks, ignored = merging.judge(part, self.objection)
        reasons = list(self._conflicts(given))
        if not reasons and (given.resources or masks):
            problems, warnings = self._check([*self.accepted, given], [*self.masks, *masks])
            reasons = [f"with it the configuration is invalid: {one}" for one in problems]
            if not reasons:
                self.warnings = warnings
        if reasons:
            self._reject(part, *reasons)
            return False
        self.accepted.append(given)
        self.masks += masks
        self.ignored += ignored
        self.rejected.pop(part.source, None)
        return True

    def _reject(self, part: Part, *reasons: str) -> None:
        more = len(reasons) - _REASONS_SHOWN
        shown = (*reasons[:_REASONS_SHOWN], f"and {more} more") if more > 0 else reasons
        self.rejected[part.source] = Rejected(part, shown)

    def objection(self, source: str, directive: Directive) -> str:
        """Why a directive has no effect; empty where it has."""
        target = directive.target
        _, wrong = dynamic_target.trouble(target)
        if wrong:
            return wrong
        if target.kind in registry.STARTUP_ONLY:
            return f"a {target.kind} cannot be masked"
        if str(target) not in self.declared:
            return "the startup file declares no such resource"
        policies = [one for one in self.startup.resources if one.kind == "DynamicOverridePolicy"]
        if not allowed(policies, source, directive):
            return f"no DynamicOverridePolicy allows {source} to {directive.op} it"
        return ""

    def _conflicts(self, given: Contribution) -> Iterator[str]:
        others = {one.id: one for other in self.accepted for one in other.resources}
        for resource in given.resources:
            holder = self.declared.get(resource.id) or others.get(resource.id)
            if holder is not None:
                yield f"{resource.place}: {resource.id} is declared already, at {holder.place}"

    def _covered(self, masks: Sequence[Mask]) -> dict[str, tuple[Target, merging.Cover]]:
        """By id of the resource."""
        spelled = [
            Mask(
                one.part,
                replace(one.directive, target=dynamic_target.same(one.directive.target)),
            )
            for one in masks
        ]
        return {str(target): (target, cover) for target, cover in merging.covers(spelled).items()}

    def _resources(
        self, accepted: Iterable[Contribution], masks: Sequence[Mask]
    ) -> tuple[Resource, ...]:
        masked = self._covered(masks)
        remaining = [one for one in self.startup.resources if one.id not in masked]
        added = sorted(
            (one for given in accepted for one in given.resources), key=lambda one: one.index
        )
        return (*remaining, *added)

    def _check(
        self, accepted: Sequence[Contribution], masks: Sequence[Mask]
    ) -> tuple[list[Problem], tuple[Problem, ...]]:
        """What is wrong with all of it together, and what of the parts may be."""
        resources = self._resources(accepted, masks)
        names: dict[str, set[str]] = defaultdict(set)
        for one in resources:
            names[one.kind].add(one.name)
        problems: list[Problem] = []
        warnings: list[Problem] = []
        # Not the very lines of routes that clash: to find them in a long list takes half a second,
        # and a bad part would cost that whenever its source says it again.
        for resource, fault in together.check(resources, names, lambda _resource, _wanted: {}):
            if not fault.warning:
                problems.append(_problem(resource, fault))
            elif resource.part:
                warnings.append(_problem(resource, fault))
        return problems, tuple(warnings)

    def finish(self) -> Effective:
        """All that was accepted, in order."""
        accepted = sorted(self.accepted, key=lambda one: one.part.source)
        suppressed = tuple(
            Suppressed(target, self.declared[name], cover.masked_by, cover.until, cover.reason)
            for name, (target, cover) in self._covered(self.masks).items()
        )
        return Effective(
            self.startup,
            self._router(accepted),
            tuple(sorted(suppressed, key=lambda one: one.resource.index)),
            tuple(one for given in accepted for one in given.resources),
            tuple(self.rejected[source] for source in sorted(self.rejected)),
            tuple(sorted(self.ignored, key=lambda one: (one.part.source, one.directive.target))),
            tuple(given.part for given in accepted),
        )

    def _router(self, accepted: Sequence[Contribution]) -> Router:
        if not accepted:
            return self.startup
        warnings = (warning for given in accepted for warning in given.warnings)
        return replace(
            self.startup,
            resources=self._resources(accepted, self.masks),
            files=(*self.startup.files, *(record(given.part) for given in accepted)),
            warnings=(*self.startup.warnings, *warnings, *self.warnings),
        )


def _problem(resource: Resource, fault: Fault) -> Problem:
    if fault.at is not None:
        return Problem(str(fault.at), "", fault.message)
    return Problem(resource.place, dotted(("spec", *fault.location)), fault.message)


def record(part: Part) -> SourceFile:
    """What a generation keeps of a part: what it contributes, and not when it did so. A source
    that says the same again thus leads to no new generation."""
    directives = [
        {"op": one.op, "target": one.target._asdict(), "reason": one.reason}
        for one in part.directives
    ]
    # A line for each of them, so that two records can be compared.
    text = f'{{"directives": [{_lines(directives)}],\n"resources": [{_lines(part.resources)}]}}\n'
    return SourceFile(f"{RECORD}{part.source}", text.encode())


def _lines(values: Iterable[Mapping[str, Any]]) -> str:
    written = (json.dumps(one, sort_keys=True, ensure_ascii=False) for one in values)
    return ",".join(f"\n{one}" for one in written)


def recorded(files: Mapping[str, bytes]) -> list[Part]:
    """The parts that were in force in a generation, from what it keeps of them."""
    parts = []
    for path, content in files.items():
        if path.startswith(RECORD):
            kept = json.loads(content)
            directives = tuple(
                Directive(one["op"], Target(**one["target"]), one["reason"])
                for one in kept["directives"]
            )
            source = path.removeprefix(RECORD)
            parts.append(Part(source, 0, 0.0, None, tuple(kept["resources"]), directives))
    return parts
