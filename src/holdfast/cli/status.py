"""`holdfast status`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import arguments, daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, say
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.agent.stories.status import Status


@click.command()
@arguments.file
@output.option
@click.pass_obj
def command(paths: Paths, file: Path | None, output: str) -> int:
    """Show how every resource is doing, by a fresh look at the host. Changes nothing."""
    from holdfast.cli.output import write

    with daemon.connect(paths, reads=True) as found:
        if found is not None and found.serves(file):
            told, reply = found.status()
            _say_troubles(reply.troubles)
        else:
            told = alone(paths, file)
    if output == "table":
        say(told.lines(Style.of(sys.stdout)), sys.stdout)
    else:
        write(told.members(), output, sys.stdout)
    return Exit.OK if told.healthy else Exit.FAILED


# What the table says of its resources itself.
_SAID = ("pending:", "conflict:", "blocked:", "unknown:")


def _say_troubles(troubles: Iterable[str]) -> None:
    """What the daemon meets besides: a fight, a file that is not in force, a part that is not."""
    style = Style.of(sys.stderr)
    lines = (one for one in troubles if not one.startswith(_SAID))
    say((f"{style('warning:', 'yellow')} {one}" for one in lines), sys.stderr)


def alone(paths: Paths, file: Path | None) -> Status:
    from holdfast.agent.phases import phases
    from holdfast.agent.preview import look
    from holdfast.agent.stories.status import past, status
    from holdfast.cli.hold import say_waiting
    from holdfast.cli.load import load

    say_waiting(paths)
    loaded = load(paths, file)
    plan = look(paths, loaded).plan
    resources = phases(plan, loaded.router.resources, loaded.suppressed)
    return status(loaded.router.name, resources, plan, past(paths))
