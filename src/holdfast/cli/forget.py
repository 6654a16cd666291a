"""`holdfast forget`: stop claiming, without touching."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli import arguments, complete
from holdfast.paths import Paths
from holdfast.render import artifact_words

if TYPE_CHECKING:
    from holdfast.engine.artifact import Key
    from holdfast.engine.claim import Claim


@click.command()
@click.argument(
    "names", metavar="ARTIFACT|RESOURCE...", nargs=-1, shell_complete=complete.resources
)
@click.option(
    "--other-namespaces",
    is_flag=True,
    help="All claims made since the last boot in network namespaces other than this one.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(paths: Paths, names: tuple[str, ...], other_namespaces: bool, yes: bool) -> int:
    """Drop claims from the ledger. The objects stay as they are.

    A RESOURCE (`IPv4StaticAddress/lan`) stands for all that it owns. Quote an ARTIFACT of more
    than one word (`'address 192.0.2.1/24 dev lan0'`).
    """
    from holdfast.cli.hold import hold
    from holdfast.cli.terminal import say
    from holdfast.engine import event_kinds
    from holdfast.state.events import Event

    if bool(names) == other_namespaces:
        raise click.UsageError("forget needs either names or --other-namespaces")
    with hold(paths, "holdfast forget", arguments.WAIT_S, durable=True) as ledger:
        claims = ledger.claims()
        leaving = _select(claims, names) if names else _of_other_namespaces(claims)
        named = (f"  · {claim.key} ({artifact_words.owners(claim.owners)})" for claim in leaving)
        say(named, sys.stdout)
        if not yes:
            _ask(len(leaving))
        ledger.write_claims((), [claim.key for claim in leaving])
        ledger.append_events(
            Event(event_kinds.FORGOTTEN, str(claim.key), "forgotten on request", claim.generation)
            for claim in leaving
        )
    say(_aftermath(leaving, elsewhere=other_namespaces), sys.stdout)
    return 0


def _select(claims: Mapping[Key, Claim], names: Sequence[str]) -> list[Claim]:
    from holdfast.errors import HoldfastError
    from holdfast.render.explain.selector import parse

    chosen: dict[Key, Claim] = {}
    for name in names:
        selector = parse(name)
        found = [claim for claim in claims.values() if selector.claimed(claim)]
        if not found:
            raise HoldfastError(
                f"no claim is on {name}; what carries Holdfast's kernel tag, as routes do, is ours"
                f" without one. `holdfast ledger show` lists what is claimed, and `holdfast explain"
                f" {name!r}` says whose it is. Nothing was changed"
            )
        chosen.update((claim.key, claim) for claim in found)
    return list(chosen.values())


def _of_other_namespaces(claims: Mapping[Key, Claim]) -> list[Claim]:
    from holdfast.engine import ownership
    from holdfast.errors import HoldfastError
    from holdfast.host.epoch import read_epoch

    found = ownership.elsewhere(claims.values(), read_epoch())
    if not found:
        raise HoldfastError(
            "no claim is of another network namespace of this boot. Nothing was changed"
        )
    return found


def _ask(count: int) -> None:
    from holdfast.cli.terminal import counted
    from holdfast.errors import Refused

    if not sys.stdin.isatty():
        raise Refused("nobody is there to be asked: add --yes. Nothing was changed")
    click.echo(f"Forget {counted(count, 'claim')}? Only `yes` is taken for one: ", nl=False)
    if sys.stdin.readline().strip() != "yes":
        raise Refused("nothing was changed")


def _aftermath(leaving: Sequence[Claim], *, elsewhere: bool) -> Iterator[str]:
    from holdfast.cli.terminal import counted
    from holdfast.engine.kinds import KINDS

    yield f"Forgot {counted(len(leaving), 'claim')}. The host was not touched."
    tagged = [c for c in leaving if KINDS[c.key.kind].tagged and c.provenance == "created"]
    if elsewhere:
        return
    if tagged:
        yield (
            f"{tagged[0].key} still carries the kernel tag by which Holdfast knows its own, so as"
            " long as nothing declares it the next apply deletes it. Remove the tag, or the"
            " object, to change that."
        )
    if len(tagged) > 1:
        yield f"So do {len(tagged) - 1} more."
