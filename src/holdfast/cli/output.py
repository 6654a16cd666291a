"""`-o table|json|yaml`: data on stdout. Documents are streamed, so that their size is no matter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

import click

Members = Iterable[tuple[str, Any]]

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


def json_text(members: Members) -> Iterator[str]:
    """One line per member, and one per item of a list: to be read by people and grep as well."""
    separator = "{\n"
    for name, value in members:
        yield f"{separator}  {json.dumps(name)}: "
        separator = ",\n"
        if not isinstance(value, Iterator):
            yield json.dumps(value, ensure_ascii=False)
            continue
        opening = "[\n"
        for item in value:
            yield f"{opening}    {json.dumps(item, ensure_ascii=False)}"
            opening = ",\n"
        yield "[]" if opening == "[\n" else "\n  ]"
    yield "{}\n" if separator == "{\n" else "\n}\n"


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

    def dump(value: Any) -> str:
        text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
        return text

    return dump
