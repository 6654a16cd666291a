"""`holdfast plan`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from holdfast.cli import arguments, daemon, output
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
@arguments.allow_side_effects
@arguments.full
@output.option
@click.pass_obj
def command(
    paths: Paths,
    file: Path | None,
    out: Path | None,
    detailed_exitcode: bool,
    allow_mass_delete: bool,
    allow_lockout: bool,
    allow_side_effects: bool,
    full: bool,
    output: str,
) -> int:
    """Show what an apply would do, why, and by what right. Changes nothing."""
    if out is None:  # a stored plan is for `apply`, which a daemon does by itself
        with daemon.connect(paths, reads=True) as found:
            if found is not None and found.serves(file):
                made = found.plan(
                    output,
                    allow_mass_delete=allow_mass_delete,
                    allow_lockout=allow_lockout,
                    allow_side_effects=allow_side_effects,
                    full=full,
                )
                if made.waiting:
                    print(made.waiting, file=sys.stderr)
                daemon.show(made.data, output)
                return _code(made.unknown, made.changes and detailed_exitcode)
    from holdfast.cli import operator, show
    from holdfast.cli.hold import say_waiting
    from holdfast.cli.load import load
    from holdfast.runtime.preview import Showing, look

    say_waiting(paths)
    loaded = load(paths, file, programs=True)
    seen = look(
        paths,
        loaded,
        allow_mass_delete=allow_mass_delete,
        allow_side_effects=allow_side_effects,
        differences=Showing.asked(full),
    )
    plan = operator.guarded(seen.plan, loaded, allow=allow_lockout, trial=False)
    about = loaded.about(paths)
    show.plan(plan, about, output, sys.stdout, seen.differences)
    if out is not None:
        from holdfast.cli import planfile

        planfile.write(out, plan, about)
        if output == "table":
            click.echo(f"Stored in {out}; `holdfast apply {out}` carries out exactly this.")
    return _code(bool(plan.unknown), bool(plan.changes) and detailed_exitcode)


def _code(unknown: bool, changes: bool) -> int:
    if unknown:
        return Exit.FAILED
    return Exit.CHANGES if changes else Exit.OK
