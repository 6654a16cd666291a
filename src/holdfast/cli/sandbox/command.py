"""`holdfast try`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

from holdfast.cli import arguments, namespaces
from holdfast.cli.exit import Exit
from holdfast.errors import ConfigError, HoldfastError
from holdfast.paths import Paths


@click.command()
@arguments.file
@click.pass_obj
def command(paths: Paths, file: Path | None) -> int:
    """Try a configuration in a throwaway world, and see what clients would get.

    Links that the file expects to exist are stood in for; behind those that lead to a provider
    stands one that gives addresses and answers names, behind the others a client. The file is
    planned and applied there, with real daemons, and everything is removed in the end. The
    machine's own network and files are not touched.
    """
    path = (paths.config if file is None else file).absolute()
    if shutil.which("ip") is None:
        raise HoldfastError("`try` lays links with `ip`, which is not installed: install iproute2")
    with tempfile.TemporaryDirectory(prefix="holdfast-try-") as folder:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os._exit(_play(path, Path(folder)))
        return namespaces.wait(child)


def _play(file: Path, folder: Path) -> int:
    """In the child: whatever happens, it ends here and not in a copy of the parent."""
    try:
        namespaces.enter(processes=True)
    except OSError as error:
        print(
            f"holdfast: private namespaces could not be made: {error.strerror}."
            f" {namespaces.REFUSED}",
            file=sys.stderr,
        )
        return Exit.FAILED
    try:
        return namespaces.run_as_init(lambda: _script(file, folder))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _script(file: Path, folder: Path) -> int:
    from holdfast.cli.main import say_error
    from holdfast.cli.sandbox import script

    try:
        return script.play(file, folder)
    except (ConfigError, HoldfastError) as error:
        return say_error(error)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        sys.stdout.flush()
