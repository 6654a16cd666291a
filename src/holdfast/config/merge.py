"""The merge of sources, as far as it needs no resource: which parts are in force, and what they
mask. Pure: the same parts at the same time always lead to the same, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.config.part import Directive, Part, Target
from holdfast.dataclass import dataclass, replace

MASK = "mask"


@dataclass(frozen=True, slots=True)
class Mask:
    """One directive that takes effect."""

    part: Part
    directive: Directive


@dataclass(frozen=True, slots=True)
class Ignored:
    """A directive that does not, and why."""

    part: Part
    directive: Directive
    reason: str

    def __str__(self) -> str:
        directive = self.directive
        return f"{self.part.ref}: {directive.op} of {directive.target} is ignored: {self.reason}"


@dataclass(frozen=True, slots=True)
class Cover:
    """All masks of one resource together."""

    masked_by: tuple[str, ...]  # "Plugin/inventory#12", sorted
    until: float | None  # when the last of them is over; None: when it is withdrawn
    reason: str


def newest(parts: Iterable[Part]) -> list[Part]:
    """The newest generation of each source, by source."""
    found: dict[str, Part] = {}
    for part in parts:
        other = found.get(part.source)
        if other is None or part.generation > other.generation:
            found[part.source] = part
    return sorted(found.values(), key=lambda part: (part.source, part.generation, part.name))


def standbys(parts: Iterable[Part], accepted: Mapping[str, int]) -> dict[str, Part]:
    """By source, the part that was in force last, where a newer one has come since. accepted: its
    generation, by source. Nothing older than that ever counts again."""
    given = list(parts)
    last = {part.source: part.generation for part in newest(given)}
    return {
        part.source: part
        for part in given
        if accepted.get(part.source) == part.generation < last[part.source]
    }


def capped(part: Part, ttl: float | None) -> Part:
    """No longer in force than its source may be; None: as long as it says itself."""
    if ttl is None:
        return part
    latest = part.observed + ttl
    if part.expires is not None and part.expires <= latest:
        return part
    return replace(part, expires=latest)


def split(parts: Iterable[Part], now: float) -> tuple[list[Part], list[Part]]:
    """Those in force, and those that are over."""
    active: list[Part] = []
    expired: list[Part] = []
    for part in parts:
        (expired if part.expired(now) else active).append(part)
    return active, expired


def judge(
    part: Part, objection: Callable[[str, Directive], str]
) -> tuple[list[Mask], list[Ignored]]:
    """objection: of a source and a directive, why it has no effect; empty where it has."""
    masks: list[Mask] = []
    ignored: list[Ignored] = []
    for directive in part.directives:
        reason = objection(part.source, directive)
        if reason:
            ignored.append(Ignored(part, directive, reason))
        else:
            masks.append(Mask(part, directive))
    return masks, ignored


def covers(masks: Sequence[Mask]) -> Mapping[Target, Cover]:
    """By target, what all masks of it come to."""
    by_target: dict[Target, list[Mask]] = {}
    for mask in masks:
        by_target.setdefault(mask.directive.target, []).append(mask)
    return {target: _cover(found) for target, found in sorted(by_target.items())}


def _cover(masks: list[Mask]) -> Cover:
    ends = [mask.part.expires for mask in masks]
    reasons = sorted({mask.directive.reason for mask in masks if mask.directive.reason})
    return Cover(
        tuple(sorted({mask.part.ref for mask in masks})),
        None if None in ends else max(end for end in ends if end is not None),
        "; ".join(reasons),
    )


def next_change(parts: Iterable[Part]) -> float | None:
    """When the first of them is over; None: none of them ever is by itself."""
    return min((part.expires for part in parts if part.expires is not None), default=None)
