"""`holdfast serve`: the daemon, in the foreground."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

import click

from holdfast.cli import arguments
from holdfast.cli.exit import Exit
from holdfast.paths import Paths


@click.command()
@arguments.file
@click.pass_obj
def command(paths: Paths, file: Path | None) -> int:
    """Keep the host as declared: run a pass at once, whenever a fact changes (a lease, a delegated
    prefix, the verdict of a health check), when the file changes or SIGHUP comes, and every 30 s.

    Runs in the foreground and writes its log to stderr. SIGTERM ends it, after the pass that is
    under way, and leaves the network as it is. A file that is invalid is said and changes nothing:
    the last one that was valid stays in force.
    """
    import asyncio

    from holdfast.agent.alone import alone
    from holdfast.agent.loop import Agent

    # Commands do without; this one lives for longer than a moment.
    gc.enable()
    gc.freeze()
    path = (paths.config if file is None else file).absolute()

    def say(line: str) -> None:
        now = time.time()
        clock = time.strftime("%H:%M:%S", time.localtime(now))
        print(f"{clock}.{int(now % 1 * 1000):03d} {line}", file=sys.stderr, flush=True)

    with alone(paths):
        asyncio.run(Agent(paths, path, say).run())
    return Exit.OK
