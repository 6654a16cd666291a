"""`holdfast validate`."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli import arguments
from holdfast.cli.terminal import counted
from holdfast.paths import Paths


@click.command()
@arguments.file
@click.pass_obj
def command(paths: Paths, file: Path | None) -> None:
    """Check a configuration: every problem at once, each with its line and column.

    Reads the configuration alone; looks at no host and needs no rights.
    """
    from holdfast.cli.load import load

    loaded = load(paths, file, facts=False)
    artifacts = sum(_size(intent) for intent in loaded.desired.intents)
    resources = counted(len(loaded.router.resources), "resource")
    path = loaded.path if file is None else file
    click.echo(f"{path}: valid, {resources} declaring {counted(artifacts, 'artifact')}")


def _size(intent: object) -> int:
    from holdfast.engine.intent import BulkIntent

    return len(intent.batch) if isinstance(intent, BulkIntent) else 1
