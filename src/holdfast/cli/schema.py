"""`holdfast schema`."""

from __future__ import annotations

import json

import click


@click.group()
def command() -> None:
    """Describe the configuration for editors."""


@command.command()
def export() -> None:
    """Print the JSON Schema of a Router document.

    Editors that speak the YAML language server protocol take it from a first line such as
    `# yaml-language-server: $schema=router.schema.json`.
    """
    from holdfast.resources.spec.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
