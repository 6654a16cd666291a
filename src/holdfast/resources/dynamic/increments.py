"""What sources declare by increments, admitted into a merge resource by resource.

Whole parts come first: what is declared by increments never keeps one out. Of the rest, the earlier
declared comes before the later, whichever source declares it. A resource that is refused leaves no
trace, and the others of its source stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.config.part import Part
from holdfast.dataclass import dataclass, replace
from holdfast.resources import registry
from holdfast.resources.dynamic import contribution, source_policy
from holdfast.resources.dynamic.contribution import FIRST, Contribution
from holdfast.resources.dynamic.dynamic_override_policy import settings_not_allowed
from holdfast.resources.dynamic.merger import Merger, Reasons, Taken, problem, shown, unnamed
from holdfast.resources.resource import Resource


@dataclass(frozen=True, slots=True)
class Refused:
    """A resource that is declared, and not in force."""

    source: str
    number: int
    id: str
    reasons: Reasons

    def __str__(self) -> str:
        more = f" (and {len(self.reasons) - 1} more)" if len(self.reasons) > 1 else ""
        return f"{self.source} {self.id} is refused: {self.reasons[0]}{more}"


def admit(merger: Merger, parts: Iterable[Part]) -> tuple[Refused, ...]:
    """Adds to what the merger has accepted; answers what could not be."""
    admission = _Admission(merger, [part for part in parts if _is_named(merger, part)])
    admission.run()
    return tuple(admission.refused())


def _is_named(merger: Merger, part: Part) -> bool:
    if part.source in merger.admitted:
        return True
    merger.reasons[part.source] = (unnamed(part.source),)
    return False


class _Admission:
    def __init__(self, merger: Merger, parts: Sequence[Part]) -> None:
        self._merger = merger
        self._read = {part.source: contribution.read(part, 0) for part in parts}
        self._source: dict[int, str] = {}  # by the index of a resource
        self._ids: dict[int, str] = {}
        self._reasons: dict[int, list[str]] = {}

    def run(self) -> None:
        candidates = sorted(self._readable(), key=lambda resource: resource.index)
        candidates = self._without_refused(candidates, self._taken_ids(candidates))
        candidates = self._without_refused(candidates, self._not_allowed(candidates))
        candidates = self._valid_together(candidates)
        for source, read in self._read.items():
            mine = tuple(
                candidate for candidate in candidates if self._source[candidate.index] == source
            )
            self._merger.accepted[source] = Taken(replace(read, resources=mine), (), ())

    def refused(self) -> Iterator[Refused]:
        for index in sorted(self._reasons):
            source, reasons = self._source[index], shown(dict.fromkeys(self._reasons[index]))
            yield Refused(source, index - FIRST, self._ids[index], reasons)

    def _readable(self) -> Iterator[Resource]:
        for source, read in self._read.items():
            places: dict[str, int] = {}
            for at, number in enumerate(read.part.numbers or ()):
                index = FIRST + number
                self._source[index] = source
                places[str(contribution.place(read.part, at))] = index
                raw = read.part.resources[at]
                self._ids[index] = f"{raw['kind']}/{raw['metadata']['name']}"
            for one in read.problems:
                self._refuse(places[one.place], f"{one.path}: {one.message}")
            yield from (
                resource for resource in read.resources if resource.index not in self._reasons
            )

    def _refuse(self, index: int, reason: str) -> None:
        self._reasons.setdefault(index, []).append(reason)

    def _without_refused(
        self, candidates: Iterable[Resource], found: Iterable[tuple[Resource, str]]
    ) -> list[Resource]:
        for resource, reason in found:
            self._refuse(resource.index, reason)
        return [candidate for candidate in candidates if candidate.index not in self._reasons]

    def _taken_ids(self, candidates: Iterable[Resource]) -> Iterator[tuple[Resource, str]]:
        holders = self._merger.holders()
        for candidate in candidates:
            holder = holders.setdefault(candidate.id, candidate)
            if holder is not candidate:
                yield candidate, f"{candidate.id} is declared already, at {holder.place}"

    def _not_allowed(self, candidates: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
        merger = self._merger
        links = source_policy.Links.of((*merger.holders().values(), *candidates))
        judges = {
            source: source_policy.judge(merger.admitted[source], links) for source in self._read
        }
        count: Counter[str] = Counter()
        for candidate in candidates:
            source = self._source[candidate.index]
            found = [
                *judges[source].refusals(candidate),
                *settings_not_allowed(merger.policies, source, (candidate,), links.called),
                *self._leads_astray(source, candidate),
            ]
            found = found or list(judges[source].count(count[source], candidate))
            yield from ((candidate, reason) for reason in found)
            if not found:
                count[source] += registry.kind(candidate.kind).size(candidate)

    def _leads_astray(self, source: str, resource: Resource) -> Iterator[str]:
        if registry.kind(resource.kind).link is not None:
            part = self._read[source].part
            yield from self._merger.led_astray(Contribution(part, (resource,), (), ()))

    def _valid_together(self, candidates: Sequence[Resource]) -> list[Resource]:
        left = list(candidates)
        while left:
            findings = self._merger.findings(left)
            faults = [(resource, fault) for resource, fault in findings if not fault.warning]
            if not faults:
                break
            mine = [
                (resource, fault) for resource, fault in faults if resource.index in self._source
            ]
            if not mine:  # it is told of another, which cannot be with one of these
                last = self._first_invalid(left)
                mine = [(last, fault) for _, fault in faults]
            reasons = (
                (resource, f"with it the configuration is invalid: {problem(resource, fault)}")
                for resource, fault in mine
            )
            left = self._without_refused(left, reasons)
        if left:
            self._merger.note_warnings(left)
        return left

    def _first_invalid(self, candidates: Sequence[Resource]) -> Resource:
        """The one that those before it are valid without."""
        low, high = 0, len(candidates)
        while high - low > 1:
            middle = (low + high) // 2
            found = self._merger.findings(candidates[:middle])
            if any(not fault.warning for _, fault in found):
                high = middle
            else:
                low = middle
        return candidates[high - 1]
