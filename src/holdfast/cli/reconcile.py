"""`holdfast reconcile`: the same pass as `apply`, without a question."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli import arguments, output
from holdfast.paths import Paths


@click.command()
@arguments.file
@click.option("--once", is_flag=True, help="Run one pass, then stop.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and stop.")
@arguments.allow_mass_delete
@arguments.allow_lockout
@arguments.allow_side_effects
@arguments.wait
@output.option
@click.pass_obj
def command(
    paths: Paths,
    file: Path | None,
    once: bool,
    dry_run: bool,
    allow_mass_delete: bool,
    allow_lockout: bool,
    allow_side_effects: bool,
    wait: float,
    output: str,
) -> int:
    """Run one pass without asking: what `holdfast apply --yes` does."""
    from holdfast.cli import run

    if not once:
        raise click.UsageError("reconcile runs one pass at a time: say --once")
    return run.run(
        run.Request(
            paths,
            file,
            command="holdfast reconcile --once",
            output=output,
            ask=False,
            dry_run=dry_run,
            allow_mass_delete=allow_mass_delete,
            allow_lockout=allow_lockout,
            allow_side_effects=allow_side_effects,
            wait=wait,
        )
    )
