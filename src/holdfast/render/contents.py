"""What differs in contents, for people: a rendering of the entries that documents hold."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.document import Entry
from holdfast.engine.kinds import KINDS
from holdfast.numbers import counted, thousands
from holdfast.render.style import Style

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "context": (" ", "dim")}


HINT = "--full shows the content of what comes and goes."


def lines(operation: Entry, style: Style) -> Iterator[str]:
    """What differs in the content that an operation is about; nothing where it is only counted."""
    found = operation.get("difference")
    if found is None:
        return
    for change in operation["changes"]:
        # Where a digest should stand may stand words: `changed by hand`.
        if change["field"] in _digests(operation) and " " in str(change["before"]):
            yield f"{change['field']}  {style(change['before'], 'red')}"
    if found["note"]:
        yield found["note"]
    yield from hunks(found, style)


def hunks(difference: Entry, style: Style) -> Iterator[str]:
    for hunk in difference["hunks"]:
        if hunk["where"]:
            yield style(f"{hunk['where']}:", "cyan")
        for line in hunk["lines"]:
            sign, look = _SIGNS[line["change"]]
            yield style(f"{sign} {line['text']}", look)
    if difference["hunks"] and difference["left_out"]:
        yield style(f"… {thousands(difference['left_out'])} more lines, --full shows all", "dim")


def extent(operation: Entry, style: Style) -> str:
    """Of what comes or goes as a whole: ` (12 lines)`."""
    found = operation.get("difference")
    if found is None or found["hunks"] or not found["left_out"]:
        return ""
    return style(f" ({counted(found['left_out'], 'line')})", "dim")


def changes(operation: Entry) -> list[Entry]:
    """The fields that differ, less the digests of a content whose difference is shown."""
    given: list[Entry] = operation["changes"]
    if "difference" not in operation:
        return given
    return [change for change in given if change["field"] not in _digests(operation)]


def _digests(operation: Entry) -> tuple[str, ...]:
    return KINDS[operation["artifact"]["kind"]].digests
