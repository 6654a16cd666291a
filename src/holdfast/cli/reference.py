"""The reference pages of the command line and of events, made from their declarations.

`python -m holdfast.cli.reference FOLDER` writes them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from holdfast.cli.exit import MEANINGS
from holdfast.cli.main import command as holdfast
from holdfast.engine.event_kinds import EVENT_KINDS, FIELDS

_MADE = "<!-- Made by `python -m holdfast.cli.reference docs/reference`; do not edit. -->"


_EVENTS = """\
What happened is kept in the ledger as events, numbered in order. `holdfast events` shows them, the
API streams them (`Events.Read`), a `LogSink` hands them on, and a `Plugin` can be triggered by
them. Every event has a kind, a subject, a message for people, the generation it belongs to (0 where
there is none) and data for programs.

| level | what it says | in a `LogSink` |
|---|---|---|
| normal | it is as it should be | `info` |
| warning | somebody should look at it | `warning` |
| failure | something was tried and was not done | `error` |
"""


def pages() -> dict[str, str]:
    """File name -> content."""
    made = {"commands.md": _commands(), "events.md": _events(), "exit-codes.md": _exit_codes()}
    return {name: "\n".join(lines) for name, lines in made.items()}


def _commands() -> Iterator[str]:
    yield from ("# Commands", "", _MADE, "")
    context = click.Context(holdfast, info_name="holdfast")
    yield from _command(holdfast, context, level=2)
    for name in holdfast.list_commands(context):
        found = holdfast.get_command(context, name)
        if found is None:
            continue
        inner = click.Context(found, info_name=name, parent=context)
        yield from _command(found, inner, level=2)
        if isinstance(found, click.Group):
            for sub in found.list_commands(inner):
                child = found.commands[sub]
                yield from _command(child, click.Context(child, info_name=sub, parent=inner), 3)


def _command(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} `{context.command_path}`", "")
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield from ("```", " ".join(usage.split()), "```", "")
    yield from (inspect.cleandoc(command.help or ""), "")
    records = [param.get_help_record(context) for param in command.get_params(context)]
    options = [record for record in records if record is not None and record[1]]
    options = [record for record in options if "--help" not in record[0]]
    if options:
        yield from ("| option | meaning |", "|---|---|")
        for names, meaning in options:
            yield f"| `{names.replace('|', chr(92) + '|')}` | {meaning} |"
        yield ""


def _events() -> Iterator[str]:
    yield from ("# Events", "", _MADE, "", _EVENTS)
    yield from ("| kind | subject | level | data | meaning |", "|---|---|---|---|---|")
    for kind in EVENT_KINDS.values():
        level = "failure" if kind.failure else "warning" if kind.warning else "normal"
        data = ", ".join(f"`{name}`" for name in kind.data)
        yield f"| `{kind}` | {kind.subject} | {level} | {data} | {kind.meaning} |"
    yield from ("", "## Data", "", "| field | meaning |", "|---|---|")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in FIELDS.items())
    yield ""


def _exit_codes() -> Iterator[str]:
    yield from ("# Exit codes", "", _MADE, "")
    yield from ("| code | name | meaning |", "|---|---|---|")
    for code, meaning in MEANINGS.items():
        yield f"| {code.value} | {code.name} | {meaning} |"
    yield ""


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)
