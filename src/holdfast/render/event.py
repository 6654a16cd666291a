"""Events for people and programs."""

from __future__ import annotations

import time
from typing import Any

from holdfast.characters import escaped
from holdfast.engine import event_kinds
from holdfast.numbers import counted
from holdfast.render.style import Style
from holdfast.runtime.event_log import Missed, about
from holdfast.state.events import StoredEvent

_LOOKS = {
    event_kinds.CREATED: "green",
    event_kinds.HEALTHY: "green",
    event_kinds.REPAIRED: "green",
    event_kinds.DELETED: "yellow",
    event_kinds.UPDATED: "yellow",
}


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
    return f"{number}  {when}  {kind}  {escaped(f'{event.subject}: {event.message}')}{whose}"


def look(name: str) -> str:
    kind = event_kinds.EVENT_KINDS.get(name)
    if kind is None:
        return "cyan"
    return "red" if kind.warning else _LOOKS.get(kind, "cyan")


def clock(moment: float, today: str) -> str:
    local = time.localtime(moment)
    date = time.strftime("%Y-%m-%d", local)
    return time.strftime("%H:%M:%S", local) if date == today else f"{date} {_hour(local)}"


def _hour(local: time.struct_time) -> str:
    return time.strftime("%H:%M:%S", local)
