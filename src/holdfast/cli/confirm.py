"""`holdfast confirm`: what was applied on trial stays."""

from __future__ import annotations

import sys

import click

from holdfast.cli import arguments, daemon
from holdfast.cli.exit import Exit
from holdfast.paths import Paths


@click.command()
@click.argument("generation", required=False, type=arguments.NUMBER)
@arguments.wait
@click.pass_obj
def command(paths: Paths, generation: int | None, wait: float) -> int:
    """Keep what `apply --confirm-within` applied. Beside a daemon, the text of the candidate takes
    the place of the file that it serves.

    With GENERATION, only if that is the one that waits. It counts when this was asked, however
    long another process keeps the ledger after that.
    """
    from holdfast.runtime.confirm import trial as confirm
    from holdfast.runtime.confirm.confirm_request import asking
    from holdfast.state.ledger import Ledger

    with daemon.connect(paths, reads=False) as found:
        if found is not None:
            return _ask(found, generation)
    with (
        asking(paths, generation or 0) as asked,
        Ledger.open(paths, command="holdfast confirm", wait=wait, durable=True) as ledger,
    ):
        late = confirm.settle(paths, ledger)
        if late is not None:
            print(late.told(), file=sys.stderr)
        kept = confirm.confirm(ledger, asked)
    return _tell(kept.generation, kept.file, kept.installs)


def _ask(found: daemon.Daemon, generation: int | None) -> int:
    from holdfast.api import holdfast_pb2 as pb

    request = pb.ConfirmRequest(generation=generation or 0)
    reply = found.client.ask("Router.Confirm", request, pb.ConfirmReply, daemon.CHANGE_S)
    return _tell(reply.generation, reply.file, reply.installed)


def _tell(generation: int, file: str, installed: str) -> int:
    print(f"Generation {generation} is confirmed.")
    if installed:
        print(f"{file} took the place of {installed}.")
    return Exit.OK
