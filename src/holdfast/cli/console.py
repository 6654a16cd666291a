"""`holdfast console`."""

from __future__ import annotations

import html
import os
import sys
from pathlib import Path

import click

from holdfast.cli import daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, say
from holdfast.errors import HoldfastError
from holdfast.paths import Paths

_NO_DAEMON = (
    "no daemon runs here, and the console is its own: `systemctl start holdfast`, or `holdfast"
    " serve` in another terminal"
)


@click.command()
@click.option("--open", "opens", is_flag=True, help="Open it in the browser of this desktop.")
@output.option
@click.pass_obj
def command(paths: Paths, opens: bool, output: str) -> int:
    """Print the address of the console, with the key that opens it.

    The pages show what the socket for reading tells, and are for those who may open it: root and
    the groups `holdfast` and `holdfast-ro`. A browser keeps the key until it is closed. The key is
    good until the next boot; keep the address to yourself.
    """
    with daemon.connect(paths, reads=True) as found:
        if found is None:
            raise HoldfastError(_NO_DAEMON)
        from holdfast.api import holdfast_pb2 as pb

        reply = found.client.ask(
            "Router.Console", pb.ConsoleRequest(), pb.ConsoleReply, daemon.READ_S
        )
    if reply.silent:
        say([f"{Style.of(sys.stderr)('warning:', 'yellow')} {reply.silent}"], sys.stderr)
    if opens:
        _open(reply.address)
    elif output == "table":
        print(reply.address)
    else:
        from holdfast.cli.output import write

        write({"address": reply.address}.items(), output, sys.stdout)
    return Exit.OK


def _open(address: str) -> None:
    """By a file that leads there: the words of a browser's command are there for all to read."""
    import webbrowser

    from holdfast.cli import private_file

    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if not folder:
        raise HoldfastError(
            "there is no desktop here (XDG_RUNTIME_DIR is not set): open the address that"
            " `holdfast console` prints, through `ssh -L 9473:127.0.0.1:9473` from elsewhere"
        )
    place = Path(folder) / "holdfast-console.html"
    refresh = f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">'
    private_file.write(place, [f"<!doctype html>\n<title>Holdfast</title>\n{refresh}\n"])
    if not webbrowser.open(place.as_uri()):
        raise HoldfastError("no browser could be started: open the address by hand")
