"""`holdfast validate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from holdfast.cli import arguments, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, counted, say
from holdfast.dataclass import asdict, dataclass
from holdfast.errors import ConfigError, Problem
from holdfast.paths import Paths


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=arguments.File())
@click.option(
    "--on-host",
    is_flag=True,
    help="This is the router: secrets and programs that are not here are errors.",
)
@output.option
@click.pass_obj
def command(paths: Paths, files: tuple[Path, ...], on_host: bool, output: str) -> int:
    """Check configurations: every problem at once, each with its line and column.

    Reads the files alone; looks at no host and needs no rights, so that it runs on any machine.
    Secrets in files of their own and programs that are not there are warned of; `--on-host`,
    `plan` and `apply` want them.
    """
    given = files or (arguments.default_file(),)
    checked = [_check(paths, file, on_host=on_host) for file in given]
    if output == "table":
        for one in checked:
            _tell(one, alone=len(checked) == 1)
    else:
        _write(checked, output)
    return Exit.OK if all(one.valid for one in checked) else Exit.INVALID


@dataclass(frozen=True, slots=True)
class Checked:
    file: str
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()
    resources: int = 0
    artifacts: int = 0

    @property
    def valid(self) -> bool:
        return not self.errors


def _check(paths: Paths, file: Path | None, *, on_host: bool) -> Checked:
    from holdfast.runtime.load import load
    from holdfast.runtime.needed_programs import lacking

    name = str(paths.config if file is None else file)
    try:
        loaded = load(paths, file, lambda _warning: None, facts=False, on_host=on_host)
    except ConfigError as error:
        return Checked(name, error.problems)
    missing = lacking(paths, loaded)
    return Checked(
        name,
        missing if on_host else (),
        loaded.router.warnings if on_host else (*loaded.router.warnings, *missing),
        len(loaded.router.resources),
        sum(_size(intent) for intent in loaded.desired.intents),
    )


def _tell(checked: Checked, *, alone: bool) -> None:
    style = Style.of(sys.stderr)
    say((f"{style('warning:', 'yellow')} {warning}" for warning in checked.warnings), sys.stderr)
    say((str(problem) for problem in checked.errors), sys.stderr)
    if not checked.valid:
        found = counted(len(checked.errors), "problem")
        what = "the configuration" if alone else checked.file
        label = style("holdfast:", "bold", "red")
        say([f"{label} {what} is invalid ({found}); nothing was touched"], sys.stderr)
        return
    resources = counted(checked.resources, "resource")
    artifacts = counted(checked.artifacts, "artifact")
    click.echo(f"{checked.file}: valid, {resources} declaring {artifacts}")


def _write(checked: Sequence[Checked], form: str) -> None:
    documents: list[dict[str, Any]] = [
        {
            "file": one.file,
            "valid": one.valid,
            "resources": one.resources,
            "artifacts": one.artifacts,
            "errors": [asdict(problem) for problem in one.errors],
            "warnings": [asdict(problem) for problem in one.warnings],
        }
        for one in checked
    ]
    valid = all(one.valid for one in checked)
    output.write([("valid", valid), ("files", documents)], form, sys.stdout)


def _size(intent: object) -> int:
    from holdfast.engine.intent import BulkIntent

    return len(intent.batch) if isinstance(intent, BulkIntent) else 1
