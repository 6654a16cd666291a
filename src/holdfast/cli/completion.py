"""`holdfast completion`."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> None:
    """Print a completion script for a shell.

    For bash: `holdfast completion bash > /etc/bash_completion.d/holdfast`.
    """
    from click.shell_completion import get_completion_class

    from holdfast.cli.main import command as holdfast

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(holdfast, {}, "holdfast", "_HOLDFAST_COMPLETE").source())
