"""The command: a child process in its own namespaces plays the script."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

from holdfast.cli import namespaces
from holdfast.cli.demo import script
from holdfast.cli.exit import Exit
from holdfast.errors import HoldfastError
from holdfast.host import namespace_holder


@click.command()
def command() -> int:
    """See Holdfast at work, in a private network namespace made for it.

    Plans and applies a small router, lets others interfere, repairs, cleans up, adopts and
    explains, by the very commands it shows. The machine's own network and files are not touched.
    Works as root, and as a normal user where user namespaces are allowed.
    """
    if shutil.which("ip") is None:
        raise HoldfastError(
            "the demo plays other programs with `ip`, which is not installed: install iproute2"
        )
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os._exit(_play(Path(folder)))
        return namespaces.wait(child)


def _play(folder: Path) -> int:
    """In the child: whatever happens, it ends here and not in a copy of the parent."""
    try:
        namespaces.enter()
    except OSError as error:
        print(
            f"holdfast: a private network namespace could not be made: {error.strerror}."
            f" {namespaces.REFUSED}",
            file=sys.stderr,
        )
        return Exit.FAILED
    try:
        code = script.play(folder)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.PIPE
    except Exception as error:
        print(f"holdfast: the demo stopped: {error}", file=sys.stderr)
        return Exit.FAILED
    finally:
        namespace_holder.forget()
    return code
