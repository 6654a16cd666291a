"""`-o table|json|yaml`: data on stdout. Documents are streamed, so that their size is no matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TextIO

import click

from holdfast.characters import escaped_json, trouble
from holdfast.render.documents import Members, json_text

option = click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "json", "yaml")),
    default="table",
    show_default=True,
    help="For people, or for programs.",
)


def write(members: Members, form: str, stream: TextIO) -> None:
    """Writes a document as JSON or YAML. A member whose value is an iterator is a list."""
    for piece in yaml_text(members) if form == "yaml" else json_text(members):
        stream.write(piece)


def yaml_text(members: Members) -> Iterator[str]:
    dump = _yaml_dumper()
    for name, value in members:
        if not isinstance(value, Iterator):
            yield dump({name: value})
            continue
        empty = True
        for item in value:
            if empty:
                yield f"{name}:\n"
                empty = False
            yield dump([item])
        if empty:
            yield f"{name}: []\n"


def _yaml_dumper() -> Callable[[Any], str]:
    import yaml

    class Dumper(yaml.CSafeDumper):
        """Plain values only, and no anchors: what is shared in memory is not shared in meaning."""

        def ignore_aliases(self, _data: Any) -> bool:
            return True

    Dumper.add_representer(
        tuple, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value)
    )
    Dumper.add_representer(
        str,
        lambda dumper, value: dumper.represent_scalar(
            # Only in these quotes can a character be written as its number.
            "tag:yaml.org,2002:str",
            value,
            style='"' if trouble(value, lines=True) else None,
        ),
    )

    def dump(value: Any) -> str:
        text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
        return escaped_json(text)

    return dump
