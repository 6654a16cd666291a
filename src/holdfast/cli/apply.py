"""`holdfast apply`."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli import arguments, output
from holdfast.paths import Paths


@click.command()
@click.argument(
    "file",
    metavar="[FILE|PLAN]",
    required=False,
    type=arguments.File(),
    envvar=arguments.FILE_VARIABLE,
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@arguments.dry_run
@click.option(
    "--confirm-within",
    metavar="TIME",
    type=arguments.Within(),
    default=0.0,
    help="Take everything back unless `holdfast confirm` comes in time: 90s, 2m, 1h.",
)
@arguments.allow_mass_delete
@arguments.allow_lockout
@arguments.allow_side_effects
@arguments.full
@arguments.wait
@output.option
@click.pass_obj
def command(
    paths: Paths,
    file: Path | None,
    yes: bool,
    dry_run: bool,
    confirm_within: float,
    allow_mass_delete: bool,
    allow_lockout: bool,
    allow_side_effects: bool,
    full: bool,
    wait: float,
    output: str,
) -> int:
    """Make the host as declared: plan, ask, apply, look again, record.

    Given a PLAN stored by `holdfast plan --out`, carries out exactly that plan without asking,
    and refuses if the configuration or the host has changed since.

    With --confirm-within, the state before is stored before the first change. The default gateway,
    the targets of `spec.confirm` and your own connection are tried before and after; if one of
    them stops working, or nobody confirms in time, everything goes back, also if this terminal
    is gone or the machine was booted anew. Beside a daemon FILE may be another than the one that
    it serves, and takes its place once confirmed.
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
            allow_side_effects=allow_side_effects,
            wait=wait,
            confirm_within=confirm_within,
            full=full,
            asked_for=True,
        )
    )
