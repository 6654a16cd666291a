"""`holdfast rollback`: back to a configuration that was applied before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli import arguments, daemon, output
from holdfast.cli.exit import Exit
from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger

if TYPE_CHECKING:
    from holdfast.cli import run


@click.command()
@click.option("--to", "number", metavar="N", type=arguments.NUMBER, help="To this generation.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--overwrite", is_flag=True, help="Lose edits of its files that were never applied.")
@arguments.allow_mass_delete
@arguments.allow_lockout
@arguments.allow_side_effects
@arguments.wait
@output.option
@click.pass_obj
def command(
    paths: Paths,
    number: int | None,
    yes: bool,
    overwrite: bool,
    allow_mass_delete: bool,
    allow_lockout: bool,
    allow_side_effects: bool,
    wait: float,
    output: str,
) -> int:
    """Go back to an earlier configuration: the files of generation N are put in place again, and
    applied. Without --to, to the last one before the present that converged.

    While a generation waits to be confirmed, takes that one back at once.
    """
    from holdfast.cli import run

    if number is None and _take_back(paths, wait):
        return Exit.OK
    request = run.Request(
        paths,
        None,
        command="holdfast rollback",
        output=output,
        ask=not yes,
        dry_run=False,
        allow_mass_delete=allow_mass_delete,
        allow_lockout=allow_lockout,
        allow_side_effects=allow_side_effects,
        wait=wait,
        asked_for=True,
    )
    return _go_back(request, number or 0, overwrite=overwrite)


def _take_back(paths: Paths, wait: float) -> bool:
    from holdfast.agent.confirm import revert

    with daemon.connect(paths, reads=False) as found:
        if found is not None:
            return _ask(found)
    with Ledger.read(paths) as ledger:
        if ledger.waiting() is None:
            return False
    with Ledger.open(paths, command="holdfast rollback", wait=wait) as ledger:
        done = revert.revert(paths, ledger, "it was taken back by `holdfast rollback`")
    if done is None:
        return False
    if not done.finished:
        raise Refused(done.told())
    _tell(done.told())
    return True


def _ask(found: daemon.Daemon) -> bool:
    from holdfast.api import holdfast_pb2 as pb

    request = pb.TakeBackRequest()
    reply = found.client.ask("Router.TakeBack", request, pb.TakeBackReply, daemon.CHANGE_S)
    if reply.waited:
        _tell(reply.told)
    return reply.waited


def _tell(told: str) -> None:
    print(f"{told[0].upper()}{told[1:]}.")


def _go_back(request: run.Request, number: int, *, overwrite: bool) -> int:
    from holdfast.agent.confirm import going_back
    from holdfast.agent.load import of_router
    from holdfast.cli import daemon_run, run
    from holdfast.dataclass import replace

    with daemon.connect(request.paths, reads=False) as found:
        if found is not None:
            return daemon_run.go_back(request, found, number, overwrite=overwrite)
    with Ledger.read(request.paths) as ledger:
        back = going_back.find(request.paths, ledger, number, None, overwrite=overwrite)
    loaded = of_router(request.paths, back.place, back.router, lambda _warning: None)
    # What is refused is refused before a file is written.
    run.check(request, loaded)
    going_back.put(back)
    daemon_run.say_placed(back.number, map(str, back.files))
    return run.run(replace(request, file=back.place, ask=False))
