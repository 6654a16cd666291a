"""A plan, or what came of one, on a stream in the form asked for."""

from __future__ import annotations

from typing import TextIO

from holdfast.agent.stories import render
from holdfast.agent.stories import report as report_story
from holdfast.cli import output
from holdfast.cli.terminal import Style, say
from holdfast.engine import document
from holdfast.engine.document import About
from holdfast.engine.plan import Plan
from holdfast.engine.reconcile import Report


def plan(given: Plan, about: About, form: str, stream: TextIO) -> None:
    if form == "table":
        say(render.plan(given, Style.of(stream)), stream)
    else:
        output.write(document.members(given, about), form, stream)


def report(given: Report, generation: int, form: str, stream: TextIO) -> None:
    if form == "table":
        say(report_story.lines(given, Style.of(stream)), stream)
    else:
        output.write(report_story.members(given, generation), form, stream)
