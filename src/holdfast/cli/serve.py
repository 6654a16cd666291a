"""`holdfast serve`: the daemon, in the foreground."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from holdfast.agent.web.address import DEFAULT, parse_listen
from holdfast.cli import arguments
from holdfast.cli.exit import Exit
from holdfast.paths import Paths
from holdfast.runtime.log import FORMS, log
from holdfast.web.address import Listen


def _listen(_context: click.Context, _parameter: click.Parameter, text: str) -> Listen | None:
    try:
        return None if text == "none" else parse_listen(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@arguments.file
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    default=DEFAULT.shown,
    show_default=True,
    callback=_listen,
    help="Where to serve the console, the metrics and /healthz; `none` for nowhere.",
)
@click.option(
    "--log",
    "form",
    type=click.Choice(FORMS),
    default=FORMS[0],
    show_default=True,
    help="How lines of the log are written; `journal` leaves the time to systemd.",
)
@click.pass_obj
def command(paths: Paths, file: Path | None, listen: Listen | None, form: str) -> int:
    """Keep the host as declared: run a pass at once, whenever another program changes something of
    what is declared, when a fact changes (a lease, a delegated prefix, the verdict of a health
    check), when the file changes or SIGHUP comes, and every 30 s.

    Runs in the foreground and writes its log to stderr. SIGTERM ends it, after the pass that is
    under way, and leaves the network as it is. A file that is invalid is said and changes nothing:
    the last one that was valid stays in force.
    """
    import asyncio
    import os

    from holdfast.agent.instance_lock import only_instance
    from holdfast.agent.loop import Agent
    from holdfast.agent.web.console import console
    from holdfast.api import inherited, limits, sockets

    # Commands do without; this one lives for longer than a moment.
    gc.enable()
    gc.freeze()
    path = (paths.config if file is None else file).absolute()

    handed = inherited.take(os.environ)
    limits.raise_descriptors()
    with log(form) as say, only_instance(paths) as held:
        if not handed:
            sockets.refuse_held(paths)
        shown = None if listen is None else console(paths, listen)
        agent = Agent(paths, path, say, console=shown, inherited=handed, lock=held)
        asyncio.run(agent.run())
    return Exit.OK
