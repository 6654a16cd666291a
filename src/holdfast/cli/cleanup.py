"""`holdfast cleanup`: remove what is owned, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import arguments, output
from holdfast.cli.exit import Exit
from holdfast.errors import Refused
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.engine.intent import Intent


@click.command()
@arguments.file
@click.option("--yes", is_flag=True, help="Do not ask.")
@arguments.dry_run
@arguments.allow_lockout
@arguments.allow_side_effects
@arguments.full
@arguments.wait
@output.option
@click.pass_obj
def command(
    paths: Paths,
    file: Path | None,
    yes: bool,
    dry_run: bool,
    allow_lockout: bool,
    allow_side_effects: bool,
    full: bool,
    wait: float,
    output: str,
) -> int:
    """Remove everything that is provably Holdfast's, as if nothing were declared any more.

    What others made is not touched, nor what was adopted and has changed since. Links that were
    made go too, unless others have put something of theirs on them. Settings are set back where
    their resources asked for that. FILE is read for the tag alone; it stays as it is,
    and so does the ledger with its history. `holdfast serve` must not be running: it would put
    everything back.
    """
    import sys

    from holdfast.cli import daemon, run, show
    from holdfast.engine.intent import Desired
    from holdfast.resources.facts import NOTHING_KNOWN
    from holdfast.resources.router import Ownership, Router
    from holdfast.runtime.load import Loaded
    from holdfast.runtime.startup import Startup

    with daemon.connect(paths, reads=True) as found:
        if found is not None and not dry_run:
            raise Refused(
                "`holdfast serve` runs and would put everything back: end it first"
                " (systemctl disable --now holdfast)"
            )
    path = (paths.config if file is None else file).absolute()
    known = Startup(paths, path, writes=False).read(asked=True).router
    ownership = known.ownership if known is not None else Ownership()
    nothing = Router("cleanup", (), ownership, ())
    desired = Desired(tuple(_made_links(paths)))
    loaded = Loaded(path, nothing, str(paths.root).rstrip("/"), NOTHING_KNOWN, desired)
    request = run.Request(
        paths,
        file,
        "holdfast cleanup",
        output,
        ask=not yes,
        dry_run=dry_run,
        allow_mass_delete=True,
        allow_lockout=allow_lockout,
        allow_side_effects=allow_side_effects,
        wait=wait,
        full=full,
        leaves=True,
    )
    if dry_run:
        return run.dry_run(request, loaded)
    shown = run.agree(request, loaded) if request.ask else ""
    agreed = run.AgreedPass(request, loaded, None, shown)
    done = agreed.run()
    show.report(done, agreed.generation, output, sys.stdout)
    return Exit.OK if done.converged else Exit.FAILED


def _made_links(paths: Paths) -> Iterator[Intent]:
    """A link is not removed because its declaration is gone: too much may hang on it. Here its end
    is asked for, and what hangs on it is looked at first, as for one declared to be absent."""
    from holdfast.engine.artifact import Artifact
    from holdfast.engine.claim import Provenance
    from holdfast.engine.intent import Action, Intent
    from holdfast.engine.kinds import KINDS
    from holdfast.state.ledger import Ledger

    with Ledger.read(paths) as ledger:
        claims = ledger.claims()
    for claim in claims.values():
        stays = not KINDS[claim.key.kind].deletes_orphans
        if stays and claim.provenance is Provenance.CREATED:
            artifact = Artifact(claim.key, claim.fields)
            yield Intent(claim.owners[0], artifact, claim.origin, Action.DELETE)
