"""No control character gets in, and none of those that others have put somewhere gets out."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.characters import escaped, escaped_lines, trouble
from holdfast.cli.output import yaml_text
from holdfast.cli.terminal import say
from holdfast.config.document import SourceFile, parse
from holdfast.errors import ConfigError
from holdfast.render.documents import json_text
from holdfast.render.style import Style, fit
from holdfast.resources import registry
from holdfast.resources.dynamic.dynamic_config_part import part_of
from holdfast.resources.spec.document import Frame, Metadata, parse_name
from holdfast.resources.spec.reference import example
from holdfast.resources.spec.shape import Entry, ShapeError, Spec
from holdfast.resources.spec.values import parse_ifname
from holdfast.runtime import part_checks
from holdfast.runtime.log import log
from tests.resources.parts import NOW, part, raw
from tests.resources.test_mutations import part_document

UNFIT = (
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ud800\udfff",
)
FIT = "abc äöü € 漢字 مرحبا 👍🏽 \u00a0-\u200d/\\\"'"
_FOUND = re.compile(f"[{re.escape(''.join(UNFIT))}]")
_words = st.text(st.sampled_from([*UNFIT, *FIT]), max_size=40)


def _fields(spec: type[Spec], above: tuple[type[Spec], ...] = ()) -> Iterator[tuple[Any, Entry]]:
    for entry in spec.entries:
        yield spec, entry
        if entry.shape.nested is not None and entry.shape.nested not in above:
            yield from _fields(entry.shape.nested, (*above, spec))


_KINDS = [registry.kind(name).spec for name in registry.names()]
FIELDS = [
    *((spec, entry) for kind in _KINDS for spec, entry in _fields(kind)),
    *((Metadata, entry) for entry in Metadata.entries),
    *((Frame, entry) for entry in Frame.entries if not entry.shape.unchecked),
]


@given(
    field=st.sampled_from(FIELDS),
    unfit=st.sampled_from(UNFIT),
    around=st.tuples(st.text("ab./:1", max_size=8), st.text("ab./:1", max_size=8)),
    wrapped=st.sampled_from(["alone", "in a list", "as a value", "as a key"]),
)
def test_no_field_of_any_kind_takes_one(
    field: tuple[type[Spec], Entry], unfit: str, around: tuple[str, str], wrapped: str
) -> None:
    """Whatever the field is for, and in whatever its value is wrapped."""
    spec, entry = field
    text = unfit.join(around)
    value: Any = {
        "alone": text,
        "in a list": [text],
        "as a value": {"A": text},
        "as a key": {text: "a"},
    }[wrapped]
    lines = entry.shape.lines and unfit in "\t\n"
    with pytest.raises(ShapeError) as caught:
        spec.read({entry.name: value})
    said = [one for one in caught.value.complaints if one.location[:1] == (entry.name,)]
    if not lines:
        assert said
        assert not [one for one in said if _FOUND.search(one.message)]


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _leaves(one, (*path, name))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _leaves(one, (*path, number))
    elif isinstance(value, str):
        yield path


def _with(value: Any, path: tuple[str | int, ...], unfit: str) -> Any:
    if not path:
        return f"{value}{unfit}"
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], unfit)
    return copy


@pytest.mark.parametrize("name", list(registry.names()))
def test_no_text_of_an_example_may_have_one(name: str) -> None:
    """By name and by frame too, from a file and from a part."""
    whole: dict[str, Any] = parse(SourceFile("example", example(name).encode())).data
    for path in _leaves(whole):
        for unfit in ("\r", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\0", "\ud800"):
            bad = _with(whole, path, unfit)
            with pytest.raises(ValueError, match=r"."):
                frame = Frame.read(bad)
                registry.kind(name).spec.read(frame.spec)
            assert list(part_checks.problems(part("Owner/ci", bad), NOW)), (path, unfit)


@pytest.mark.parametrize("unfit", ["\r", "\x1b", "\x9b", "\u202e", "\ud800"])
def test_a_part_may_have_none_anywhere(unfit: str) -> None:
    document = part_document([raw("IPv4Route", "a", {"destination": "10.0.0.0/8"})])
    for path in _leaves({one: document["spec"][one] for one in ("source", "observedAt")}):
        with pytest.raises(ConfigError):
            part_of(_with(document, ("spec", *path), unfit))
    mask = {
        "op": "mask",
        "target": {"apiVersion": "a", "kind": "b", "name": "c"},
        "reason": "because",
    }
    for path in _leaves(mask):
        with pytest.raises(ConfigError):
            document["spec"]["directives"] = [_with(mask, path, unfit)]
            part_of(document)


@given(_words)
def test_what_is_escaped(text: str) -> None:
    assert not trouble(escaped(text))
    assert not trouble(escaped_lines(text), lines=True)
    assert escaped_lines(text).count("\n") == text.count("\n")
    if not _FOUND.search(text):
        assert escaped(text) == text


@pytest.mark.parametrize(
    "hidden", [*"\u200b\u200e\u00ad\u2060\ufeff\ue000", "\U000e0041", "\U000f0000"]
)
def test_what_shows_nothing_is_shown_escaped(hidden: str) -> None:
    """Two texts that look equal are; prose may hold it all the same, and names may not."""
    shown = escaped(f"la{hidden}n")
    assert shown.isascii()
    assert shown == escaped_lines(f"la{hidden}n")
    assert f"{ord(hidden):x}" in shown
    assert not trouble(f"la{hidden}n")
    for parse_one in (parse_name, parse_ifname):
        with pytest.raises(ValueError, match="name"):
            parse_one(f"la{hidden}n")


def test_letters_of_any_script_are_shown_as_they_are() -> None:
    for text in ("naïve", "م\u200cر", "👩\u200d👩", "\u0600\u0661\u0662", "漢字", "\u00a0"):
        assert escaped(text) == text


@given(_words)
def test_documents_say_it_in_other_characters(text: str) -> None:
    members = [("one", text), ("many", iter([{"name": text}, [text]]))]
    written = "".join(json_text(members))
    assert not trouble(written, lines=True)
    assert json.loads(written) == {"one": text, "many": [{"name": text}, [text]]}


@given(_words.filter(lambda text: not re.search("[\ud800-\udfff]", text)))
def test_yaml_says_it_in_other_characters(text: str) -> None:
    written = "".join(yaml_text([("one", text), ("many", iter([{"name": text}]))]))
    assert not trouble(written, lines=True)
    assert yaml.safe_load(written) == {"one": text, "many": [{"name": text}]}


@given(_words, st.booleans())
def test_a_terminal_gets_no_colours_but_ours(text: str, colour: bool) -> None:
    line = f"link {Style(colour)('eth0', 'red', 'bold')} {text}\x1b[8m\x1b[2J"
    shown = fit(line, colour=colour)
    assert shown.startswith(f"link {Style(colour)('eth0', 'red', 'bold')} ")
    rest = shown.removeprefix(f"link {Style(colour)('eth0', 'red', 'bold')} ")
    assert not trouble(rest, lines=True)
    assert "\\x1b[8m\\x1b[2J" in rest


def test_lines_for_people_in_a_file() -> None:
    stream = io.StringIO()
    say(["a\x1b[31mb\rc\u202ed"], stream)
    assert stream.getvalue() == "a\\x1b[31mb\\x0dc\\u202ed\n"


def test_a_line_of_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with log("journal") as tell:
        tell("by evil\x1b]0;title\x07 (process 7)\nconflict: \x9b2J")
    assert capfd.readouterr().err == "<6>by evil\\x1b]0;title\\x07 (process 7) conflict: \\x9b2J\n"
