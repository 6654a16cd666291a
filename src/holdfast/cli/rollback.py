"""`holdfast rollback`: back to a configuration that was applied before."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import arguments, daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import say
from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger

if TYPE_CHECKING:
    from holdfast.agent.load import Loaded
    from holdfast.cli import run
    from holdfast.resources.router import Router


@click.command()
@click.option("--to", "number", metavar="N", type=click.IntRange(min=1), help="To this generation.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--overwrite", is_flag=True, help="Lose edits of its files that were never applied.")
@arguments.allow_mass_delete
@arguments.allow_lockout
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
        wait=wait,
        asked_for=True,
    )
    return _go_back(request, number, overwrite=overwrite)


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


@dataclass(frozen=True, slots=True)
class _Past:
    number: int
    place: Path  # of the Router document, where it is put again
    router: Router
    files: Mapping[Path, bytes]  # those that say something else now


def _go_back(request: run.Request, number: int | None, *, overwrite: bool) -> int:
    from dataclasses import replace

    from holdfast.agent.confirm import window as confirm
    from holdfast.cli import run

    with daemon.connect(request.paths, reads=True) as found:
        served = found.file if found is not None else None
    with Ledger.read(request.paths) as ledger:
        confirm.refuse_waiting(ledger)
        past = _past(request.paths, ledger, number or _last(ledger), served)
        if not overwrite:
            _refuse_lost(ledger, past)
    if request.ask:
        run.agree(request, _loaded(request.paths, past))
    with Ledger.open(request.paths, command=request.command, wait=request.wait) as ledger:
        ledger.lift_latch(past.router.files)
    _write(past)
    say([f"{place} is as in generation {past.number} again" for place in past.files], sys.stderr)
    return run.run(replace(request, file=past.place, ask=False))


def _last(ledger: Ledger) -> int:
    """The last one before the present that converged and says something else: a candidate that was
    confirmed is there twice, under its own name and in the place of the served file."""
    from holdfast.agent.confirm import stored

    now = stored.in_force(ledger)
    for one in ledger.generations():
        if now is not None and one.number < now.number and one.state == "converged":
            if sorted(file.sha256 for file in one.files) == sorted(f.sha256 for f in now.files):
                continue
            return one.number
    raise Refused("no generation before the present one converged; say which one with --to")


def _past(paths: Paths, ledger: Ledger, number: int, served: Path | None) -> _Past:
    from holdfast.agent.confirm import stored
    from holdfast.agent.confirm import window as confirm

    place, router = stored.load_generation(ledger, number, paths.root, served or paths.config)
    files = {Path(path): content for path, content in stored.startup_files(ledger, number).items()}
    if served is not None and place != served:
        # A candidate that took the place of the served file was stored under its own name.
        confirm.refuse_misplaced(router, served, paths.root)
        files[served] = files.pop(place)
        place = served
    other = {path: content for path, content in files.items() if _now(path) != content}
    return _Past(number, place, router, other)


def _now(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _refuse_lost(ledger: Ledger, past: _Past) -> None:
    """What was applied once is in the ledger. What was not would be lost."""
    import hashlib

    kept = {file.sha256 for one in ledger.generations() for file in one.files}
    for path in past.files:
        now = _now(path)
        if now is not None and hashlib.sha256(now).hexdigest() not in kept:
            raise Refused(
                f"nothing was touched: {path} was edited and never applied, and that would be"
                " lost; keep a copy, or say --overwrite"
            )


def _loaded(paths: Paths, past: _Past) -> Loaded:
    from holdfast.agent.load import of_router

    return of_router(paths, past.place, past.router, lambda _warning: None)


def _write(past: _Past) -> None:
    from holdfast.host import rooted

    for path, content in past.files.items():
        place = path.resolve()
        with rooted.parent(Path("/"), str(place), create=True) as (folder, name):
            there = rooted.look(folder, name)
            mode = there.mode if there is not None else 0o600
            rooted.replace(folder, name, content, mode, there)
