"""`holdfast adopt`: take over what exists already, as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import arguments, output
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.cli.terminal import Style
    from holdfast.engine.claim import Claim
    from holdfast.engine.plan import Candidate
    from holdfast.runtime.load import Loaded


@click.command()
@arguments.file
@click.option("--candidates", "look", is_flag=True, help="Show what could be adopted.")
@click.option("--apply", "take", is_flag=True, help="Record all of it in the ledger as adopted.")
@click.option(
    "--recover",
    "marked",
    is_flag=True,
    help="Instead: what carries Holdfast's mark and is not in this ledger, declared or not, and"
    " with it the network namespace. After a lost ledger, or to take over from another --root.",
)
@output.option
@click.pass_obj
def command(
    paths: Paths, file: Path | None, look: bool, take: bool, marked: bool, output: str
) -> int:
    """Take over declared objects that exist already and were made by somebody else.

    Changes only the ledger, never the host. What differs from its declaration is not adopted,
    and then nothing is: bring the two in line first. Say either --candidates or --apply; with
    --recover alone, what it would take is shown.
    """
    from holdfast.cli.load import load

    if (look and take) or not (look or take or marked):
        raise click.UsageError("adopt needs exactly one of --candidates and --apply")
    loaded = load(paths, file)
    if marked:
        from holdfast.cli import recover

        return (recover.take if take else recover.preview)(paths, loaded, output)
    return _apply(paths, loaded, output) if take else _candidates(paths, loaded, output)


def _candidates(paths: Paths, loaded: Loaded, form: str) -> int:
    from holdfast.runtime.preview import look

    found = look(paths, loaded).plan.candidates
    _show(found, form, adopted=False)
    return 0


def _apply(paths: Paths, loaded: Loaded, form: str) -> int:
    from holdfast.cli.hold import hold
    from holdfast.engine import event_kinds, guard, ownership
    from holdfast.engine.reconcile import Pass
    from holdfast.errors import Refused
    from holdfast.runtime import drivers, namespace_ownership
    from holdfast.state.events import Event

    with (
        hold(paths, "holdfast adopt --apply", arguments.WAIT_S, durable=True) as ledger,
        drivers.of_machine(paths, loaded.router.ownership.tag) as host,
    ):
        standing = namespace_ownership.look(paths, ledger, loaded.router.ownership.tag, host.epoch)
        if standing.held_by:
            raise Refused(f"nothing was adopted: {standing.held_by}")
        stray = guard.stray(ownership.elsewhere(ledger.claims().values(), host.epoch))
        if stray:
            raise Refused(f"nothing was adopted: {stray}")
        policy = standing.policy(loaded.policy(host.epoch))
        plan = Pass(loaded.desired, host, ledger, policy).plan()
        drifted = [candidate for candidate in plan.candidates if candidate.changes]
        if drifted:
            _show(drifted, form, adopted=False)
            raise Refused(
                f"{len(drifted)} of {len(plan.candidates)} candidates differ from what is"
                " declared; nothing was adopted. Change the configuration, or the objects, first;"
                " of what is not ours an apply changes settings only"
            )
        newest = ledger.generations(1)
        generation = newest[0].number if newest else 0
        claims = [_claim(candidate, generation, host.epoch) for candidate in plan.candidates]
        ledger.write_claims(claims)
        ledger.append_events(
            Event(event_kinds.ADOPTED, str(claim.key), "adopted as it is", generation)
            for claim in claims
        )
    _show(plan.candidates, form, adopted=True)
    return 0


def _claim(candidate: Candidate, generation: int, epoch: str) -> Claim:
    from holdfast.engine import record
    from holdfast.engine.claim import Claim, ClaimState, Provenance
    from holdfast.engine.kinds import KINDS

    kind = KINDS[candidate.desired.key.kind]
    seen = candidate.observed.fields
    # Of a bulk kind the fields hold the identity too, and must say all that tells its objects
    # from others' at the same one.
    return Claim(
        candidate.desired.key,
        candidate.owners,
        Provenance.ADOPTED,
        ClaimState.OWNED,
        dict(seen) if kind.bulk else record.claimed_fields(kind, seen),
        candidate.origin,
        generation,
        epoch="" if kind.survives_reboot else epoch,
    )


def _show(candidates: Sequence[Candidate], form: str, *, adopted: bool) -> None:
    from holdfast.cli.terminal import Style, say

    if form != "table":
        output.write(_members(candidates, adopted), form, sys.stdout)
        return
    say(_lines(candidates, Style.of(sys.stdout), adopted), sys.stdout)


def _members(candidates: Sequence[Candidate], adopted: bool) -> Iterator[tuple[str, Any]]:
    from holdfast.engine import document

    yield "format_version", document.FORMAT_VERSION
    yield "adopted" if adopted else "adoption_candidates", map(document.candidate, candidates)


def _lines(candidates: Sequence[Candidate], style: Style, adopted: bool) -> Iterator[str]:
    from holdfast.cli.terminal import counted
    from holdfast.render import plan_text

    if not candidates:
        yield "Nothing to adopt: whatever is declared is ours, or not there."
        return
    yield from plan_text.candidates(candidates, style, adopted=adopted)
    if adopted:
        count = counted(len(candidates), "artifact")
        yield f"{style('Adopted:', 'bold', 'green')} {count}; the host was not touched."
        return
    drifted = sum(1 for candidate in candidates if candidate.changes)
    count = counted(len(candidates), "candidate")
    if drifted:
        yield f"{count}, {drifted} not as declared."
    else:
        yield f"{count}, as declared: `holdfast adopt --apply` takes over."
