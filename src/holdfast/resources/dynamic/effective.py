"""The effective config: the startup file and all parts in force, merged. Pure.

1. Of each source the newest part counts, no longer than its DynamicConfigSource lets it; those
   that are over are dropped. One that no DynamicConfigSource names is rejected.
2. The others are taken in order of source, generation and name. Each is taken in whole or rejected
   whole, with its reasons: it may not be read, declare what its DynamicConfigSource does not allow
   or what the startup file or an accepted part declares already, or make the configuration
   invalid. A rejected part leaves no trace: the rest is as if it had never been there. One that
   refers to what a later one contributes is tried again after that.
3. Of a source whose newest part is rejected, the one that was in force last stays, if it is not
   over and is valid together with all that was accepted. It never keeps out a newest part.
4. Masks that a DynamicOverridePolicy of the startup file allows suppress their targets; others are
   ignored and reported, and the rest of their part stands.
5. What sources declare by increments is admitted after all parts, resource by resource
   (`increments`).
6. What remains is checked as a whole, as the startup file is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from holdfast.config import merge as merging
from holdfast.config.document import SourceFile
from holdfast.config.merge import Ignored
from holdfast.config.part import RECORD, Directive, Part, Raw, Target
from holdfast.dataclass import dataclass, replace
from holdfast.resources import registry
from holdfast.resources.dynamic import increments, source_policy
from holdfast.resources.dynamic.increments import Refused
from holdfast.resources.dynamic.merger import Merger, Taken
from holdfast.resources.resource import Resource
from holdfast.resources.router import Router
from holdfast.resources.spec.moments import format_moment

# Of resources that are refused, enough to see what is wrong: `dynamic describe` has all.
_REFUSED_SHOWN = 20


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
    # The part of its source that was in force last, if that is not over; and what speaks against
    # it, which is nothing where it stays in force.
    standby: Part | None = None
    against: tuple[str, ...] = ()

    @property
    def held(self) -> Part | None:
        """What stays in force instead of it."""
        return None if self.against else self.standby

    @property
    def fate(self) -> str:
        """What becomes of what its source contributed before; empty where there is nothing."""
        if self.standby is None:
            return ""
        if self.against:
            return f"{self.standby.ref} does not stay in force: {self.against[0]}"
        until = self.standby.expires
        end = "it is withdrawn" if until is None else format_moment(until)
        return f"{self.standby.ref} stays in force until {end}"

    @property
    def told(self) -> tuple[str, ...]:
        """All there is to say, a line each."""
        return (*self.reasons, self.fate) if self.fate else self.reasons


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
    refused: tuple[Refused, ...] = ()  # of what is declared by increments
    next_change: float | None = None  # when the first part that is not over will be

    @property
    def findings(self) -> Iterator[str]:
        """Everything that does not take effect, in a line each."""
        for rejected in self.rejected:
            more = f" (and {len(rejected.reasons) - 1} more)" if len(rejected.reasons) > 1 else ""
            fate = f"; {rejected.fate}" if rejected.fate else ""
            yield f"{rejected.part.ref} is rejected: {rejected.reasons[0]}{more}{fate}"
        yield from map(str, self.ignored)
        yield from map(str, self.refused[:_REFUSED_SHOWN])
        if len(self.refused) > _REFUSED_SHOWN:
            yield f"and {len(self.refused) - _REFUSED_SHOWN} more resources are refused"

    def documents(self, part: Part) -> tuple[Raw, ...]:
        """Of an active part, the resources that are in force."""
        return _without(part, (one for one in self.refused if one.source == part.source))


def _without(part: Part, refused: Iterable[Refused]) -> tuple[Raw, ...]:
    gone = {one.number for one in refused}
    if part.numbers is None or not gone:
        return part.resources
    found = zip(part.numbers, part.resources, strict=True)
    return tuple(document for number, document in found if number not in gone)


def merge(
    startup: Router,
    parts: Iterable[Part],
    now: float,
    before: Effective | None = None,
    accepted: Mapping[str, int] = MappingProxyType({}),
) -> Effective:
    """startup: valid by itself. now: seconds since 1970. accepted: the generation of each source
    that was in force last. before: an earlier merge, whose router is kept where sources said
    nothing but the same again; the places of resources then name the generation that brought
    them."""
    admitted = _admitted(startup)
    lifetimes = {source: resource.spec.ttl for source, resource in admitted.items()}
    given = [merging.capped(bounded(part, admitted), lifetimes.get(part.source)) for part in parts]
    current, expired = merging.split(merging.newest(given), now)
    waiting, _ = merging.split(_standbys(given, current, accepted, admitted), now)
    standby = {part.source: part for part in waiting}
    # What is over without ever having been in force has replaced nothing.
    current += [standby.pop(part.source) for part in expired if part.source in standby]
    current.sort(key=lambda part: part.source)
    if (
        before is not None
        and before.startup is startup
        and _repeats(before, current, standby, admitted)
    ):
        merged = _renewed(before, {part.source: part for part in current})
    else:
        merged = _merged(startup, current, standby, admitted)
    until = merging.next_change([*current, *standby.values()])
    return replace(merged, expired=tuple(expired), next_change=until)


def bounded(part: Part, admitted: Mapping[str, Resource]) -> Part:
    """Who declares by increments says no end, and has to speak again within its lifetime."""
    policy = admitted.get(part.source)
    if not part.by_increments or policy is None or policy.spec.allow is None:
        return part
    return merging.capped(part, policy.spec.allow.lifetime)


def _standbys(
    given: Sequence[Part],
    current: Iterable[Part],
    accepted: Mapping[str, int],
    admitted: Mapping[str, Resource],
) -> Iterator[Part]:
    """What may stay in force where a newer part is rejected, for as long as its source may say.
    One that is itself the newest asks for more time than it may: what it says was in force before,
    and is no worse for that."""
    asking = {
        part.source: part
        for part in current
        if accepted.get(part.source) == part.generation and _outlasts(part, admitted)
    }
    for source, part in (merging.standbys(given, accepted) | asking).items():
        policy = admitted.get(source)
        allow = policy.spec.allow if policy is not None else None
        yield merging.capped(part, allow.lifetime if allow is not None else None)


def _repeats(
    before: Effective,
    current: Iterable[Part],
    standby: Mapping[str, Part],
    admitted: Mapping[str, Resource],
) -> bool:
    """Do the sources say nothing but the same again, and for no longer than they may?"""

    def said(parts: Iterable[Part]) -> list[tuple[str, str, bool]]:
        return sorted((part.source, part.digest, _outlasts(part, admitted)) for part in parts)

    return said(_judged(before)) == said(current) and all(
        standby.get(rejected.part.source) == rejected.standby for rejected in before.rejected
    )


def _outlasts(part: Part, admitted: Mapping[str, Resource]) -> bool:
    policy = admitted.get(part.source)
    return policy is not None and source_policy.outlasts(policy, part)


def _judged(merged: Effective) -> list[Part]:
    """What each source said last."""
    held = {rejected.part.source for rejected in merged.rejected if rejected.held is not None}
    return [
        *(part for part in merged.active if part.source not in held),
        *(rejected.part for rejected in merged.rejected),
    ]


def _renewed(before: Effective, parts: Mapping[str, Part]) -> Effective:
    said = {old.ref: parts[old.source].ref for old in _judged(before)}
    rejected = [
        Rejected(
            parts[rejected.part.source],
            tuple(_renamed(reason, said) for reason in rejected.reasons),
            rejected.standby,
            tuple(_renamed(reason, said) for reason in rejected.against),
        )
        for rejected in before.rejected
    ]
    held = {one.part.source: one.held for one in rejected if one.held is not None}
    merger = Merger(before.startup, {})
    for old in before.active:
        part = held.get(old.source) or parts[old.source]
        merger.accepted[part.source] = merger.judge(part)
    return replace(
        _finished(merger),
        router=before.router,
        added=before.added,
        rejected=tuple(rejected),
        refused=before.refused,
    )


def _renamed(reason: str, refs: Mapping[str, str]) -> str:
    """With the generations of today: a reason may name any part, not just the rejected one."""
    known = "|".join(map(re.escape, refs))
    return re.sub(rf"(?:{known})(?!\d)", lambda found: refs[found[0]], reason)


def _merged(
    startup: Router,
    parts: Sequence[Part],
    standby: Mapping[str, Part],
    admitted: Mapping[str, Resource],
) -> Effective:
    merger = Merger(startup, admitted)
    merger.take([part for part in parts if not part.by_increments], standby)
    refused = increments.admit(merger, [part for part in parts if part.by_increments])
    effective = _finished(merger)
    accepted = [merger.accepted[source] for source in sorted(merger.accepted)]
    newest = {part.source: part for part in parts}
    return replace(
        effective,
        router=_router(merger, accepted, refused),
        added=tuple(sorted(_added(accepted), key=lambda resource: resource.index)),
        refused=refused,
        rejected=tuple(
            Rejected(newest[source], reasons, standby.get(source), merger.against.get(source, ()))
            for source, reasons in sorted(merger.reasons.items())
        ),
    )


def _finished(merger: Merger) -> Effective:
    """What is in force and masked."""
    accepted = [merger.accepted[source] for source in sorted(merger.accepted)]
    suppressed = [
        Suppressed(target, resource, cover.masked_by, cover.until, cover.reason)
        for resource, target, cover in merger.suppressed()
    ]
    ignored = [ignored for taken in accepted for ignored in taken.ignored]
    return Effective(
        merger.startup,
        merger.startup,
        tuple(sorted(suppressed, key=lambda suppressed: suppressed.resource.index)),
        ignored=tuple(
            sorted(ignored, key=lambda ignored: (ignored.part.source, ignored.directive.target))
        ),
        active=tuple(taken.given.part for taken in accepted),
    )


def _added(accepted: Iterable[Taken]) -> Iterator[Resource]:
    return (resource for taken in accepted for resource in taken.given.resources)


def _router(merger: Merger, accepted: Sequence[Taken], refused: Sequence[Refused]) -> Router:
    startup = merger.startup
    if not accepted:
        return startup
    warnings = (warning for taken in accepted for warning in taken.given.warnings)
    return replace(
        startup,
        resources=merger.resources(),
        files=(*startup.files, *(_recorded(taken.given.part, refused) for taken in accepted)),
        warnings=(*startup.warnings, *warnings, *merger.warnings),
    )


def _admitted(startup: Router) -> dict[str, Resource]:
    """What admits each source that may contribute, by source."""
    return {
        resource.spec.contributor: resource
        for resource in registry.having(startup.resources, lambda kind: kind.admits_parts)
    }


def _recorded(part: Part, refused: Iterable[Refused]) -> SourceFile:
    if not part.by_increments:
        return record(part)
    of_part = tuple(one for one in refused if one.source == part.source)
    return RecordOfIncrements(part, of_part)


class RecordOfIncrements(SourceFile):
    """The record of a part that changes with every batch: made when it is asked for."""

    __slots__ = ("_made", "_part", "_refused")
    _made: bytes
    _part: Part
    _refused: tuple[Refused, ...]

    def __init__(self, part: Part, refused: tuple[Refused, ...] = ()) -> None:
        object.__setattr__(self, "path", f"{RECORD}{part.source}")
        object.__setattr__(self, "_part", part)
        object.__setattr__(self, "_refused", refused)
        object.__setattr__(self, "_made", b"")

    @property
    def content(self) -> bytes:
        if not self._made:
            in_force = replace(self._part, resources=_without(self._part, self._refused))
            object.__setattr__(self, "_made", record(in_force).content)
        return self._made


def record(part: Part) -> SourceFile:
    """What a generation keeps of a part: what it contributes, and not when it did so. A source
    that says the same again thus leads to no new generation."""
    directives = [
        {"op": directive.op, "target": directive.target._asdict(), "reason": directive.reason}
        for directive in part.directives
    ]
    # A line for each of them, so that two records can be compared.
    text = f'{{"directives": [{_lines(directives)}],\n"resources": [{_lines(part.resources)}]}}\n'
    return SourceFile(f"{RECORD}{part.source}", text.encode())


def _lines(values: Iterable[Mapping[str, Any]]) -> str:
    written = (json.dumps(value, sort_keys=True, ensure_ascii=False) for value in values)
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
