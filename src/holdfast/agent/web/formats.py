"""How pages write times and names."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from holdfast.agent.phases import LOOKS
from holdfast.agent.stories import event
from holdfast.agent.stories.status import ago


def _moment(seconds: float | None) -> str:
    return "" if not seconds else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _hour(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def _phase_look(phase: str) -> str:
    return next((look for known, look in LOOKS.items() if known.value == phase), "dim")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


FILTERS: dict[str, Callable[..., str]] = {
    "moment": _moment,
    "hour": _hour,
    "ago": lambda seconds: ago(int(seconds)),
    "phase_look": _phase_look,
    "event_look": event.look,
    "value": _value,
}
