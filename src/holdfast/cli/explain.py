"""`holdfast explain`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from holdfast.cli import arguments, complete, daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.output import write
from holdfast.cli.terminal import Style, say
from holdfast.errors import HoldfastError
from holdfast.paths import Paths


@click.command()
@click.argument(
    "names",
    metavar="ARTIFACT|RESOURCE [FILE]",
    nargs=-1,
    required=True,
    shell_complete=complete.resources,
)
@output.option
@click.pass_obj
def command(paths: Paths, names: tuple[str, ...], output: str) -> int:
    """Tell the story of one artifact, from the kernel's object back to the line of YAML: who
    declares it, by what proof it is ours, and why it is or isn't removed.

    An ARTIFACT is named as `ip` would: `route 10.0.0.0/24`, `10.0.0.0/24 table 100`, `192.0.2.1`,
    `eth0`, `rule 1000`, `table inet holdfast_filter`, `/etc/holdfast/dnsmasq.conf`, `dnsmasq`,
    `net.ipv4.ip_forward`, `hostname`. A RESOURCE is named by its kind and name:
    `RouteList/transit`.
    """
    from holdfast.render.explain.selector import parse

    words, file = _split(names)
    name = " ".join(words)
    parse(name)  # what can be about nothing is said before anything is loaded
    with daemon.connect(paths, reads=True) as found:
        if found is not None and found.serves(file):
            return _ask(found, name, output)
    from holdfast.cli.load import load
    from holdfast.render.explain.by_name import explain

    told = explain(paths, load(paths, file), name)
    if output != "table":
        write(told.members(), output, sys.stdout)
        return Exit.OK if told.found else Exit.FAILED
    if not told.found:
        raise HoldfastError(told.absent)
    say(told.lines(Style.of(sys.stdout)), sys.stdout)
    return Exit.OK


def _split(names: tuple[str, ...]) -> tuple[tuple[str, ...], Path | None]:
    """The words of the name, quoted or not, and the configuration where the last word is one."""
    last = Path(names[-1])
    is_file = len(names) > 1 and (last.suffix in (".yaml", ".yml", ".json") or last.is_file())
    return (names[:-1], last) if is_file else (names, arguments.default_file())


def _ask(found: daemon.Daemon, name: str, form: str) -> int:
    from holdfast.api import holdfast_pb2 as pb

    request = pb.ExplainRequest(name=name, form=daemon.wanted(form))
    data, code = found.documents("Router.Explain", request)
    daemon.show(data, form)
    return code
