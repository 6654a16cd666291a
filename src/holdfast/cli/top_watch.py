"""What `holdfast top` looks at again and again: the daemon, or the host where none runs."""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from holdfast.api.conditions import Gone
from holdfast.cli import daemon, events, status
from holdfast.cli.top_view import Check, PassSeen, PluginSeen, Snapshot
from holdfast.dataclass import dataclass, field
from holdfast.errors import HoldfastError
from holdfast.paths import Paths
from holdfast.render.status import elapsed
from holdfast.runtime.event_log import Filter, Missed, read_last, read_page
from holdfast.state.events import StoredEvent

_EVERY_S = 1.0
# Without a daemon, each view is a look at the whole host.
_ALONE_EVERY_S = 3.0
_PASSES = 3


@dataclass(slots=True)
class Watch:
    paths: Paths
    file: Path | None
    most_events: int = 500
    _found: daemon.Daemon | None = None
    _open: ExitStack = field(default_factory=ExitStack)
    _events: deque[StoredEvent | Missed] = field(default_factory=deque)
    _passes: deque[PassSeen] = field(default_factory=lambda: deque(maxlen=_PASSES))
    _next: float = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def due(self) -> float:
        """Seconds until the next look."""
        return max(0.0, self._next - time.monotonic())

    def look(self) -> Snapshot:
        now = time.time()
        try:
            seen = self._look(now)
        except Gone:
            self._open.close()
            self._found = None
            seen = Snapshot(now, "the daemon ended; waiting for another one", None)
        except HoldfastError as error:
            seen = Snapshot(now, self._who(now), None, troubles=tuple(str(error).splitlines()))
        self._next = time.monotonic() + (_EVERY_S if self._found else _ALONE_EVERY_S)
        return seen

    def _look(self, now: float) -> Snapshot:
        if self._found is None:
            connecting = daemon.connect(self.paths, reads=True, waits=False)
            found = self._open.enter_context(connecting)
            self._found = found if found is not None and found.serves(self.file) else None
        self._read_events()
        seen = tuple(self._events)
        if self._found is None:
            told = status.alone(self.paths, self.file)
            return Snapshot(now, self._who(now), told, told.troubles, events=seen)
        told, reply = self._found.status(last_pass=True)
        self._note_pass(
            PassSeen(reply.passes.last, reply.passes.seconds, tuple(reply.passes.causes))
        )
        return Snapshot(
            now,
            self._who(now),
            told,
            tuple(reply.troubles),
            tuple(
                Check(
                    health_check.name,
                    None if health_check.unknown else health_check.healthy,
                    health_check.reason,
                )
                for health_check in reply.health_checks
            ),
            self._plugins(self._found),
            tuple(self._passes),
            seen,
        )

    def _plugins(self, found: daemon.Daemon) -> tuple[PluginSeen, ...]:
        from holdfast.api import holdfast_pb2 as pb

        data, _ = found.documents("Plugins.List", pb.ListPluginsRequest())
        return tuple(_plugin(load) for load in json.loads(data)["plugins"])

    def _who(self, now: float) -> str:
        if self._found is None:
            return "no daemon runs; a look at the host every few seconds"
        about = self._found.about
        up = elapsed(max(0, int(now - about.started)))
        return f"daemon {about.version}, process {about.pid}, up {up}"

    def _note_pass(self, seen: PassSeen) -> None:
        if seen.when and (not self._passes or self._passes[0].when != seen.when):
            self._passes.appendleft(seen)

    def _read_events(self) -> None:
        after = events.number(self._events[-1]) if self._events else 0
        if self._found is not None:
            last = 0 if after else self.most_events
            wanted = events.Wanted(Filter(), after, last, follow=False)
            self._events.extend(events.of_daemon(self._found, wanted))
        elif after:
            page = read_page(self.paths, after, Filter())
            self._events.extend((page.missed, *page.events) if page.missed else page.events)
        else:
            self._events.extend(read_last(self.paths, self.most_events, Filter()).events)
        while len(self._events) > self.most_events:
            self._events.popleft()


def _plugin(entry: dict[str, Any]) -> PluginSeen:
    last = entry["lastRun"]
    if last is None:
        return PluginSeen(entry["name"], "", "")
    return PluginSeen(entry["name"], last["outcome"], last["reason"] or last["started"])
