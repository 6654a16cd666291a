"""A plan, or what came of one, on a stream in the form asked for."""

from __future__ import annotations

from typing import TextIO

from holdfast.cli import output
from holdfast.cli.terminal import Style, say
from holdfast.engine import document
from holdfast.engine.difference import NOT_READ, Differences
from holdfast.engine.document import About
from holdfast.engine.plan import Plan
from holdfast.engine.reconcile import Report
from holdfast.render import plan_text
from holdfast.render import report as report_story


def plan(
    given: Plan, about: About, form: str, stream: TextIO, differences: Differences = NOT_READ
) -> None:
    if form == "table":
        say(plan_text.plan(given, Style.of(stream), differences), stream)
    else:
        output.write(document.members(given, about, differences), form, stream)


def report(given: Report, generation: int, form: str, stream: TextIO) -> None:
    if form == "table":
        say(report_story.lines(given, Style.of(stream)), stream)
    else:
        output.write(report_story.members(given, generation), form, stream)
