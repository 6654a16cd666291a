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
from holdfast.state.actions import STATES

if TYPE_CHECKING:
    from holdfast.resources.dynamic.effective import Effective
    from holdfast.runtime.actions.engine import Engine

Lines = Callable[[dict[str, Any], Style], Iterator[str]]

_file = click.option(
    "--file",
    metavar="FILE",
    type=arguments.File(),
    envvar=arguments.FILE_VARIABLE,
    help="The startup file, in place of /etc/holdfast/router.yaml.",
)
_key = click.argument("key")


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, metavar, meant in (
        ("--source", "SOURCE", "Only what this source proposed: Plugin/inventory."),
        ("--provider", "PROVIDER", "Only at this provider."),
    ):
        function = click.option(name, metavar=metavar, default="", help=meant)(function)
    states = click.Choice(STATES, case_sensitive=False)
    return click.option("--state", type=states, help="Only those in this state.")(function)


@click.group()
def command() -> None:
    """Look at the actions that parts propose to be done at providers; approve, execute, undo them.

    What may be done at all, a ProviderActionPolicy says. KEY is the idempotency key of an action.
    """


@command.command(name="list")
@_filters
@_file
@output.option
@click.pass_obj
def list_(
    paths: Paths, file: Path | None, output: str, state: str | None, provider: str, source: str
) -> None:
    """List what is proposed, waits or is under way, and what each is held by."""
    from holdfast.render import action_documents, action_lines

    told = daemon.document(paths, file, "Actions.List", {}, reads=True)
    found = (
        told[0]
        if told is not None
        else action_documents.list_document(paths, _effective(paths, file), time.time())
    )
    _show_like(found, output, action_lines.list_lines, state, provider, source)


@command.command()
@_key
@_file
@output.option
@click.pass_obj
def show(paths: Paths, key: str, file: Path | None, output: str) -> None:
    """Show one action: its plan, its state, what holds it, and what came of it."""
    from holdfast.render import action_documents, action_lines

    told = daemon.document(paths, file, "Actions.Show", {"key": key}, reads=True)
    found = (
        told[0]
        if told is not None
        else action_documents.show_document(paths, _effective(paths, file), key, time.time())
    )
    _show(found, output, action_lines.show_lines)


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
    from holdfast.render import action_documents, action_lines

    fields = {"key": key, "by": _operator(), "plan_digest": plan}
    told = daemon.document(paths, file, "Actions.Approve", fields, reads=False)
    if told is not None:
        found, _ = told
    else:
        effective = _effective(paths, file)
        approved = _engine(paths).approve(lambda: effective, key, _operator(), plan)
        found = action_documents.approved_document(approved)
    _show(found, output, action_lines.approved_lines)


@command.command()
@click.argument("key", required=False)
@click.option("--approved", is_flag=True, help="All that are approved, as without KEY.")
@click.option("--dry-run", is_flag=True, help="Ask what would be done; record nothing. Needs KEY.")
@_file
@output.option
@click.pass_obj
def execute(
    paths: Paths, key: str | None, approved: bool, dry_run: bool, file: Path | None, output: str
) -> int:
    """Execute the action KEY now, or without it all that may be."""
    import asyncio

    from holdfast.render import action_documents, action_lines
    from holdfast.state.actions import FAILED

    if dry_run and not key:
        raise click.UsageError("--dry-run needs the KEY of an action.")
    if approved and key:
        raise click.UsageError("--approved is for all of them: leave KEY out.")
    fields = {"key": key or "", "dry_run": dry_run}
    told = daemon.document(paths, file, "Actions.Execute", fields, reads=False)
    if told is not None:
        _show(told[0], output, action_lines.done_lines)
        return told[1]
    effective, engine = _effective(paths, file), _engine(paths)
    if dry_run and key:
        done = [asyncio.run(engine.dry_run(lambda: effective, key))]
    else:
        done = asyncio.run(engine.run(lambda: effective, key or ""))
    _show(action_documents.done_document(done, dry_run=dry_run), output, action_lines.done_lines)
    return Exit.FAILED if any(one.outcome in (FAILED, "late") for one in done) else Exit.OK


@command.command()
@_key
@click.option("--dry-run", is_flag=True, help="Ask what would be done; record nothing.")
@_file
@output.option
@click.pass_obj
def rollback(paths: Paths, key: str, dry_run: bool, file: Path | None, output: str) -> int:
    """Undo an action that succeeded, where the policy and its executor allow that."""
    import asyncio

    from holdfast.render import action_documents, action_lines
    from holdfast.state.actions import SUCCEEDED

    fields = {"key": key, "by": _operator(), "dry_run": dry_run}
    told = daemon.document(paths, file, "Actions.Rollback", fields, reads=False)
    if told is not None:
        _show(told[0], output, action_lines.done_lines)
        return told[1]
    effective, engine = _effective(paths, file), _engine(paths)
    if dry_run:
        done = asyncio.run(engine.dry_run(lambda: effective, key, undoes=True))
    else:
        done = asyncio.run(engine.rollback(lambda: effective, key, _operator()))
    _show(action_documents.done_document([done], dry_run=dry_run), output, action_lines.done_lines)
    return Exit.OK if done.outcome == SUCCEEDED else Exit.FAILED


@command.command()
@_filters
@output.option
@click.pass_obj
def journal(paths: Paths, output: str, state: str | None, provider: str, source: str) -> None:
    """Show every action there was, the last change first."""
    from holdfast.render import action_documents, action_lines

    told = daemon.document(paths, None, "Actions.Journal", {}, reads=True)
    found = told[0] if told is not None else action_documents.journal_document(paths)
    _show_like(found, output, action_lines.journal_lines, state, provider, source)


def _show_like(
    found: dict[str, Any], form: str, lines: Lines, state: str | None, provider: str, source: str
) -> None:
    """The actions that were asked for, and what was rejected of their source."""

    def of_source(one: dict[str, Any]) -> bool:
        return source in ("", one["source"], one["source"].partition("#")[0])

    kept = [
        one
        for one in found["actions"]
        if state in (None, one["state"]) and provider in ("", one["provider"]) and of_source(one)
    ]
    shown = found | {"actions": kept}
    if "rejected" in found:
        shown["rejected"] = [
            one for one in found["rejected"] if state is None and not provider and of_source(one)
        ]
    if form == "table" and found["actions"] and not kept:
        click.echo("No action is like that.")
    else:
        _show(shown, form, lines)


def _engine(paths: Paths) -> Engine:
    from holdfast.runtime.actions.engine import Engine
    from holdfast.state.ledger import Ledger

    command = "holdfast action"
    return Engine(paths, lambda: Ledger.open(paths, command=command, wait=arguments.WAIT_S))


def _effective(paths: Paths, file: Path | None) -> Effective:
    """By the file that is in force: another one would end what is approved under it."""
    from holdfast.resources.router import load_router
    from holdfast.runtime.sources import Sources
    from holdfast.runtime.trusted_configuration import asking, refuse_untrusted

    path = paths.config if file is None else file
    with daemon.connect(paths, reads=True) as found:
        if found is not None:
            if not found.serves(file):
                raise Refused(f"a daemon serves {found.file}; leave --file out")
            path = found.file
    refuse_untrusted(path.absolute(), asking())
    router = load_router(path.absolute(), paths.root, handed=True)
    return Sources(paths).read().merge(router, time.time())


def _operator() -> str:
    name = os.environ.get("SUDO_USER", "")
    known = f" ({name})" if name.isprintable() and 0 < len(name) <= 64 else ""
    return f"user {os.getuid()}{known}"


def _show(found: dict[str, Any], form: str, lines: Lines) -> None:
    if form == "table":
        say(lines(found, Style.of(sys.stdout)), sys.stdout)
    else:
        output.write(found.items(), form, sys.stdout)
