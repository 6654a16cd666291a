"""The level of a line is what its speaker says, whatever the words are."""

from __future__ import annotations

import json

import pytest

from holdfast.agent import log_lines
from holdfast.engine import event_kinds
from holdfast.engine.event_kinds import EVENT_KINDS, EventKind
from holdfast.runtime.log import Level, Line, fault, log
from holdfast.state.events import Event

SAID = (
    "warning: this could not be, and is invalid: a fault of Holdfast's",
    Line("all is well", Level.WARNING),
    Line("two\nlines", Level.ERROR),
)


def test_what_the_journal_and_programs_read(capfd: pytest.CaptureFixture[str]) -> None:
    for form in ("json", "journal"):
        with log(form) as say:
            for line in SAID:
                say(line)
    read = capfd.readouterr().err.splitlines()
    entries = [json.loads(line) for line in read[:3]]
    assert [(one["level"], one["message"]) for one in entries] == [
        ("info", SAID[0]),
        ("warning", "all is well"),
        ("error", "two lines"),
    ]
    assert read[3:] == [f"<6>{SAID[0]}", "<4>all is well", "<3>two lines"]


def test_a_line_is_a_text() -> None:
    line = Line("blocked: x", Level.WARNING, of_resource=True)
    assert (line, line.level, line.of_resource) == ("blocked: x", Level.WARNING, True)
    assert json.dumps([line]) == '["blocked: x"]'
    assert log_lines.standing(line) is line
    assert log_lines.standing("x").level is Level.WARNING
    assert fault("it failed", ValueError("x")).level is Level.ERROR


@pytest.mark.parametrize("kind", EVENT_KINDS.values())
def test_events_have_the_level_of_their_kind(kind: EventKind) -> None:
    told = log_lines.line(Event(kind, "x", "could not"))
    level = Level.ERROR if kind.failure else Level.WARNING if kind.warning else Level.INFO
    assert (told, told.level) == (f"{kind} x: could not", level)


def test_what_was_a_warning_or_worse_by_its_words_still_is() -> None:
    for kind in (event_kinds.FIGHT, *(one for one in EVENT_KINDS.values() if one.failure)):
        assert log_lines.line(Event(kind, "x", "y")).level <= Level.WARNING
