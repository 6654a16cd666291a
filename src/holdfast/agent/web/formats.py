"""How pages write times and names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.engine.artifact import in_words
from holdfast.render import contents, event
from holdfast.render.status import ago
from holdfast.runtime.phases import LOOKS, Phase


def _moment(seconds: float | None) -> str:
    return "" if not seconds else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def hour(seconds: float) -> str:
    """With the date, where that is not today."""
    return event.clock(seconds, time.strftime("%Y-%m-%d"))


def _phase_look(phase: str) -> str:
    return next((look for known, look in LOOKS.items() if known.value == phase), "dim")


def _worst_first(resources: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    order = [phase.value for phase in Phase]
    return sorted(resources, key=lambda resource: order.index(resource["phase"]))


FILTERS: dict[str, Callable[..., Any]] = {
    "moment": _moment,
    "hour": hour,
    "ago": lambda seconds: ago(int(seconds)),
    "phase_look": _phase_look,
    "worst_first": _worst_first,
    "event_look": event.look,
    "value": in_words,
    "changes": contents.changes,
}
