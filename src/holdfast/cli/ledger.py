"""`holdfast ledger`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.characters import escaped_json
from holdfast.cli import arguments, output, private_file
from holdfast.cli.exit import Exit
from holdfast.cli.hold import hold
from holdfast.cli.terminal import Style, counted, say
from holdfast.config import regular_file
from holdfast.errors import HoldfastError
from holdfast.paths import Paths
from holdfast.render import artifact_words
from holdfast.render import claim as claim_story
from holdfast.state.ledger import Ledger

if TYPE_CHECKING:
    from holdfast.engine.claim import Claim
    from holdfast.state.generations import Generation


# It holds fifty configurations with all their files.
_LARGEST_EXPORT = 4 * regular_file.LARGEST


@click.group()
def command() -> None:
    """Look into the ledger, export and import it, check it."""


@command.command()
@output.option
@click.pass_obj
def show(paths: Paths, output: str) -> None:
    """List claims and generations."""
    from holdfast.cli.output import write

    with Ledger.read(paths) as ledger:
        claims, generations = list(ledger.claims().values()), ledger.generations()
    if output == "table":
        say(_lines(claims, generations, Style.of(sys.stdout)), sys.stdout)
    else:
        write(_members(claims, generations), output, sys.stdout)


@command.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def export(paths: Paths, file: Path | None) -> None:
    """Write the whole ledger as JSON, to FILE or to stdout (-)."""
    with Ledger.read(paths) as ledger:
        text = escaped_json(json.dumps(ledger.export(), indent=2, ensure_ascii=False)) + "\n"
    if file is None or file == Path("-"):
        click.echo(text, nl=False)
        return
    private_file.write(file, [text])


@command.command(name="import")
@click.argument("file", type=arguments.File())
@click.option("--replace", is_flag=True, help="Drop what the ledger holds now.")
@click.pass_obj
def import_(paths: Paths, file: Path, replace: bool) -> None:
    """Read an export back, or a ledger in the format of the reference system.

    Everything in FILE is checked first. Claims that differ from those in the ledger are refused
    without --replace.
    """
    try:
        data = json.loads(regular_file.read_handed(file, _LARGEST_EXPORT))
    except RecursionError:
        raise HoldfastError(f"{file}: nested too deep; nothing was changed") from None
    except ValueError as error:
        raise HoldfastError(f"{file}: not JSON: {error}; nothing was changed") from None
    if not isinstance(data, dict):
        raise HoldfastError(f"{file}: not an export of a ledger; nothing was changed")
    from holdfast.host.epoch import read_epoch
    from holdfast.host.services.foreign import claimable

    with hold(paths, "holdfast ledger import", arguments.WAIT_S, durable=True) as ledger:
        unit = partial(claimable, paths)
        done = ledger.import_(data, replace=replace, epoch=read_epoch(), unit=unit)
        claims = len(ledger.claims())
    unmapped = (
        f"  no claim on {unmapped.kind} {unmapped.name}: {unmapped.reason}"
        for unmapped in done.unmapped
    )
    say(unmapped, sys.stdout)
    if done.history_kept:
        click.echo("  the ledger has generations and events of its own; those of the file are left")
    click.echo(f"Imported {file}; the ledger holds {counted(claims, 'claim')}.")


@command.command()
@click.pass_obj
def check(paths: Paths) -> int:
    """Look for anything wrong with the ledger: its file, its rows, its permissions."""
    with Ledger.read(paths) as ledger:
        problems, trouble = ledger.check(), ledger.trouble
    if trouble:
        say([trouble], sys.stdout)
    say(problems, sys.stdout)
    if problems:
        return Exit.FAILED
    known = "sound" if paths.ledger.exists() else "there is none yet"
    click.echo(f"{paths.ledger}: {known}")
    return Exit.OK


def _lines(claims: list[Claim], generations: list[Generation], style: Style) -> Iterator[str]:
    if not claims and not generations:
        yield "The ledger is empty."
        return
    width = max((len(str(claim.key)) for claim in claims), default=0)
    for claim in claims:
        owners = artifact_words.owners(claim.owners)
        state = "" if claim.state == "owned" else f" ({claim.state})"
        said = f"{claim.provenance}{state} {claim.since} for {owners}"
        yield f"{str(claim.key).ljust(width)}  {style(said, 'dim')}"
    if claims and generations:
        yield ""
    for generation in generations:
        files = ", ".join(file.path for file in generation.files) or "nothing declared: a cleanup"
        when = datetime.fromtimestamp(generation.created, UTC)
        said = f"{generation.state}, {when:%Y-%m-%d %H:%M:%S} UTC, {files}"
        yield f"generation {generation.number}: {style(said, 'dim')}"
    yield ""
    yield (
        f"{counted(len(claims), 'claim')}. Routes carry their tag in the kernel and need a claim"
        " only where they were adopted."
    )


def _members(claims: list[Claim], generations: list[Generation]) -> Iterator[tuple[str, Any]]:
    yield "format_version", "1.0"
    yield "claims", map(claim_story.entry, claims)
    yield (
        "generations",
        (
            {
                "number": generation.number,
                "state": generation.state,
                "created": generation.created,
                "finished": generation.finished,
                "files": [{"path": f.path, "sha256": f.sha256} for f in generation.files],
            }
            for generation in generations
        ),
    )
