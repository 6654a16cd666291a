"""`holdfast plugin`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import arguments, daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, say
from holdfast.errors import Refused
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.resources.dynamic.effective import Effective


@click.group()
def command() -> None:
    """Look at the plugins that are declared, and run one now."""


@command.command(name="list")
@arguments.file
@output.option
@click.pass_obj
def list_(paths: Paths, file: Path | None, output: str) -> None:
    """List the plugins, when they run, and how they did last."""
    from holdfast.cli.output import write
    from holdfast.render import plugin_list
    from holdfast.state.ledger import Ledger

    told = daemon.document(paths, file, "Plugins.List", {}, reads=True)
    if told is not None:
        found, _ = told
    else:
        with Ledger.read(paths) as ledger:
            runs = ledger.runs()
        found = plugin_list.document(_effective(paths, file).startup.resources, runs)
    if output == "table":
        say(_lines(found["plugins"], Style.of(sys.stdout)), sys.stdout)
    else:
        write(found.items(), output, sys.stdout)


@command.command()
@click.argument("name")
@arguments.file
@click.option("--dry-run", is_flag=True, help="Show what it proposes; store and record nothing.")
@output.option
@click.pass_obj
def run(paths: Paths, name: str, file: Path | None, dry_run: bool, output: str) -> int:
    """Run the plugin NAME now, and store the part it answers with.

    Where `holdfast serve` runs it takes the part in at once; otherwise the next apply does.
    """
    from holdfast.cli.output import write

    fields = {"name": name, "dry_run": dry_run}
    told = daemon.document(paths, file, "Plugins.Run", fields, reads=False)
    if told is not None:
        found, code = told
    else:
        found, code = _run(paths, file, name, dry_run=dry_run)
    if output == "table":
        say(_report(found, Style.of(sys.stdout)), sys.stdout)
    else:
        write(found.items(), output, sys.stdout)
    return code


def _run(
    paths: Paths, file: Path | None, name: str, *, dry_run: bool
) -> tuple[dict[str, Any], int]:
    import asyncio

    from holdfast.cli.hold import hold
    from holdfast.resources.dynamic.plugin import Plugin
    from holdfast.resources.dynamic.source_name import plugin_source
    from holdfast.runtime.plugins.protocol import Trigger
    from holdfast.runtime.plugins.run import PluginRunner

    effective = _effective(paths, file)
    plugins = {
        resource.name: resource
        for resource in effective.startup.resources
        if isinstance(resource.spec, Plugin)
    }
    if name not in plugins:
        known = ", ".join(sorted(plugins)) or "none"
        raise Refused(f"there is no {plugin_source(name)}; known are: {known}")
    runner = PluginRunner(paths, lambda: hold(paths, "holdfast plugin run", arguments.WAIT_S))
    ran = asyncio.run(runner.run(plugins[name], effective, Trigger("manual"), dry_run=dry_run))
    return ran.document(dry_run=dry_run), Exit.OK if ran.well else Exit.FAILED


def _effective(paths: Paths, file: Path | None) -> Effective:
    import time

    from holdfast.resources.router import load_router
    from holdfast.runtime.sources import Sources
    from holdfast.runtime.trusted_configuration import asking, refuse_untrusted

    path = (paths.config if file is None else file).absolute()
    refuse_untrusted(path, asking())
    return Sources(paths).read().merge(load_router(path, paths.root, handed=True), time.time())


def _lines(plugins: list[dict[str, Any]], style: Style) -> Iterator[str]:
    if not plugins:
        yield "No Plugin is declared."
        return
    rows = [("NAME", "EXECUTABLE", "CAPABILITIES", "TRIGGERS", "LAST RUN")]
    for plugin in plugins:
        last = plugin["lastRun"]
        said = f"{last['outcome']} {last['started']}" if last else "never"
        rows.append(
            (
                plugin["name"],
                plugin["executable"],
                ",".join(plugin["capabilities"]) or "none",
                ", ".join(plugin["triggers"]) or "by hand",
                said,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for number, row in enumerate(rows):
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield style(line.rstrip(), "bold") if number == 0 else line.rstrip()
    for plugin in plugins:
        if plugin["lastRun"] and plugin["lastRun"]["reason"]:
            yield f"{style(plugin['name'], 'red')}: {plugin['lastRun']['reason']}"


def _report(found: dict[str, Any], style: Style) -> Iterator[str]:
    outcome, part = found["outcome"], found["part"]
    took = f"in {outcome['durationMs']} ms"
    if outcome["error"]:
        yield f"{style('failed', 'red')} {took}: {outcome['error']}"
        for line in outcome["stderr"].splitlines():
            yield f"  {style(line, 'dim')}"
        return
    spec = part["spec"]
    done = "stored" if found["stored"] else "not stored (--dry-run)"
    name = f"{found['source']}#{spec['generation']}"
    if found["rejected"]:
        yield f"{name} {done} {took}, and {style('rejected', 'red')}:"
        yield from (f"  {reason}" for reason in found["rejected"])
        return
    yield f"{name} {style(done, 'green')} {took}, in force until {spec['expiresAt']}"
    for one in spec["resources"]:
        yield f"  {style('+', 'green')} {one.get('kind')}/{one.get('metadata', {}).get('name')}"
    for one in spec["directives"]:
        target = f"{one['target']['kind']}/{one['target']['name']}"
        yield f"  {style('-', 'yellow')} masks {target}: {one['reason']}"
    yield from (f"  {style('!', 'red')} {line}" for line in found["ignored"])
    for one in spec["actionPlans"]:
        yield f"  {style('!', 'cyan')} proposes {one.get('action')} ({one.get('name')})"
