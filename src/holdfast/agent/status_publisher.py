"""How things stand after a pass: one value for whoever asks, and lines of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.log_lines import Troubles, standing
from holdfast.dataclass import dataclass, field, replace


@dataclass(slots=True)
class StatusPublisher:
    """On the event loop."""

    say: Callable[[str], None]  # one line for the log
    status: DaemonStatus = field(default_factory=DaemonStatus)
    other_troubles: tuple[str, ...] = ()  # what was wrong at the last pass besides its plan
    unserved: dict[str, str] = field(default_factory=dict)  # what is not served, and why
    _troubles: Troubles = field(default_factory=Troubles)

    def publish(self, status: DaemonStatus, troubles: Iterable[str], *waiting: str) -> None:
        """Says what was not so a moment ago."""
        known = tuple(map(standing, dict.fromkeys(troubles)))
        for line in self._troubles.news((*known, *waiting)):
            self.say(line)
        self.status = replace(status, troubles=known)

    def tell(self, line: str) -> None:
        """As it happens. Where it stays so, it is a trouble that was said."""
        self.say(line)
        self._troubles.told(line)

    def publish_trouble(self, trouble: str) -> None:
        """No pass was carried out, for this reason."""
        self.publish(self.status, (*self.other_troubles, trouble))
