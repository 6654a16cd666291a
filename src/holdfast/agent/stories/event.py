"""Events for people and programs."""

from __future__ import annotations

import time
from typing import Any

from holdfast.agent.events.log import Missed, about
from holdfast.agent.stories.style import Style, counted
from holdfast.state.events import StoredEvent

_LOOKS = {
    "created": "green",
    "healthy": "green",
    "repaired": "green",
    "deleted": "yellow",
    "updated": "yellow",
}
# Of whatever goes wrong.
_BAD = ("failed", "rejected", "conflict", "fight", "drift", "reverted", "unhealthy", "lost")


def entry(event: StoredEvent | Missed) -> dict[str, Any]:
    if isinstance(event, Missed):
        return {"lagged": {"missed": event.count, "replay_after": event.replay_after}}
    return {
        "sequence": event.sequence,
        "time": event.time,
        "kind": event.kind,
        "subject": event.subject,
        "message": event.message,
        "generation": event.generation,
        "data": dict(event.data),
    }


def line(event: StoredEvent | Missed, style: Style, today: str) -> str:
    """`today`: the date that need not be said."""
    if isinstance(event, Missed):
        said = f"{counted(event.count, 'event')} dropped before they were read"
        return style(f"… {said}; those after {event.replay_after} follow", "yellow")
    when = style(clock(event.time, today), "dim")
    kind = style(event.kind.ljust(9), look(event.kind))
    owners = [name for name in about(event) if name != event.subject]
    whose = style(f" ({', '.join(owners[:3])})", "dim") if owners else ""
    number = style(str(event.sequence).rjust(5), "dim")
    return f"{number}  {when}  {kind}  {printable(f'{event.subject}: {event.message}')}{whose}"


def look(kind: str) -> str:
    if any(word in kind for word in _BAD):
        return "red"
    return _LOOKS.get(kind, "cyan")


def clock(moment: float, today: str) -> str:
    local = time.localtime(moment)
    date = time.strftime("%Y-%m-%d", local)
    return time.strftime("%H:%M:%S", local) if date == today else f"{date} {_hour(local)}"


def printable(text: str) -> str:
    """Other programs' words may hold what would move the cursor."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _hour(local: time.struct_time) -> str:
    return time.strftime("%H:%M:%S", local)
