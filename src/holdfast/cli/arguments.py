"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path

import click

file = click.argument("file", required=False, type=click.Path(path_type=Path))

# Longer than a pass over 100 000 routes takes; a pass of another process is worth waiting for.
WAIT_S = 10.0

wait = click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=WAIT_S,
    show_default=True,
    help="How long to wait for another process that holds the ledger.",
)

allow_lockout = click.option(
    "--allow-lockout",
    is_flag=True,
    help="Let it cut the connection that you are logged in over.",
)

allow_mass_delete = click.option(
    "--allow-mass-delete",
    is_flag=True,
    help="Let it delete a large share of what is owned, or all of it.",
)
