"""The examples of a page: what they do, in the order of the page.

- A block whose first line is a comment with nothing but a file name (`# router.yaml`) is that file,
  comment included. `# router.yaml (added)` adds the block at its end. A block in `diff` form
  changes the file: what it shows as context and `-` has to be there, exactly once.
- A `console` block holds commands (`$ …`, going on in lines of `> …`), each followed by what it
  prints. A command that fails must be followed by `$ echo $?`, so that no page hides a failure.
- YAML must be valid at every step, unless the name of the file begins with `wrong`.
- The files of docs/examples are there, as in a clone. A `yml` block shows a piece of one of them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs import compare
from tests.docs.markdown import EXAMPLES, ROOT, Block, blocks
from tests.docs.session import Session

_FILE = re.compile(r"# (?P<name>[\w./-]+\.\w+)(?P<added> \(added\))?")
_FAILED = "echo $?"


@dataclass(frozen=True, slots=True)
class File:
    name: str
    block: Block
    added: bool


@dataclass(frozen=True, slots=True)
class Command:
    text: str
    shown: str
    line: int  # of what it prints, in the page, from 0
    length: int  # lines of what it prints


@dataclass(slots=True)
class Outcome:
    """What came of a page: what is wrong with it, and what each command really printed."""

    problems: list[str] = field(default_factory=list)
    said: list[tuple[Command, str]] = field(default_factory=list)


def examples(text: str) -> Iterator[File | Command]:
    for block in blocks(text):
        head = _FILE.fullmatch(block.lines[0]) if block.lines else None
        if block.language == "console":
            yield from _commands(block)
        elif head is not None:
            yield File(head["name"], block, bool(head["added"]))
        elif block.language in ("yaml", "diff"):
            raise ValueError(f"line {block.line + 1}: this {block.language} names no file")


def play(text: str, folder: Path) -> Outcome:
    outcome = Outcome()
    failed: Command | None = None
    shutil.copytree(ROOT / EXAMPLES, folder / EXAMPLES)
    with Session(folder) as shell:
        for example in examples(text):
            if isinstance(example, File):
                outcome.problems += _write(example, shell)
                continue
            if failed is not None and example.text != _FAILED:
                outcome.problems.append(f"line {failed.line}: `{failed.text}` failed, unsaid")
            said, code = shell.run(example.text)
            said = compare.as_shown(said, folder)
            outcome.said.append((example, said))
            if not compare.same(example.shown, said):
                differs = compare.difference(example.shown, said)
                outcome.problems.append(f"line {example.line}: `{example.text}`\n{differs}")
            failed = example if code != 0 else None
    if failed is not None:
        outcome.problems.append(f"line {failed.line}: `{failed.text}` failed, unsaid")
    return outcome


def _commands(block: Block) -> Iterator[Command]:
    at = 0
    while at < len(block.lines):
        if not block.lines[at].startswith("$ "):
            raise ValueError(f"line {block.line + at + 1}: not a command: {block.lines[at]}")
        words, at = [block.lines[at][2:]], at + 1
        while at < len(block.lines) and block.lines[at].startswith("> "):
            words.append(block.lines[at][2:])
            at += 1
        start = at
        while at < len(block.lines) and not block.lines[at].startswith("$ "):
            at += 1
        shown = "\n".join(block.lines[start:at])
        yield Command("\n".join(words), shown, block.line + start, at - start)


def _write(file: File, shell: Session) -> Iterator[str]:
    where, lines = file.block.line, file.block.lines
    if file.block.language == "diff":
        text, code = shell.run(f"cat {file.name}")
        before = "".join(f"{line[1:]}\n" for line in lines[1:] if not line.startswith("+"))
        after = "".join(f"{line[1:]}\n" for line in lines[1:] if not line.startswith("-"))
        if code != 0 or f"{text}\n".count(before) != 1:
            yield f"line {where}: {file.name} does not hold this exactly once:\n{before}"
            return
        shell.write(file.name, f"{text}\n".replace(before, after))
    else:
        content = "".join(f"{line}\n" for line in (lines[1:] if file.added else lines))
        shell.write(file.name, content, append=file.added)
    if file.name.endswith(".yaml") and not Path(file.name).name.startswith("wrong"):
        said, code = shell.run(f"holdfast validate {file.name}")
        if code != 0:
            yield f"line {where}: {file.name} is not valid:\n{said}"
