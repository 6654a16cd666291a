"""`holdfast status`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import arguments, daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, say
from holdfast.dataclass import replace
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.runtime.status import Status


@click.command()
@arguments.file
@output.option
@click.pass_obj
def command(paths: Paths, file: Path | None, output: str) -> int:
    """Show how every resource is doing, by a fresh look at the host. Changes nothing."""
    from holdfast.cli.output import write
    from holdfast.render.status import lines, members

    with daemon.connect(paths, reads=True) as found:
        if found is not None and found.serves(file):
            told, _ = found.status()
        else:
            from holdfast.cli.hold import say_waiting

            say_waiting(paths)
            told = alone(paths, file)
    style = Style.of(sys.stderr)
    say((f"{style('warning:', 'yellow')} {trouble}" for trouble in told.troubles), sys.stderr)
    if output == "table":
        say(lines(told, Style.of(sys.stdout)), sys.stdout)
    else:
        write(members(told), output, sys.stdout)
    return Exit.OK if told.healthy else Exit.FAILED


def alone(paths: Paths, file: Path | None) -> Status:
    from holdfast.runtime import namespace_ownership
    from holdfast.runtime.conditions import conditions
    from holdfast.runtime.load import load
    from holdfast.runtime.phases import phases
    from holdfast.runtime.preview import look
    from holdfast.runtime.status import past, status

    troubles: list[str] = []
    loaded = load(paths, file, troubles.append)
    view = look(paths, loaded)
    plan = view.plan
    if view.standing.held_by:
        troubles.append(view.standing.held_by)
    elif plan.recoverable:
        troubles.append(namespace_ownership.told(plan))
    resources = phases(plan, loaded.router.resources, loaded.suppressed)
    told = status(loaded.router.name, resources, plan, past(paths))
    told = conditions(paths, loaded.router.resources, loaded.facts, plan).told(told)
    return replace(told, troubles=tuple(troubles), namespace=view.standing.entry())
