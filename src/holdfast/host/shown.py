"""Lines of what is on this machine, as they may be shown: without secrets.

What a terminal would act upon is escaped on the way out, as everything is (`characters`).
"""

from __future__ import annotations

from holdfast.config.redaction import redact_lines
from holdfast.config.secret_names import holds_secrets
from holdfast.dataclass import replace
from holdfast.engine.difference import Difference, Line


def lines(content: bytes) -> list[str]:
    *whole, last = content.decode(errors="replace").split("\n")
    return [*whole, last, "\\ No newline at end of file"] if last else whole


def cleaned(given: Difference) -> Difference:
    hunks = (
        replace(hunk, lines=tuple(Line(sign, _line(text)) for sign, text in hunk.lines))
        for hunk in given.hunks
    )
    return replace(given, hunks=tuple(hunks))


def _line(text: str) -> str:
    return redact_lines(text, holds_secrets)
