"""What sources besides the startup file contribute, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from holdfast.config.part import Part
from holdfast.dataclass import dataclass, field
from holdfast.engine import document
from holdfast.errors import HoldfastError
from holdfast.render.style import Style
from holdfast.resources import registry
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.source_name import plugin_of
from holdfast.resources.spec.moments import format_moment
from holdfast.runtime.plugins.redaction import redacted

Members = Iterator[tuple[str, Any]]

NO_CHANGES = "no dynamic config changes"
_HEAD = ("SOURCE", "GEN", "STATUS", "RESOURCES", "DIRECTIVES", "ACTIONPLANS", "EXPIRES")


class State(StrEnum):
    ACTIVE = "Active"
    REJECTED = "Rejected"  # it cannot be merged with the rest
    EXPIRED = "Expired"
    SUPERSEDED = "Superseded"  # by a newer generation of its source
    REFUSED = "Refused"  # it was not taken in at all, and is not kept


LOOKS = {
    State.ACTIVE: "green",
    State.REJECTED: "red",
    State.EXPIRED: "dim",
    State.SUPERSEDED: "dim",
    State.REFUSED: "red",
}


@dataclass(frozen=True, slots=True)
class PartStatus:
    source: str
    state: State
    part: Part | None  # as it counts: over when its policy says so; None where it was refused
    reasons: tuple[str, ...] = ()  # why it, or a directive of it, has no effect

    def entry(self) -> dict[str, Any]:
        part = self.part
        return {
            "source": self.source,
            "generation": None if part is None else part.generation,
            "status": self.state.value,
            "resources": 0 if part is None else len(part.resources),
            "directives": 0 if part is None else len(part.directives),
            "actionPlans": 0 if part is None else len(part.action_plans),
            "expires": None
            if part is None or part.expires is None
            else format_moment(part.expires),
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class Parts:
    """Every part there is, by source, the newest first."""

    effective: Effective
    all: tuple[PartStatus, ...]
    called: Mapping[str, str] = field(default_factory=dict)  # by source

    @property
    def newest(self) -> Iterator[PartStatus]:
        """What there is to say of each source now."""
        return (part for part in self.all if part.state is not State.SUPERSEDED)

    def of(self, wanted: str) -> tuple[PartStatus, ...]:
        """wanted: a source, or one part of it by reference or by name; else those of sources that
        are called so, by themselves or by the name their last part was handed in under."""
        found = tuple(part for part in self.all if wanted == part.source or _is(part.part, wanted))
        if not found:
            found = tuple(part for part in self.all if wanted in self._names(part.source))
        if not found:
            known = ", ".join(dict.fromkeys(part.source for part in self.all))
            there = f"there are parts of {known}" if known else "no source has handed in any"
            raise HoldfastError(f"{wanted}: no such source or part; {there}")
        return found

    def listed(self, *, every: bool, source: str, status: str) -> tuple[PartStatus, ...]:
        """every: older generations as well. source, status: only these; empty: all."""
        return tuple(
            part
            for part in (self.all if every else self.newest)
            if source in ("", part.source, *self._names(part.source))
            and status.casefold() in ("", part.state.value.casefold())
        )

    def _names(self, source: str) -> tuple[str, ...]:
        return source.partition("/")[2], self.called.get(source, source)


def _is(part: Part | None, wanted: str) -> bool:
    return part is not None and wanted in (part.ref, part.name)


def parts(
    effective: Effective,
    stored: Iterable[Part],
    refused: Mapping[str, str],
    called: Mapping[str, str],
) -> Parts:
    """stored: all generations that are kept. refused: why the last one of a source was. called: by
    what name the last one of a source was handed in."""
    found = {part.ref: PartStatus(part.source, State.ACTIVE, part) for part in effective.active}
    found |= {part.ref: PartStatus(part.source, State.EXPIRED, part) for part in effective.expired}
    for rejected in effective.rejected:
        part = rejected.part
        found[part.ref] = PartStatus(part.source, State.REJECTED, part, rejected.told)
    for ref, one in found.items():
        ignored = tuple(str(each) for each in effective.ignored if each.part.ref == ref)
        if ignored:
            found[ref] = PartStatus(one.source, one.state, one.part, ignored)
    for gone in effective.refused:
        status = found[gone.source]
        reasons = (*status.reasons, f"{gone.id} is refused: {gone.reasons[0]}")
        found[gone.source] = PartStatus(gone.source, status.state, status.part, reasons)
    for part in stored:
        found.setdefault(part.ref, PartStatus(part.source, State.SUPERSEDED, part))
    startup = effective.startup.resources
    plugins = {
        resource.id for resource in registry.having(startup, lambda kind: kind.proposes_parts)
    }
    ordered = [
        PartStatus(name, State.REFUSED, None, (why,))
        for name, why in refused.items()
        # One that is declared no more will not run again, and so never be well again.
        if not plugin_of(name) or name in plugins
    ]
    ordered += found.values()
    return Parts(effective, tuple(sorted(ordered, key=_rank)), called)


def _rank(part_status: PartStatus) -> tuple[str, bool, int]:
    """What was refused is the latest news of its source."""
    return (
        part_status.source,
        part_status.part is not None,
        0 if part_status.part is None else -part_status.part.generation,
    )


def list_members(shown: Sequence[PartStatus]) -> Members:
    yield "format_version", document.FORMAT_VERSION
    yield "parts", (part.entry() for part in shown)


def list_lines(shown: Sequence[PartStatus], style: Style, *, every: bool) -> Iterator[str]:
    """every: they are all there are, and not those that were asked for."""
    if not shown:
        yield "no source has handed in any part" if every else "no part is like that"
        return
    rows = [_row(part) for part in shown]
    widths = [max(len(row[column]) for row in (_HEAD, *rows)) for column in range(len(_HEAD))]
    yield style(_columns(_HEAD, widths), "dim")
    for part, row in zip(shown, rows, strict=True):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        padded[2] = style(padded[2], LOOKS[part.state])
        yield "  ".join(padded).rstrip()
        for reason in part.reasons:
            yield style(f"    {reason}", "yellow")


def _columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def _row(part_status: PartStatus) -> tuple[str, ...]:
    part = part_status.part
    if part is None:
        return part_status.source, "-", part_status.state.value, "-", "-", "-", "-"
    return (
        part_status.source,
        str(part.generation),
        part_status.state.value,
        str(len(part.resources)),
        str(len(part.directives)),
        str(len(part.action_plans)),
        "never" if part.expires is None else format_moment(part.expires),
    )


def describe_members(found: Sequence[PartStatus]) -> Members:
    yield "format_version", document.FORMAT_VERSION
    yield "parts", map(_described, found)


def _described(part_status: PartStatus) -> dict[str, Any]:
    part = part_status.part
    if part is None:
        return part_status.entry()
    return part_status.entry() | {
        "name": part.name,
        "observed": format_moment(part.observed),
        "digest": part.digest,
        "resources": list(part.resources),
        "directives": [
            {
                "op": each.op,
                "target": {
                    "apiVersion": each.target.api_version,
                    "kind": each.target.kind,
                    "name": each.target.name,
                },
                "reason": each.reason,
            }
            for each in part.directives
        ],
        "actionPlans": redacted(part.action_plans),
    }


def describe_lines(found: Sequence[PartStatus], style: Style) -> Iterator[str]:
    for number, part in enumerate(found):
        if number:
            yield ""
        yield from _described_lines(part, style)


def _described_lines(part_status: PartStatus, style: Style) -> Iterator[str]:
    part = part_status.part
    state = style(part_status.state.value, LOOKS[part_status.state])
    yield f"{style(part.ref if part else part_status.source, 'bold')}: {state}"
    for reason in part_status.reasons:
        yield f"  {style('reason'.ljust(10), 'dim')}  {reason}"
    if part is None:
        return
    ends = "never, until it is withdrawn" if part.expires is None else format_moment(part.expires)
    said = [("observed", format_moment(part.observed)), ("expires", ends), ("digest", part.digest)]
    said += [("resource", _resource_name(raw)) for raw in part.resources]
    for each in part.directives:
        why = f" ({each.reason})" if each.reason else ""
        said.append((each.op, f"{each.target}{why}"))
    said += [("action plan", str(raw.get("name", "?"))) for raw in part.action_plans]
    for label, text in said:
        yield f"  {style(label.ljust(10), 'dim')}  {text}"


def _resource_name(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    text = f"{raw.get('kind')}/{name}"
    return text if text.isprintable() else repr(text)


def diff_members(effective: Effective) -> Members:
    yield "format_version", document.FORMAT_VERSION
    yield (
        "added",
        (
            {
                "resource": resource.id,
                "source": source,
                "generation": int(generation) if generation else None,
            }
            for resource in effective.added
            for source, _, generation in [resource.part.partition("#")]
        ),
    )
    yield (
        "suppressed",
        (
            {
                "resource": suppressed.resource.id,
                "place": suppressed.resource.place,
                "maskedBy": list(suppressed.masked_by),
                "maskedUntil": None
                if suppressed.until is None
                else format_moment(suppressed.until),
                "reason": suppressed.reason,
            }
            for suppressed in effective.suppressed
        ),
    )
    yield "findings", effective.findings


def diff_lines(effective: Effective, style: Style) -> Iterator[str]:
    for added in effective.added:
        source, _, generation = added.part.partition("#")
        said = f"+ {added.id} source={source}"
        yield style(f"{said} generation={generation}" if generation else said, "green")
    for suppressed in effective.suppressed:
        until = "withdrawn" if suppressed.until is None else format_moment(suppressed.until)
        masks = ",".join(suppressed.masked_by)
        said = f"- {suppressed.resource.id} maskedBy={masks} maskedUntil={until}"
        yield style(f"{said} reason={suppressed.reason}" if suppressed.reason else said, "red")
    if not effective.added and not effective.suppressed:
        yield NO_CHANGES
