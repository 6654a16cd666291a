"""`holdfast dynamic`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import arguments, daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, say
from holdfast.errors import ConfigError, HoldfastError, Refused
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.config.part import Part
    from holdfast.render.dynamic import Parts
    from holdfast.resources.router import Router


@click.group()
def command() -> None:
    """Look at what sources besides the startup file contribute, and hand parts in.

    FILE is the startup file that the parts are merged with; without it, that of the daemon where
    one runs, else /etc/holdfast/router.yaml.
    """


@command.command(name="list")
@arguments.file
@click.option("--all", "every", is_flag=True, help="Older generations as well.")
@click.option("--source", default="", help="Only of this source, as Owner/ci, or by its name.")
@click.option(
    "--status",
    type=click.Choice(
        ("Active", "Rejected", "Expired", "Superseded", "Refused"), case_sensitive=False
    ),
    help="Only those that are so. Superseded ones need --all.",
)
@output.option
@click.pass_obj
def list_(
    paths: Paths, file: Path | None, every: bool, source: str, status: str | None, output: str
) -> int:
    """List the newest part of every source: whether it is in force, and if not, why."""
    fields = {"all": every, "source": source, "status": status or ""}
    code = daemon.answered(paths, file, "Dynamic.List", fields, output)
    if code is not None:
        return code
    from holdfast.render import dynamic

    found = _parts(paths, file).listed(every=every, source=source, status=status or "")
    asked = bool(source or status)
    _show(
        output,
        dynamic.list_members(found),
        lambda style: dynamic.list_lines(found, style, every=not asked),
    )
    return Exit.OK


@command.command()
@click.argument("source")
@arguments.file
@output.option
@click.pass_obj
def describe(paths: Paths, source: str, file: Path | None, output: str) -> int:
    """Show all that a source handed in: SOURCE is Owner/ci, Owner/ci#3 for one part of it, or the
    name that a part was handed in under."""
    code = daemon.answered(paths, file, "Dynamic.Describe", {"source": source}, output)
    if code is not None:
        return code
    from holdfast.render import dynamic

    found = _parts(paths, file).of(source)
    _show(
        output,
        dynamic.describe_members(found),
        lambda style: dynamic.describe_lines(found, style),
    )
    return Exit.OK


@command.command()
@arguments.file
@click.option(
    "-o",
    "--output",
    type=click.Choice(("yaml", "json")),
    default="yaml",
    show_default=True,
    help="How it is written.",
)
@click.pass_obj
def render(paths: Paths, file: Path | None, output: str) -> int:
    """Print the effective config: what the startup file and all parts in force come to."""
    code = daemon.answered(paths, file, "Dynamic.Render", {}, output)
    if code is not None:
        return code
    from holdfast.cli.output import write
    from holdfast.render import effective_config

    write(effective_config.members(_parts(paths, file).effective), output, sys.stdout)
    return Exit.OK


@command.command()
@arguments.file
@output.option
@click.pass_obj
def diff(paths: Paths, file: Path | None, output: str) -> int:
    """Compare the startup file with the effective config: what parts add, and what they mask."""
    code = daemon.answered(paths, file, "Dynamic.Diff", {}, output)
    if code is not None:
        return code
    from holdfast.render import dynamic

    effective = _parts(paths, file).effective
    _show(
        output,
        dynamic.diff_members(effective),
        lambda style: dynamic.diff_lines(effective, style),
    )
    return Exit.OK


@command.command()
@click.argument("part", metavar="PART", type=arguments.File())
@arguments.file
@arguments.wait
@click.pass_obj
def put(paths: Paths, part: Path, file: Path | None, wait: float) -> int:
    """Hand in a part: PART is a file with a DynamicConfigPart of an Owner source.

    It replaces what the source handed in before. A daemon puts it in force within a moment; where
    none runs, the next apply does.
    """
    from holdfast.cli.hold import hold
    from holdfast.resources.dynamic.dynamic_config_part import read_part
    from holdfast.resources.dynamic.source_name import OWNER
    from holdfast.runtime import sources

    given = read_part(part)
    if not given.source.startswith(f"{OWNER}/"):
        raise Refused(
            f"{part}: {given.source} does not hand parts in this way; a part from the command line"
            " has a source such as Owner/ci"
        )
    with daemon.connect(paths, reads=False) as found:
        if found is not None:
            return _tell_put(*_put_through(found, given))
    with hold(paths, "holdfast dynamic put", wait) as ledger:
        _tell_replaced(sources.put(ledger, given))
        try:
            effective = _parts(paths, file).effective
        except ConfigError:
            click.echo(f"{given.ref} is stored, and counts once there is a valid startup file")
            return Exit.OK
        sources.accept(ledger, effective)
    reasons = [
        rejected.told for rejected in effective.rejected if rejected.part.source == given.source
    ]
    ignored = [str(ignored) for ignored in effective.ignored if ignored.part.source == given.source]
    return _tell_put(given.ref, reasons[0] if reasons else (), ignored)


def _put_through(found: daemon.Daemon, part: Part) -> tuple[str, Sequence[str], Sequence[str]]:
    import json

    from holdfast.api import holdfast_pb2 as pb
    from holdfast.runtime.plugins.run import part_document

    request = pb.PutPartRequest(document=json.dumps(part_document(part)).encode())
    reply = found.client.ask("Dynamic.Put", request, pb.PutPartReply, daemon.CHANGE_S)
    _tell_replaced(reply.replaced)
    return reply.ref, list(reply.rejected), list(reply.ignored)


def _tell_replaced(count: int) -> None:
    if count:
        say([f"it takes the place of {count} resources declared one by one"], sys.stderr)


def _tell_put(ref: str, rejected: Sequence[str], ignored: Sequence[str]) -> int:
    if rejected:
        said = [f"{ref} is stored, and rejected:", *(f"  {reason}" for reason in rejected)]
        say(said, sys.stderr)
        return Exit.FAILED
    style = Style.of(sys.stderr)
    say((f"{style('warning:', 'yellow')} {line}" for line in ignored), sys.stderr)
    click.echo(f"{ref} is stored, and counts from now on")
    return Exit.OK


@command.command()
@click.argument("source")
@click.option(
    "-f",
    "--resources",
    "document",
    required=True,
    type=arguments.File(),
    help="YAML or JSON: one resource, a list of them, or several documents.",
)
@arguments.file
@arguments.wait
@click.option("--each", is_flag=True, help="Store what is not refused, though some of it is.")
@click.option("--all", "every", is_flag=True, help="Withdraw what is not in the file.")
@click.option("--dry-run", is_flag=True, help="Say what would be refused, and store nothing.")
@click.option(
    "--until-seen",
    type=float,
    default=0.0,
    metavar="SECONDS",
    help="Wait so long for the daemon to see it in the kernel.",
)
@click.pass_obj
def declare(
    paths: Paths,
    /,
    source: str,
    document: Path,
    file: Path | None,
    wait: float,
    every: bool,
    until_seen: float,
    **flags: bool,
) -> int:
    """Put single resources of a source in force, beside what it declared before: SOURCE is
    Owner/ci.

    All of the file is stored or nothing of it. A resource that is declared already is replaced.
    """
    from holdfast.cli import increments
    from holdfast.runtime.increments import Batch

    batch = Batch(
        source,
        increments.read(document),
        each=flags["each"],
        begin=every,
        complete=every,
        dry_run=flags["dry_run"],
    )
    return increments.carry_out(paths, lambda: _startup(paths, file), batch, wait, until_seen)


@command.command()
@click.argument("source")
@click.argument("resources", nargs=-1, metavar="[RESOURCE]...")
@arguments.file
@arguments.wait
@click.pass_obj
def withdraw(
    paths: Paths, source: str, resources: tuple[str, ...], file: Path | None, wait: float
) -> int:
    """End what a source contributes: what it added goes, what it masked comes back. What was
    refused of it is forgotten. SOURCE is Owner/ci, or the name that its part was handed in under.
    RESOURCE, as IPv4Route/office: only this one of those that it declared one by one.

    A plugin may hand in another part when it runs again, as long as it is declared.
    """
    if resources:
        from holdfast.cli import increments
        from holdfast.runtime.increments import Batch

        batch = Batch(source, withdraw=tuple(map(increments.named, resources)))
        return increments.carry_out(paths, lambda: _startup(paths, file), batch, wait, 0.0)
    _withdraw_all(paths, source, wait)
    return Exit.OK


def _withdraw_all(paths: Paths, source: str, wait: float) -> None:
    from holdfast.cli.hold import hold
    from holdfast.resources.dynamic.source_name import plugin_of
    from holdfast.runtime import sources

    with daemon.connect(paths, reads=False) as found:
        if found is not None:
            ended = _withdraw_through(found, source)
        else:
            with hold(paths, "holdfast dynamic withdraw", wait) as ledger:
                ended = sources.withdraw(ledger, source)
    if ended == source:
        click.echo(f"{source} contributes nothing; what was refused of it is forgotten")
    else:
        click.echo(f"{ended} is withdrawn")
    if plugin_of(ended):
        say([f"{ended.partition('#')[0]} may hand in another part when it runs again"], sys.stderr)


def _withdraw_through(found: daemon.Daemon, source: str) -> str:
    from holdfast.api import holdfast_pb2 as pb

    request = pb.WithdrawPartRequest(source=source)
    reply = found.client.ask("Dynamic.Withdraw", request, pb.WithdrawPartReply, daemon.CHANGE_S)
    return reply.ref


@command.command()
@click.argument("source")
@output.option
def token(source: str, output: str) -> int:
    """Make a token by which a program speaks for SOURCE, Owner/ci or Manager/main, on the daemon's
    API. It is shown this once, and kept nowhere: the startup file has its digest."""
    from holdfast.api import tokens
    from holdfast.resources.dynamic.source_name import parse_caller
    from holdfast.resources.dynamic.tokens import as_declared

    try:
        parse_caller(source)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    made = tokens.fresh()
    digest = as_declared(tokens.digest_of(made))
    _show(
        output,
        (("source", source), ("token", made), ("digest", digest)),
        lambda style: (
            f"{style('token'.ljust(8), 'dim')}{made}",
            f"{style('digest'.ljust(8), 'dim')}{digest}",
            f"the digest belongs into `tokens` of the DynamicConfigSource of {source}",
        ),
    )
    return Exit.OK


def _parts(paths: Paths, file: Path | None) -> Parts:
    """As the ledger and the startup file say. A file that is invalid counts as little here as it
    does for the daemon: what was good last is taken."""
    import time

    from holdfast.render import dynamic
    from holdfast.runtime import sources
    from holdfast.state.ledger import Ledger

    router = _startup(paths, file)
    with Ledger.read(paths) as ledger:
        stored = sources.stored(ledger, every=True)
        refused, called = sources.refusals(ledger), sources.called(ledger)
    return dynamic.parts(stored.merge(router, time.time()), stored.parts, refused, called)


def _startup(paths: Paths, file: Path | None) -> Router:
    """The startup file that parts are merged with, or what was good last."""
    from holdfast.runtime.startup import Startup

    loaded = Startup(paths, _startup_file(paths, file), writes=False).read(asked=True)
    if loaded.router is None:
        raise loaded.error or HoldfastError(loaded.trouble)
    if loaded.error is not None:
        style = Style.of(sys.stderr)
        problems = loaded.error.problems if isinstance(loaded.error, ConfigError) else ()
        lines = (*map(str, problems), loaded.trouble)
        say((f"{style('warning:', 'yellow')} {line}" for line in lines), sys.stderr)
    return loaded.router


def _startup_file(paths: Paths, file: Path | None) -> Path:
    if file is not None:
        return file.absolute()
    with daemon.connect(paths, reads=True) as found:
        return paths.config.absolute() if found is None else found.file


def _show(
    form: str, members: Iterable[tuple[str, Any]], lines: Callable[[Style], Iterable[str]]
) -> None:
    if form == "table":
        say(lines(Style.of(sys.stdout)), sys.stdout)
    else:
        output.write(members, form, sys.stdout)
