"""The plan for people: a rendering of the entries that the JSON document holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.dataclass import dataclass, field
from holdfast.engine import document
from holdfast.engine.artifact import Artifact, in_words
from holdfast.engine.difference import NOT_READ, Differences
from holdfast.engine.document import Entry
from holdfast.engine.observed import Along
from holdfast.engine.plan import (
    Candidate,
    Conflict,
    Held,
    Marked,
    Operation,
    Orphan,
    Plan,
    Risk,
    Verb,
)
from holdfast.numbers import counted, thousands
from holdfast.render import artifact_words, contents, groups
from holdfast.render.style import Style

_INDENT = "      "
_LINE = 120  # characters of a change that are shown on one line
_MEMBERS = 10  # of a list, that are shown


def plan(
    given: Plan, style: Style, differences: Differences = NOT_READ, *, close: bool = True
) -> Iterator[str]:
    """The lines of a plan, with or without its closing count."""
    view = _View(style, differences)
    done = [op for op in given.operations if op.verb is not Verb.KEEP]
    if done:
        yield style("In this order:", "bold")
        yield ""
        for group in groups.operations(done, differences):
            yield from view.operations(group)
        if any(difference.left_out and not difference.hunks for difference in differences.values()):
            yield f"   {style(contents.HINT, 'dim')}"
        yield ""
    stopped = document.interruptions(given)
    if stopped:
        yield style("Restarted or interrupted:", "bold")
        yield from view.interruptions(stopped)
        yield ""
    yield from rest(given, style, differences)
    if given.refusal:
        yield f"{style('This plan is refused:', 'bold', 'red')} {given.refusal}."
    if close:
        yield closing(given, style)


def rest(given: Plan, style: Style, differences: Differences = NOT_READ) -> Iterator[str]:
    """What a plan does nothing about, and why."""
    view = _View(style, differences)
    kept = [orphan for orphan in given.orphans if not orphan.removed]
    # A conflict is said as one; what an operation is about needs no adoption to be dealt with.
    said = {conflict.desired.key for conflict in given.conflicts}
    said |= {op.subject.key for op in given.operations if isinstance(op.subject, Artifact)}
    offered = [c for c in given.candidates if c.desired.key not in said and not c.unproven]
    sections = (
        ("Ours, no longer declared, and kept", list(view.orphans(kept))),
        ("Conflicts: something else is in the place of what is declared", view.conflicts(given)),
        ("There already, and not ours (`holdfast adopt` takes it over)", view.candidates(offered)),
        (
            "Carries the mark of a Holdfast, is not in this ledger, and is left alone (`holdfast"
            " adopt --recover` takes it back)",
            view.recoverable(given.recoverable),
        ),
        ("Pending", view.held(given.pending)),
        ("Blocked", view.held(given.blocked)),
        ("Could not be observed", [f"  {kind}: {reason}" for kind, reason in given.unknown]),
    )
    for title, lines in sections:
        shown = list(lines)
        if shown:
            yield style(f"{title}:", "bold")
            yield from shown
            yield ""


def candidates(given: Sequence[Candidate], style: Style, *, adopted: bool = False) -> Iterator[str]:
    yield from _View(style).candidates(given, "until now " if adopted else "")


def recoverable(given: Sequence[Marked], style: Style) -> Iterator[str]:
    yield from _View(style).recoverable(given)


def closing(given: Plan, style: Style) -> str:
    summary = document.summary(given)
    verbs = (Verb.CREATE, Verb.UPDATE, Verb.REPLACE, Verb.DELETE, Verb.FORGET)
    parts = [f"{thousands(summary[verb])} to {verb}" for verb in verbs if summary[verb]]
    kept = f"{counted(summary[Verb.KEEP], 'artifact')} as declared"
    said = style("Plan: " + (", ".join(parts) or "nothing to do"), "bold")
    rest = [kept] if summary[Verb.KEEP] or not parts else []
    rest += [counted(summary["conflicts"], "conflict")] if summary["conflicts"] else []
    rest += [f"{summary[what]} {what}" for what in ("blocked", "pending") if summary[what]]
    return "; ".join((said, ", ".join(rest))) + "." if rest else f"{said}."


def changes(entries: list[Entry], style: Style) -> Iterator[str]:
    """`mtu  1500 → 9000`, the names in a column."""
    width = max((len(entry["field"]) for entry in entries), default=0)
    for entry in entries:
        before, after = in_words(entry["before"]), in_words(entry["after"])
        name = entry["field"].ljust(width)
        if isinstance(entry["after"], list) and len(before + after) > _LINE:
            for glyph, member, look in _members(entry["before"] or [], entry["after"]):
                yield f"{name}  {style(f'{glyph} {member}', look)}"
                name = " " * width
        else:
            yield f"{name}  {style(before, 'red')} → {style(after, 'green')}"


def losses(given: Sequence[str], style: Style, said: str = "others lose") -> Iterator[str]:
    """`others lose: route 10.0.0.0/8 (protocol static)`, one line each."""
    for one in given[:_MEMBERS]:
        yield style(f"{said}: {one}", "red")
    if len(given) > _MEMBERS:
        yield style(f"{said} {thousands(len(given) - _MEMBERS)} more", "red")


def along(given: Sequence[Along], style: Style) -> Iterator[str]:
    """`goes with it and is put back: route 10.0.0.0/8`, one line each."""
    for put_back, said in ((False, "goes with it"), (True, "goes with it and is put back")):
        found = [one.what for one in given if one.put_back is put_back]
        for what in found[:_MEMBERS]:
            yield style(f"{said}: {what}", "yellow")
        if len(found) > _MEMBERS:
            yield style(f"{said}: {thousands(len(found) - _MEMBERS)} more", "yellow")


def _members(before: list[str], after: list[str]) -> Iterator[tuple[str, str, str]]:
    """Of a list that fits on no line, what differs: of a thousand peers, one."""
    gone = [("-", member, "red") for member in before if member not in set(after)]
    new = [("+", member, "green") for member in after if member not in set(before)]
    yield from [*gone, *new][:_MEMBERS]
    more = len(gone) + len(new) - _MEMBERS
    if more > 0:
        yield "…", f"and {thousands(more)} more", "dim"


@dataclass(frozen=True, slots=True)
class _View:
    style: Style
    differences: Differences = field(default_factory=dict)

    def operations(self, group: groups.Group[Operation]) -> Iterator[str]:
        given = group.first
        verb = given.verb.value
        glyph = self.style(
            artifact_words.GLYPHS[verb].rjust(3), "bold", *artifact_words.LOOKS[verb]
        )
        entries = [
            document.operation(given, artifact, self.differences) for artifact in group.shown
        ]
        for entry in entries:
            # Of an update, the identity and what changes; of a create or delete, all of it.
            fields = entry["fields"] if not given.changes else None
            shown = artifact_words.artifact(entry["artifact"], fields)
            yield f" {glyph} {shown}{contents.extent(entry, self.style)}"
        yield from self._more(group.more)
        differing = contents.changes(entries[0])
        yield from (_INDENT + line for line in changes(differing, self.style))
        yield from (_INDENT + line for line in contents.lines(entries[0], self.style))
        yield _INDENT + self._why(given.owners, given.origin, given.reason)
        if given.proof and given.verb.changes_host:
            yield _INDENT + self.style(f"proof: {given.proof}", "dim")
        if given.risk in (Risk.MEDIUM, Risk.HIGH):
            note = f": {given.risk_note}" if given.risk_note else ""
            look = "red" if given.risk is Risk.HIGH else "yellow"
            yield _INDENT + self.style(f"risk {given.risk.value}{note}", look)
        yield from (_INDENT + line for line in losses(given.losses, self.style))
        yield from (_INDENT + line for line in along(given.along, self.style))

    def interruptions(self, given: Sequence[Entry]) -> Iterator[str]:
        for one in given[:_MEMBERS]:
            yield f"  {artifact_words.artifact(one['artifact'])} {one['effect']}"
        yield from self._more(len(given) - _MEMBERS)

    def orphans(self, given: list[Orphan]) -> Iterator[str]:
        for group in groups.orphans(given):
            orphan = group.first
            for artifact in group.shown:
                yield f"  {artifact_words.artifact(document.name(artifact.key), artifact.fields)}"
            yield from self._more(group.more)
            yield _INDENT + self._why(orphan.owners, "", orphan.reason)

    def conflicts(self, given: Plan) -> Iterator[str]:
        def key(conflict: Conflict) -> tuple[object, ...]:
            own = conflict.desired.key if conflict.desired.key in self.differences else None
            return conflict.owners, conflict.origin, conflict.holder, conflict.changes, own

        for items, count in groups.alike(given.conflicts, key):
            first = items[0]
            for item in items:
                yield f"  {item.desired.key}"
            yield from self._more(count - len(items))
            entry = document.conflict(first, self.differences)
            differing = contents.changes(entry)
            yield from (_INDENT + line for line in changes(differing, self.style))
            yield from (_INDENT + line for line in contents.lines(entry, self.style))
            yield _INDENT + self._why(first.owners, first.origin, _not_ours(first.holder))
            yield _INDENT + self.style(f"to resolve it: {first.remedy}", "yellow")

    def candidates(self, given: Sequence[Candidate], when: str = "") -> Iterator[str]:
        def key(candidate: Candidate) -> tuple[object, ...]:
            return candidate.owners, candidate.origin, candidate.holder, candidate.changes

        for items, count in groups.alike(given, key):
            first = items[0]
            for item in items:
                fields = item.observed.fields if not item.changes else None
                yield f"  {artifact_words.artifact(document.name(item.desired.key), fields)}"
            yield from self._more(count - len(items))
            entries = document.candidate(first)["changes"]
            yield from (_INDENT + line for line in changes(entries, self.style))
            state = "as declared" if not first.changes else "not as declared"
            reason = f"{state}, {when}{_not_ours(first.holder)}"
            yield _INDENT + self._why(first.owners, first.origin, reason)

    def recoverable(self, given: Sequence[Marked]) -> Iterator[str]:
        for group in groups.marked(given):
            for artifact in group.shown:
                yield f"  {artifact_words.artifact(document.name(artifact.key), artifact.fields)}"
            yield from self._more(group.more)
            yield _INDENT + self.style(group.first.mark, "dim")

    def held(self, given: tuple[Held, ...]) -> Iterator[str]:
        def key(held: Held) -> tuple[str, str]:
            return held.owner, held.reason

        for items, count in groups.alike(given, key):
            place = self.style(f" ({items[0].origin})", "dim") if items[0].origin else ""
            times = f" (and {thousands(count - 1)} more)" if count > 1 else ""
            yield f"  {items[0].owner}{place}: {items[0].reason}{times}"

    def _more(self, count: int) -> Iterator[str]:
        if count > 0:
            yield self.style(f"     … and {thousands(count)} more", "dim")

    def _why(self, owners: tuple[str, ...], origin: str, reason: str) -> str:
        who = artifact_words.owners(owners)
        if origin:
            who = f"{who} ({origin})" if who else origin
        return self.style(f"{who}: {reason}" if who else reason, "dim")


def _not_ours(holder: str) -> str:
    return f"not ours ({holder})" if holder else "not ours"
