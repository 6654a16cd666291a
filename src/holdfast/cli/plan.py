"""`holdfast plan`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from holdfast.cli import arguments, output
from holdfast.cli.exit import Exit
from holdfast.paths import Paths


@click.command()
@arguments.file
@click.option(
    "--out",
    metavar="PLAN",
    type=click.Path(path_type=Path),
    help="Store the plan, for `holdfast apply PLAN` to carry out that plan or none.",
)
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit with 2 where there are changes to make.",
)
@arguments.allow_mass_delete
@arguments.allow_lockout
@output.option
@click.pass_obj
def command(
    paths: Paths,
    file: Path | None,
    out: Path | None,
    detailed_exitcode: bool,
    allow_mass_delete: bool,
    allow_lockout: bool,
    output: str,
) -> int:
    """Show what an apply would do, why, and by what right. Changes nothing."""
    from holdfast.cli import operator, planfile, show
    from holdfast.cli.load import load
    from holdfast.cli.preview import look

    loaded = load(paths, file)
    plan = look(paths, loaded, allow_mass_delete=allow_mass_delete).plan
    plan = operator.guarded(plan, loaded, allow=allow_lockout)
    about = loaded.about(paths)
    show.plan(plan, about, output, sys.stdout)
    if out is not None:
        planfile.write(out, plan, about)
        if output == "table":
            click.echo(f"Stored in {out}; `holdfast apply {out}` carries out exactly this.")
    if plan.unknown:
        return Exit.FAILED
    return Exit.CHANGES if detailed_exitcode and plan.changes else Exit.OK
