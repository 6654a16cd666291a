"""A route file read again after an edit, against the same file read as if for the first time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigError
from holdfast.resources.router import Router, load_router
from holdfast.resources.routes import route_lines, route_list_edit
from holdfast.resources.routes.route_line import Defaults
from holdfast.resources.routes.route_list import RouteLines

_LINES = st.builds(
    lambda number, rest: f"10.0.{number}.0/24{rest}".encode(),
    st.integers(0, 30),
    st.sampled_from(
        [
            " via 192.0.2.1",
            " via 192.0.2.2",
            "  via  192.0.2.1",
            " via 192.0.2.1 metric 5",
            " via 192.0.2.1 # why",
            "#",
        ]
    ),
) | st.sampled_from([b"", b"# comment", b"oops", b"blackhole 10.9.0.0/16", b"\xff", b"10.0.0.1/8"])
_FILES = st.builds(
    lambda lines, end: b"\n".join(lines) + end,
    st.lists(_LINES, max_size=14),
    st.sampled_from([b"", b"\n", b"\n\n"]),
)


def _read(content: bytes) -> route_lines.Lines | None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    found = route_lines.read_exactly(route_lines.chunks(text), Defaults())
    return None if found.faults else found


@given(_FILES, _FILES, st.integers(0, 14), st.integers(0, 14))
def test_an_edited_file_reads_as_if_for_the_first_time(
    old: bytes, other: bytes, start: int, end: int
) -> None:
    lines = old.split(b"\n")
    new = b"\n".join([*lines[:start], *other.split(b"\n"), *lines[end:]])
    before, whole = _read(old), _read(new)
    if before is None or before.repeats:
        return
    found = route_list_edit.edited(before.groups, old, new, Defaults())
    if found is None:
        return
    assert whole is not None
    assert not whole.repeats
    assert {one: sorted(keys) for one, keys in found.items()} == {
        one: sorted(keys) for one, keys in whole.groups.items()
    }


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(1, 9))
def test_the_span_is_whole_lines_around_what_differs(old: bytes, new: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(route_list_edit, "_BLOCK", block)
        start, old_end, new_end = route_list_edit.span(old, new)
    assert old[:start] == new[:start]
    assert old[old_end:] == new[new_end:]
    assert 0 <= start <= min(old_end, new_end)
    for end, text in ((old_end, old), (new_end, new)):
        assert start == 0 or text[start - 1 : start] == b"\n"
        assert end == len(text) or text[end - 1 : end] == b"\n"


_CONFIG = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: RouteList
      metadata: {name: routes}
      spec: {file: routes.txt, gateway: 192.0.2.1}
"""


def _lines(router: Router) -> RouteLines:
    (resource,) = router.resources
    content: RouteLines = resource.content
    return content


def _keys(router: Router) -> list[bytes]:
    (keys,) = _lines(router).groups.values()
    return keys


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "router.yaml").write_text(_CONFIG)
    lines = sorted(f"10.0.{number}.0/24\n" for number in range(0, 200, 2))
    (tmp_path / "routes.txt").write_text("".join(lines))
    return tmp_path


def test_a_file_that_did_not_change_is_not_read_again(folder: Path) -> None:
    first = load_router(folder / "router.yaml")
    again = load_router(folder / "router.yaml", again=first)
    assert _lines(again) is _lines(first)
    assert again.files[1].content is first.files[1].content


@pytest.mark.parametrize("line", ["10.0.33.0/24", "10.0.255.0/24"])
def test_a_line_that_came_stands_at_its_place(folder: Path, line: str) -> None:
    first = load_router(folder / "router.yaml")
    text = (folder / "routes.txt").read_text().splitlines()
    (folder / "routes.txt").write_text("\n".join(sorted([*text, line])) + "\n")
    again = load_router(folder / "router.yaml", again=first)
    assert _keys(again) == _keys(load_router(folder / "router.yaml"))
    old = {id(key) for key in _keys(first)}
    # But for the new line and the one beside it, nothing was read.
    assert sum(id(key) not in old for key in _keys(again)) <= 2


def test_a_line_that_went_and_one_that_changed(folder: Path) -> None:
    first = load_router(folder / "router.yaml")
    text = (folder / "routes.txt").read_text()
    text = text.replace("10.0.40.0/24\n", "").replace("10.0.44.0/24\n", "10.0.44.0/25\n")
    (folder / "routes.txt").write_text(text)
    again = load_router(folder / "router.yaml", again=first)
    assert _keys(again) == _keys(load_router(folder / "router.yaml"))
    assert len(_keys(again)) == 99


def test_faults_in_an_edit_are_told_with_their_lines(folder: Path) -> None:
    first = load_router(folder / "router.yaml")
    routes = folder / "routes.txt"
    routes.write_text(routes.read_text().replace("10.0.44.0/24\n", "10.0.44.1/24\n"))
    with pytest.raises(ConfigError) as fresh:
        load_router(folder / "router.yaml")
    with pytest.raises(ConfigError) as again:
        load_router(folder / "router.yaml", again=first)
    assert fresh.value.problems == again.value.problems
    assert fresh.value.problems[0].place.startswith(f"{routes}:")


def test_a_route_that_stands_elsewhere_already(folder: Path) -> None:
    first = load_router(folder / "router.yaml")
    routes = folder / "routes.txt"
    routes.write_text(routes.read_text() + "10.0.44.0/24 via 192.0.2.9\n")
    with pytest.raises(ConfigError) as raised:
        load_router(folder / "router.yaml", again=first)
    assert "is also on line" in raised.value.problems[0].message


def test_a_route_written_twice_goes_with_its_last_line(folder: Path) -> None:
    routes = folder / "routes.txt"
    text = routes.read_text()
    routes.write_text(text + "10.0.44.0/24\n")
    first = load_router(folder / "router.yaml")
    assert len(_keys(first)) == 100
    routes.write_text(text)
    again = load_router(folder / "router.yaml", again=first)
    assert len(_keys(again)) == 100


def test_other_defaults_are_read_anew(folder: Path) -> None:
    first = load_router(folder / "router.yaml")
    (folder / "router.yaml").write_text(_CONFIG.replace("192.0.2.1", "192.0.2.2"))
    again = load_router(folder / "router.yaml", again=first)
    (template,) = _lines(again).groups
    assert template.nexthops[0].gateway == "192.0.2.2"
