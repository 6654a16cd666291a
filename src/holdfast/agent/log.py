"""The daemon's log: a line for each thing said, in the form that whoever reads it wants."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

FORMS = ("text", "json", "journal")
# As syslog numbers them; the journal reads them off the start of a line.
_LEVELS = {"error": 3, "warning": 4, "info": 6}
_WARN = ("warning:", "conflict:", "blocked:", "unknown:", "fight")


def level(line: str) -> str:
    """By what the line begins with: lines are made to be read, and say it first."""
    first = line.partition(" ")[0]
    if "a fault of Holdfast's" in line or "could not" in line or "was not carried out" in line:
        return "error"
    if first in _WARN or first.endswith("-failed") or "is invalid" in line:
        return "warning"
    return "info"


def _text(line: str) -> str:
    now = time.time()
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    return f"{clock}.{int(now % 1 * 1000):03d} {line}"


def _json(line: str) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "level": level(line), "message": line})


def _journal(line: str) -> str:
    return f"<{_LEVELS[level(line)]}>{line}"


def fault(what: str, error: Exception) -> str:
    """A line about what nobody thought of."""
    said = f"{what}, which is a fault of Holdfast's: {error!r}"
    for where in traceback.extract_tb(error.__traceback__)[-1:]:
        said += f" in {where.name} ({Path(where.filename).name}:{where.lineno})"
    return said


def log(form: str) -> Callable[[str], None]:
    """Says lines on stderr. A line is one line, whatever stands in it. What cannot be written is
    lost: a full disk, or a reader that is gone, is no reason to leave the router alone."""
    shape = {"text": _text, "json": _json, "journal": _journal}[form]

    def say(line: str) -> None:
        with suppress(OSError):
            print(shape(" ".join(line.splitlines())), file=sys.stderr, flush=True)

    return say
