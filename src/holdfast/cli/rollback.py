"""`holdfast rollback`: back to a configuration that was applied before."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from holdfast.cli import arguments, complete, daemon, output
from holdfast.cli.exit import Exit
from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger

if TYPE_CHECKING:
    from holdfast.cli import run


@click.command()
@click.option(
    "--to",
    "number",
    metavar="N",
    type=arguments.NUMBER,
    shell_complete=complete.generations,
    help="To this generation.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@arguments.dry_run
@click.option("--overwrite", is_flag=True, help="Lose edits of its files that were never applied.")
@arguments.allow_mass_delete
@arguments.allow_lockout
@arguments.allow_side_effects
@arguments.full
@arguments.wait
@output.option
@click.pass_obj
def command(
    paths: Paths,
    number: int | None,
    yes: bool,
    dry_run: bool,
    overwrite: bool,
    allow_mass_delete: bool,
    allow_lockout: bool,
    allow_side_effects: bool,
    full: bool,
    wait: float,
    output: str,
) -> int:
    """Go back to an earlier configuration: the files of generation N are put in place again, and
    applied. Without --to, to the last one before the present that converged; where the present one
    did not either, as others hold something of it, to the last that was carried out.

    While a generation waits to be confirmed, takes that one back at once. With --dry-run, shows
    what the way back would change, and changes nothing.
    """
    from holdfast.cli import run

    if number is None and dry_run:
        code = _show_revert(paths, output, full=full)
        if code is not None:
            return code
    elif number is None and _take_back(paths, wait):
        return Exit.OK
    request = run.Request(
        paths,
        None,
        command="holdfast rollback",
        output=output,
        ask=not yes,
        dry_run=dry_run,
        allow_mass_delete=allow_mass_delete,
        allow_lockout=allow_lockout,
        allow_side_effects=allow_side_effects,
        wait=wait,
        asked_for=True,
        full=full,
    )
    return _go_back(request, number or 0, overwrite=overwrite)


def _show_revert(paths: Paths, form: str, *, full: bool) -> int | None:
    """What taking back the generation that waits would do to what is ours; None where none does."""
    from holdfast import __version__
    from holdfast.cli import run, show
    from holdfast.engine.document import About
    from holdfast.runtime.confirm import revert
    from holdfast.runtime.preview import Showing

    with Ledger.read(paths) as ledger:
        waiting = ledger.waiting()
        found = revert.preview(paths, ledger, Showing.asked(full))
    if waiting is None or found is None:
        return None
    plan, differences = found
    about = About(__version__, str(paths.root), waiting.file, ())
    show.plan(plan, about, form, sys.stdout, differences)
    return run.shown(unknown=bool(plan.unknown), refused=bool(plan.refusal))


def _take_back(paths: Paths, wait: float) -> bool:
    from holdfast.runtime.confirm import revert

    with daemon.connect(paths, reads=False) as found:
        if found is not None:
            return _ask(found)
    with Ledger.read(paths) as ledger:
        if ledger.waiting() is None:
            return False
    with Ledger.open(paths, command="holdfast rollback", wait=wait) as ledger:
        reason = "it was taken back by `holdfast rollback`"
        done = revert.revert(paths, ledger, reason, revert.ASKED)
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
    from holdfast.cli import daemon_run, run
    from holdfast.cli.load import warn
    from holdfast.runtime.confirm import rollback
    from holdfast.runtime.load import of_router
    from holdfast.runtime.trusted_configuration import asking

    with daemon.connect(request.paths, reads=request.dry_run) as found:
        if found is not None:
            return daemon_run.go_back(request, found, number, overwrite=overwrite)
    with Ledger.read(request.paths) as ledger:
        back = rollback.find(
            request.paths, ledger, number, None, overwrite=overwrite, also=asking()
        )
    # From the ledger: a file is written once nothing stands against what it says.
    loaded = of_router(request.paths, back.place, back.router, warn)

    def place() -> Callable[[], None]:
        undo = rollback.put(back)
        daemon_run.say_placed(back.number, map(str, back.files))
        return undo

    return run.carry_out(request, loaded, place=place)
