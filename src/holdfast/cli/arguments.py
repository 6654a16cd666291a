"""Arguments that several commands take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from holdfast.config.regular_file import is_handed

FILE_VARIABLE = "HOLDFAST_FILE"


class File(click.Path):
    """A file to read; `-` is what the command is handed on its standard input."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        if value == "-":
            return Path("/dev/stdin")
        # Of what the command was handed the descriptor is read, whoever may open it by its name.
        return Path(value) if is_handed(Path(value)) else super().convert(value, param, ctx)


def default_file() -> Path | None:
    """Of a command that takes one some other way than by `file`."""
    named = os.environ.get(FILE_VARIABLE)
    return Path(named) if named else None


file = click.argument("file", required=False, type=File(), envvar=FILE_VARIABLE)

# Longer than a pass over 100 000 routes takes; a pass of another process is worth waiting for.
WAIT_S = 10.0


class _Seconds(click.FloatRange):
    name = "number of seconds"


wait = click.option(
    "--wait",
    metavar="SECONDS",
    type=_Seconds(min=0),
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


allow_side_effects = click.option(
    "--allow-side-effects",
    is_flag=True,
    help="Let it make changes that others lose routes, addresses or the like by.",
)


dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and stop.")

full = click.option(
    "--full",
    is_flag=True,
    help="Show all that differs in contents, and the content of what comes and goes.",
)


class Number(click.ParamType[int]):
    """Of a generation or an event: as large as the ledger can hold, and as fits into a request."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not value.isdecimal() or not 0 < int(value) < 2**63:
            self.fail(f"{value!r} is not a number from 1 on", param, ctx)
        return int(value)


NUMBER = Number()


class Within(click.ParamType[float]):
    """How long something waits to be confirmed, in seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        from holdfast.resources.spec.durations import duration
        from holdfast.runtime.confirm.trial import LONGEST_S, SHORTEST_S

        try:
            return float(duration(SHORTEST_S, LONGEST_S).read(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
