"""JSON and YAML, streamed."""

from __future__ import annotations

import io
import itertools
import json

import pytest
import yaml

from holdfast.cli import output
from holdfast.engine import document
from holdfast.engine.document import About, FileDigest
from holdfast.render.documents import Members, json_text
from tests.cli.plans import everything

ABOUT = About("0.1.0", "/", "/etc/r.yaml", (FileDigest("/etc/r.yaml", "00"),))


def _written(members: Members, form: str) -> str:
    stream = io.StringIO()
    output.write(members, form, stream)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_both_forms_say_the_same(form: str) -> None:
    text = _written(document.members(everything(), ABOUT), form)
    read = json.loads(text) if form == "json" else yaml.safe_load(text)
    assert read["format_version"] == "1.0"
    assert len(read["operations"]) == 1234 + 5
    assert read["operations"][0]["changes"] == [{"field": "mtu", "before": 1500, "after": 9000}]
    assert read["operations"][2]["fields"]["nexthops"] == ["via 192.0.2.1 dev wan0"]
    assert read["summary"]["create"] == 1234
    assert read["unknown"] == [{"kind": "rule", "reason": "the dump was interrupted"}]


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("members", [[("a", iter(()))], [("a", []), ("b", {"c": "→"})]])
def test_empty_lists_and_odd_characters(members: Members, form: str) -> None:
    members = list(members)
    text = _written(members, form)
    read = json.loads(text) if form == "json" else yaml.safe_load(text)
    assert read == {name: [] if name == "a" else value for name, value in members}


def test_a_long_list_is_not_held_in_memory() -> None:
    """The first piece is there before the source has been asked for its second item."""
    asked = itertools.count()
    source = ({"number": next(asked)} for _ in range(10))
    pieces = json_text([("list", source)])
    written = ""
    while "number" not in written:
        written += next(pieces)
    assert next(asked) == 1
