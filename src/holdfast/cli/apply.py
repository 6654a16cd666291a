"""`holdfast apply`."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli import arguments, output
from holdfast.paths import Paths


@click.command()
@click.argument("file", metavar="[FILE|PLAN]", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and stop.")
@arguments.allow_mass_delete
@arguments.allow_lockout
@arguments.wait
@output.option
@click.pass_obj
def command(
    paths: Paths,
    file: Path | None,
    yes: bool,
    dry_run: bool,
    allow_mass_delete: bool,
    allow_lockout: bool,
    wait: float,
    output: str,
) -> int:
    """Make the host as declared: plan, ask, apply, look again, record.

    Given a PLAN stored by `holdfast plan --out`, carries out exactly that plan without asking,
    and refuses if the configuration or the host has changed since.
    """
    from holdfast.cli import run

    return run.run(
        run.Request(
            paths,
            file,
            command="holdfast apply",
            output=output,
            ask=not yes,
            dry_run=dry_run,
            allow_mass_delete=allow_mass_delete,
            allow_lockout=allow_lockout,
            wait=wait,
        )
    )
