"""`holdfast explain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import output
from holdfast.cli.exit import Exit
from holdfast.errors import HoldfastError
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.cli.load import Loaded
    from holdfast.cli.selector import Selector


@click.command()
@click.argument("names", metavar="ARTIFACT|RESOURCE [FILE]", nargs=-1, required=True)
@output.option
@click.pass_obj
def command(paths: Paths, names: tuple[str, ...], output: str) -> int:
    """Tell the story of one artifact, from the kernel's object back to the line of YAML: who
    declares it, by what proof it is ours, and why it is or isn't removed.

    An ARTIFACT is named as `ip` would: `route 10.0.0.0/24`, `10.0.0.0/24 table 100`, `192.0.2.1`,
    `eth0`, `rule 1000`, `sysctl net.ipv4.ip_forward`, `hostname`. A RESOURCE is named by its kind
    and name: `RouteList/transit`.
    """
    from holdfast.cli.load import load
    from holdfast.cli.selector import parse

    words, file = _split(names)
    selector = parse(" ".join(words))
    loaded = load(paths, file)
    if selector.resource:
        return _resource(paths, loaded, selector, output)
    return _artifact(paths, loaded, selector, output)


def _split(names: tuple[str, ...]) -> tuple[tuple[str, ...], Path | None]:
    """The words of the name, quoted or not, and the configuration where the last word is one."""
    last = Path(names[-1])
    is_file = len(names) > 1 and (last.suffix in (".yaml", ".yml", ".json") or last.is_file())
    return (names[:-1], last) if is_file else (names, None)


def _artifact(paths: Paths, loaded: Loaded, selector: Selector, form: str) -> int:
    from holdfast.cli import story
    from holdfast.cli.findings import find
    from holdfast.cli.terminal import Style, say

    view, findings = find(paths, loaded, selector)
    if form != "table":
        output.write(story.members(selector, findings, view.plan), form, sys.stdout)
        return Exit.OK if findings else Exit.FAILED
    if not findings:
        raise HoldfastError(f"{selector.text}: not there, not declared and not claimed")
    for number, finding in enumerate(findings):
        if number:
            click.echo()
        say(story.lines(finding, view.plan, Style.of(sys.stdout)), sys.stdout)
    return Exit.OK


def _resource(paths: Paths, loaded: Loaded, selector: Selector, form: str) -> int:
    from holdfast.cli import resource_story
    from holdfast.cli.terminal import Style, say

    told = resource_story.tell(paths, loaded, selector.resource)
    if form != "table":
        output.write(told.members(), form, sys.stdout)
        return Exit.OK
    say(told.lines(Style.of(sys.stdout)), sys.stdout)
    return Exit.OK
