"""Colour, progress, and names of places."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from holdfast.cli.terminal import ProgressLine, counted, relative_places, wants_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "on_terminal", "in_pipe"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"TERM": "xterm", "CLICOLOR_FORCE": "0"}, True, False),
        ({"TERM": "xterm", "CLICOLOR_FORCE": ""}, True, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_when_there_is_colour(
    environment: dict[str, str], on_terminal: bool, in_pipe: bool
) -> None:
    assert wants_colour(Terminal(), environment) is on_terminal
    assert wants_colour(io.StringIO(), environment) is in_pipe


def test_progress_is_one_line_and_only_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("holdfast.cli.terminal.time.monotonic", lambda: now[0])
    stream = Terminal()
    line = ProgressLine(stream)
    line(10, 100_000)
    assert stream.getvalue() == ""
    now[0] += 1.1
    line(50_000, 100_000)
    line(50_001, 100_000)
    assert stream.getvalue() == "\r\x1b[Kapplying 50 000 of 100 000 (50 %)"
    line.clear()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_no_progress_into_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("holdfast.cli.terminal.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    line = ProgressLine(stream)
    now[0] += 5
    line(1, 2)
    line.clear()
    assert stream.getvalue() == ""


def test_places_are_said_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = f"{tmp_path}/r.yaml:3:5: see {tmp_path}/sub/x.txt:9 and file {tmp_path}/kept"
    assert relative_places(text) == f"r.yaml:3:5: see sub/x.txt:9 and file {tmp_path}/kept"
    monkeypatch.chdir("/")
    assert relative_places("/etc/r.yaml:3:5") == "/etc/r.yaml:3:5"


def test_counting() -> None:
    assert counted(1, "route") == "1 route"
    assert counted(0, "route") == "0 routes"
    assert counted(1234567, "route") == "1 234 567 routes"
