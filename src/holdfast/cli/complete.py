"""What a shell offers for an argument. Where that cannot be told, nothing is offered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import arguments
from holdfast.paths import Paths

if TYPE_CHECKING:  # only a shell that asks needs it
    from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _offer(find: Callable[[Paths], Iterable[tuple[str, str]]]) -> Complete:
    """find: words, and a line of help for each."""

    def complete(
        ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # The command itself is not run, so that nothing has made these of its options yet.
        root = ctx.find_root().params.get("root") or Path("/")
        try:
            found = list(find(Paths(Path(root).absolute())))
        except Exception:  # of whatever kind: a shell that waits for words is no place to say it
            return []
        return [CompletionItem(word, help=said) for word, said in found if incomplete in word]

    return complete


def _resources(paths: Paths) -> Iterable[tuple[str, str]]:
    from holdfast.config.document import parse, read_file

    file = arguments.default_file() or paths.config
    for one in parse(read_file(file)).data["spec"]["resources"]:
        yield f"{one['kind']}/{one['metadata']['name']}", ""


def _generations(paths: Paths) -> Iterable[tuple[str, str]]:
    from holdfast.state.ledger import Ledger

    with Ledger.read(paths) as ledger:
        for generation in ledger.generations():
            yield str(generation.number), generation.state


def _event_kinds(_paths: Paths) -> Iterable[tuple[str, str]]:
    from holdfast.engine.event_kinds import EVENT_KINDS

    return ((kind, "") for kind in EVENT_KINDS)


resources = _offer(_resources)
generations = _offer(_generations)
event_kinds = _offer(_event_kinds)
