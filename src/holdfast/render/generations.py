"""Generations: what was applied when, what became of it, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from difflib import unified_diff
from typing import Any

from holdfast.config.redaction import redact
from holdfast.dataclass import dataclass
from holdfast.engine import difference, document
from holdfast.engine.difference import SHOWN
from holdfast.engine.document import FORMAT_VERSION
from holdfast.errors import Refused
from holdfast.numbers import thousands
from holdfast.render.documents import Members
from holdfast.render.style import Style
from holdfast.resources.spec.secret_fields import of_kind
from holdfast.state.confirmations import CONFIRMED, OPEN, REVERTED, REVERTING, Confirmation
from holdfast.state.generations import Generation
from holdfast.state.latches import DYNAMIC
from holdfast.state.ledger import Ledger

_UNSHOWN = "they differ in what is not shown"


@dataclass(frozen=True, slots=True)
class Story:
    generation: Generation
    confirmation: Confirmation | None = None

    @property
    def judged(self) -> str:
        """What became of its trial; empty where it was none."""
        confirmation = self.confirmation
        if confirmation is None:
            return ""
        said = {
            OPEN: "waits to be confirmed",
            CONFIRMED: "confirmed",
            REVERTING: "being reverted",
            REVERTED: "reverted",
        }[confirmation.state]
        return f"{said}: {confirmation.reason}" if confirmation.reason else said


@dataclass(frozen=True, slots=True)
class Told:
    """What was asked for, as a document and as lines."""

    members: Callable[[], Members]
    lines: Callable[[Style], Iterator[str]]


def told(
    ledger: Ledger, show: int = 0, before: int = 0, after: int = 0, *, full: bool = False
) -> Told:
    """One with its files (show), what differs between two (before, and after; 0: the newest; full:
    all of that), or all of them. Refused where there is no such generation."""
    if show:
        return _one(ledger, show)
    if before:
        return _two(ledger, before, after, full=full)
    found = read(ledger)
    return Told(
        lambda: iter((("format_version", FORMAT_VERSION), ("generations", map(entry, found)))),
        lambda style: lines(found, style) if found else iter(("Nothing was applied yet.",)),
    )


def _one(ledger: Ledger, number: int) -> Told:
    files = ledger.generation_files(number)
    story = next(story for story in read(ledger) if story.generation.number == number)
    texts = {path: shown(path, content) for path, content in files.items()}

    def members() -> Members:
        yield "format_version", FORMAT_VERSION
        yield from entry(story).items()
        yield "texts", [{"path": path, "text": text} for path, text in texts.items()]

    def whole(style: Style) -> Iterator[str]:
        yield from lines([story], style)
        for path, text in texts.items():
            yield ""
            yield style(path, "bold")
            yield from text.splitlines()

    return Told(members, whole)


def _two(ledger: Ledger, before: int, after: int, *, full: bool) -> Told:
    if not after:
        newest = ledger.generations(1)
        if not newest:
            raise Refused("nothing was applied yet")
        after = newest[0].number
    old, new = ledger.generation_files(before), ledger.generation_files(after)
    text = diff(old, new, (f"generation {before}", f"generation {after}"))
    found = text.split("\n")[:-1]
    left_out = 0 if full else max(0, len(found) - SHOWN)
    found = found[: len(found) - left_out]

    def members() -> Members:
        yield "format_version", FORMAT_VERSION
        yield "before", before
        yield "after", after
        yield "diff", "".join(f"{line}\n" for line in found)
        yield "left_out", left_out
        yield "files", list(_differences(old, new, full=full))

    def lines(style: Style) -> Iterator[str]:
        yield from (style(line, look) if (look := _look(line)) else line for line in found)
        if left_out:
            yield style(f"… {thousands(left_out)} more lines, --full shows all", "dim")

    return Told(members, lines)


def _differences(
    before: Mapping[str, bytes], after: Mapping[str, bytes], *, full: bool
) -> Iterator[dict[str, Any]]:
    """As plans have them, file by file."""
    for old, new in _pairs(before, after):
        was, now = before.get(old), after.get(new)
        if was != now:
            hunks = difference.text(_plain(old, was), _plain(new, now))
            found = difference.of(hunks, "" if hunks else _UNSHOWN)
            entry = document.difference(found if full else difference.summary(found))
            yield {"before": old, "after": new, "difference": entry}


def _look(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _plain(path: str, content: bytes | None) -> list[str]:
    return [line.removesuffix("\n") for line in _lines(path, content)]


def read(ledger: Ledger) -> list[Story]:
    """The newest first."""
    judged = {confirmation.generation: confirmation for confirmation in ledger.confirmations()}
    return [Story(generation, judged.get(generation.number)) for generation in ledger.generations()]


def lines(stories: Iterable[Story], style: Style) -> Iterator[str]:
    for story in stories:
        generation = story.generation
        when = datetime.fromtimestamp(generation.created, UTC)
        files = ", ".join(file.path for file in generation.files) or "nothing declared: a cleanup"
        # A revert has the last word about a generation.
        states = [generation.state] if generation.state != REVERTED or not story.judged else []
        became = ", ".join([*states, story.judged] if story.judged else states)
        said = f"{when:%Y-%m-%d %H:%M:%S} UTC, {files}"
        yield f"{generation.number:>4}  {became}  {style(said, 'dim')}"


def entry(story: Story) -> dict[str, Any]:
    generation, trial = story.generation, story.confirmation
    said: dict[str, Any] = {
        "number": generation.number,
        "state": generation.state,
        "created": generation.created,
        "finished": generation.finished,
        "files": [
            {"path": file.path, "sha256": file.sha256, "size": file.size}
            for file in generation.files
        ],
    }
    if trial is not None:
        said["confirm"] = {
            "state": trial.state,
            "started": trial.started,
            "deadline": trial.deadline,
            "before": trial.before,
            "reason": trial.reason,
        }
    return said


def shown(_path: str, content: bytes) -> str:
    """A stored file as it may be shown: what it is called says nothing of what stands in it."""
    return redact(content.decode(errors="replace"), of_kind)


def diff(before: Mapping[str, bytes], after: Mapping[str, bytes], names: tuple[str, str]) -> str:
    """What differs between the files of two generations, as `diff -u` says it. names: of the two,
    for people to read."""
    pieces: list[str] = []
    for old, new in _pairs(before, after):
        was, now = before.get(old), after.get(new)
        if was == now and old == new:
            continue
        changes = "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in unified_diff(
                _lines(old, was),
                _lines(new, now),
                f"{old} ({names[0]})" if old else "/dev/null",
                f"{new} ({names[1]})" if new else "/dev/null",
            )
        )
        if old != new and not changes:
            pieces.append(f"{old} ({names[0]}) says the same as {new} ({names[1]})\n")
        pieces.append(changes if changes or was == now else f"{new}: {_UNSHOWN}\n")
    return "".join(pieces)


def _pairs(before: Iterable[str], after: Iterable[str]) -> list[tuple[str, str]]:
    """Which files to compare; "" for one that is not there. A candidate has another name than the
    file whose place it took."""
    gone, come = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    pairs = [(path, path) for path in set(before) & set(after)]
    if len(gone) == len(come) == 1 and not f"{gone[0]}{come[0]}".count(DYNAMIC):
        return sorted([*pairs, (gone[0], come[0])])
    return sorted([*pairs, *((path, "") for path in gone), *(("", path) for path in come)])


def _lines(path: str, content: bytes | None) -> list[str]:
    return shown(path, content).splitlines(keepends=True) if content is not None else []
