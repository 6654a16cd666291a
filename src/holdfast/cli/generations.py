"""`holdfast generations`: what was applied, and what differs between two applies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import output
from holdfast.cli.terminal import Style, say
from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger

if TYPE_CHECKING:
    from holdfast.agent.stories.generations import Story

_number = click.IntRange(min=1)


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int | None:
    """List the configurations that were applied, show one, compare two. The last 50 are kept.

    Secrets that stand in a configuration are not shown.
    """
    return ctx.invoke(list_) if ctx.invoked_subcommand is None else None


@command.command(name="list")
@output.option
@click.pass_obj
def list_(paths: Paths, output: str = "table") -> int:
    """List them, the newest first."""
    from holdfast.agent.stories import generations
    from holdfast.cli.output import write

    with Ledger.read(paths) as ledger:
        found = generations.read(ledger)
    if output != "table":
        members = (
            ("format_version", "1.0"),
            ("generations", map(generations.entry, found)),
        )
        write(members, output, sys.stdout)
    elif found:
        say(generations.lines(found, Style.of(sys.stdout)), sys.stdout)
    else:
        print("Nothing was applied yet.")
    return 0


@command.command()
@click.argument("number", type=_number)
@output.option
@click.pass_obj
def show(paths: Paths, number: int, output: str) -> int:
    """Show one: when it was applied, what became of it, and its files."""
    from holdfast.agent.stories import generations
    from holdfast.cli.output import write

    with Ledger.read(paths) as ledger:
        files = ledger.generation_files(number)
        story = next(one for one in generations.read(ledger) if one.generation.number == number)
    if output == "table":
        say(_whole(story, files), sys.stdout)
    else:
        texts = [
            {"path": path, "text": generations.shown(path, content)}
            for path, content in files.items()
        ]
        entry: dict[str, Any] = generations.entry(story) | {"texts": texts}
        write((("format_version", "1.0"), *entry.items()), output, sys.stdout)
    return 0


def _whole(story: Story, files: dict[str, bytes]) -> Iterator[str]:
    from holdfast.agent.stories import generations

    style = Style.of(sys.stdout)
    yield from generations.lines([story], style)
    for path, content in files.items():
        yield ""
        yield style(path, "bold")
        yield from generations.shown(path, content).splitlines()


@command.command()
@click.argument("before", metavar="A", type=_number)
@click.argument("after", metavar="B", required=False, type=_number)
@output.option
@click.pass_obj
def diff(paths: Paths, before: int, after: int | None, output: str) -> int:
    """Show what differs between the files of two generations; without B, the newest is taken."""
    from holdfast.agent.stories import generations
    from holdfast.cli.output import write

    with Ledger.read(paths) as ledger:
        if after is None:
            newest = ledger.generations(1)
            if not newest:
                raise Refused("nothing was applied yet")
            after = newest[0].number
        old, new = ledger.generation_files(before), ledger.generation_files(after)
    names = f"generation {before}", f"generation {after}"
    text = generations.diff(old, new, names)
    if output == "table":
        sys.stdout.write(text)
    else:
        members = (("format_version", "1.0"), ("before", before), ("after", after), ("diff", text))
        write(members, output, sys.stdout)
    return 0
