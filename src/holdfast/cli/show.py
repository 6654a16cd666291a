"""A plan on a stream, in the form asked for."""

from __future__ import annotations

from typing import TextIO

from holdfast.cli import output, render
from holdfast.cli.terminal import Style, say
from holdfast.engine import document
from holdfast.engine.document import About
from holdfast.engine.plan import Plan


def plan(given: Plan, about: About, form: str, stream: TextIO) -> None:
    if form == "table":
        say(render.plan(given, Style.of(stream)), stream)
    else:
        output.write(document.members(given, about), form, stream)
