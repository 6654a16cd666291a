"""`holdfast generations`: what was applied, and what differs between two applies."""

from __future__ import annotations

import sys

import click

from holdfast.cli import arguments, complete, daemon, output
from holdfast.cli.terminal import Style, say
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger


@click.group(invoke_without_command=True)
@output.option
@click.pass_context
def command(ctx: click.Context, output: str) -> int | None:
    """List the configurations that were applied, show one, compare two. The last 50 are kept.

    Secrets that stand in a configuration are not shown.
    """
    return ctx.invoke(list_, output=output) if ctx.invoked_subcommand is None else None


@command.command(name="list")
@output.option
@click.pass_obj
def list_(paths: Paths, output: str) -> int:
    """List them, the newest first."""
    return _tell(paths, output)


@command.command()
@click.argument("number", type=arguments.NUMBER, shell_complete=complete.generations)
@output.option
@click.pass_obj
def show(paths: Paths, number: int, output: str) -> int:
    """Show one: when it was applied, what became of it, and its files."""
    return _tell(paths, output, show=number)


@command.command()
@click.argument("before", metavar="A", type=arguments.NUMBER, shell_complete=complete.generations)
@click.argument(
    "after",
    metavar="[B]",
    required=False,
    type=arguments.NUMBER,
    shell_complete=complete.generations,
)
@click.option("--full", is_flag=True, help="Show all that differs.")
@output.option
@click.pass_obj
def diff(paths: Paths, before: int, after: int | None, full: bool, output: str) -> int:
    """Show what differs between the files of two generations; without B, the newest is taken."""
    return _tell(paths, output, before=before, after=after or 0, full=full)


def _tell(
    paths: Paths, form: str, show: int = 0, before: int = 0, after: int = 0, *, full: bool = False
) -> int:
    fields = {"show": show, "before": before, "after": after, "full": full}
    code = daemon.answered(paths, None, "Router.Generations", fields, form)
    if code is not None:
        return code
    from holdfast.render import generations

    with Ledger.read(paths) as ledger:
        told = generations.told(ledger, show, before, after, full=full)
    if form == "table":
        say(told.lines(Style.of(sys.stdout)), sys.stdout)
    else:
        output.write(told.members(), form, sys.stdout)
    return 0
