"""`holdfast action`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import arguments, daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, say
from holdfast.errors import Refused
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.agent.actions.engine import Engine
    from holdfast.resources.dynamic.effective import Effective

_file = click.option(
    "--file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The startup file, in place of /etc/holdfast/router.yaml.",
)
_key = click.argument("key")


@click.group()
def command() -> None:
    """Look at the actions that parts propose to be done at providers; approve, execute, undo them.

    What may be done at all, a ProviderActionPolicy says. KEY is the idempotency key of an action.
    """


@command.command(name="list")
@_file
@output.option
@click.pass_obj
def list_(paths: Paths, file: Path | None, output: str) -> None:
    """List what is proposed, waits or is under way, and what each is held by."""
    from holdfast.agent.actions import listing
    from holdfast.agent.stories import actions

    told = daemon.document(paths, file, "Actions.List", {}, reads=True)
    found = (
        told[0]
        if told is not None
        else listing.list_document(paths, _effective(paths, file), time.time())
    )
    _show(found, output, actions.list_lines)


@command.command()
@_key
@_file
@output.option
@click.pass_obj
def show(paths: Paths, key: str, file: Path | None, output: str) -> None:
    """Show one action: its plan, its state, what holds it, and what came of it."""
    from holdfast.agent.actions import listing
    from holdfast.agent.stories import actions

    told = daemon.document(paths, file, "Actions.Show", {"key": key}, reads=True)
    found = (
        told[0]
        if told is not None
        else listing.show_document(paths, _effective(paths, file), key, time.time())
    )
    _show(found, output, actions.show_lines)


@command.command()
@_key
@click.option(
    "--plan",
    metavar="DIGEST",
    default="",
    help="Only if its plan is still the one that `show` told this digest of.",
)
@_file
@output.option
@click.pass_obj
def approve(paths: Paths, key: str, plan: str, file: Path | None, output: str) -> None:
    """Let an action be executed, once, as it is proposed now.

    A daemon executes it with its next run, `holdfast action execute` at once.
    """
    from holdfast.agent.actions import listing
    from holdfast.agent.stories import actions

    fields = {"key": key, "by": _operator(), "plan_digest": plan}
    told = daemon.document(paths, file, "Actions.Approve", fields, reads=False)
    if told is not None:
        found, _ = told
    else:
        effective = _effective(paths, file)
        approved = _engine(paths).approve(lambda: effective, key, _operator(), plan)
        found = listing.approved_document(approved)
    _show(found, output, actions.approved_lines)


@command.command()
@click.argument("key", required=False)
@click.option("--dry-run", is_flag=True, help="Ask what would be done; record nothing. Needs KEY.")
@_file
@output.option
@click.pass_obj
def execute(paths: Paths, key: str | None, dry_run: bool, file: Path | None, output: str) -> int:
    """Execute the action KEY now, or without it all that may be."""
    import asyncio

    from holdfast.agent.actions import listing
    from holdfast.agent.stories import actions
    from holdfast.state.actions import FAILED

    if dry_run and not key:
        raise click.UsageError("--dry-run needs the KEY of an action.")
    fields = {"key": key or "", "dry_run": dry_run}
    told = daemon.document(paths, file, "Actions.Execute", fields, reads=False)
    if told is not None:
        _show(told[0], output, actions.done_lines)
        return told[1]
    effective, engine = _effective(paths, file), _engine(paths)
    if dry_run and key:
        done = [asyncio.run(engine.dry_run(lambda: effective, key))]
    else:
        done = asyncio.run(engine.run(lambda: effective, key or ""))
    _show(listing.done_document(done, dry_run=dry_run), output, actions.done_lines)
    return Exit.FAILED if any(one.outcome in (FAILED, "late") for one in done) else Exit.OK


@command.command()
@_key
@_file
@output.option
@click.pass_obj
def rollback(paths: Paths, key: str, file: Path | None, output: str) -> int:
    """Undo an action that succeeded, where the policy and its executor allow that."""
    import asyncio

    from holdfast.agent.actions import listing
    from holdfast.agent.stories import actions
    from holdfast.state.actions import SUCCEEDED

    fields = {"key": key, "by": _operator()}
    told = daemon.document(paths, file, "Actions.Rollback", fields, reads=False)
    if told is not None:
        _show(told[0], output, actions.done_lines)
        return told[1]
    effective = _effective(paths, file)
    done = asyncio.run(_engine(paths).rollback(lambda: effective, key, _operator()))
    _show(listing.done_document([done], dry_run=False), output, actions.done_lines)
    return Exit.OK if done.outcome == SUCCEEDED else Exit.FAILED


@command.command()
@output.option
@click.pass_obj
def journal(paths: Paths, output: str) -> None:
    """Show every action there was, the last change first."""
    from holdfast.agent.actions import listing
    from holdfast.agent.stories import actions

    told = daemon.document(paths, None, "Actions.Journal", {}, reads=True)
    found = told[0] if told is not None else listing.journal_document(paths)
    _show(found, output, actions.journal_lines)


def _engine(paths: Paths) -> Engine:
    from holdfast.agent.actions.engine import Engine
    from holdfast.state.ledger import Ledger

    command = "holdfast action"
    return Engine(paths, lambda: Ledger.open(paths, command=command, wait=arguments.WAIT_S))


def _effective(paths: Paths, file: Path | None) -> Effective:
    """By the file that is in force: another one would end what is approved under it."""
    from holdfast.agent.sources import Sources
    from holdfast.resources.router import load_router

    path = paths.config if file is None else file
    with daemon.connect(paths, reads=True) as found:
        if found is not None:
            if not found.serves(file):
                raise Refused(f"a daemon serves {found.file}; leave --file out")
            path = found.file
    router = load_router(path.absolute(), paths.root, handed=True)
    return Sources(paths).read().merge(router, time.time())


def _operator() -> str:
    name = os.environ.get("SUDO_USER", "")
    known = f" ({name})" if name.isprintable() and 0 < len(name) <= 64 else ""
    return f"user {os.getuid()}{known}"


def _show(
    found: dict[str, Any], form: str, lines: Callable[[dict[str, Any], Style], Iterator[str]]
) -> None:
    if form == "table":
        say(lines(found, Style.of(sys.stdout)), sys.stdout)
    else:
        output.write(found.items(), form, sys.stdout)
