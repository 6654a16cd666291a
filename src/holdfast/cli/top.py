"""`holdfast top`: a live view."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from holdfast.cli import arguments, daemon
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style
from holdfast.paths import Paths


@click.command()
@arguments.file
@click.pass_obj
def command(paths: Paths, file: Path | None) -> int:
    """Watch the router live: resources by phase, drift and repairs, health checks, passes, events.

    `q` leaves; the arrow and page keys scroll the list of resources. Where the output is no
    terminal, it is printed once.
    """
    daemon.refuse_denied(paths)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _print_once(paths, file)
    from holdfast.cli.screen import screen
    from holdfast.cli.top_view import Scrolled, footer, rows
    from holdfast.cli.top_watch import Watch

    scrolled = Scrolled()
    try:
        with screen() as terminal, Watch(paths, file) as watch:
            while True:
                seen = watch.look()
                while True:
                    height = terminal.size[1]
                    shown = rows(seen, height, scrolled)
                    blank = [()] * (height - 1 - len(shown))
                    terminal.draw([*shown, *blank, footer(seen.now)])
                    key = terminal.key(watch.due())
                    if key in ("q", "Q", "\x1b", "\x04"):
                        return Exit.OK
                    scrolled.press(key)
                    if watch.due() <= 0:
                        break
    except KeyboardInterrupt:
        return Exit.OK  # the other way to leave


def _print_once(paths: Paths, file: Path | None) -> int:
    from holdfast.cli.screen import text
    from holdfast.cli.top_view import rows
    from holdfast.cli.top_watch import Watch

    style = Style.of(sys.stdout)
    with Watch(paths, file) as watch:
        seen = watch.look()
    for row in rows(seen, 0):
        print(text(row, sys.maxsize, style))
    return Exit.OK if seen.status is not None else Exit.FAILED
