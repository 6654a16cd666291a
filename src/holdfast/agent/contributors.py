"""Those who propose beside the passes: plugins contribute parts, and parts propose actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holdfast.agent.action_schedule import ActionSchedule
from holdfast.agent.plugin_schedule import PluginSchedule
from holdfast.dataclass import dataclass, field
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.router import Router
from holdfast.runtime.actions.engine import Engine
from holdfast.runtime.defaults import LEDGER_WAIT_S
from holdfast.runtime.plugins.run import PluginRunner
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger


@dataclass(slots=True)
class Contributors:
    """On the event loop; what takes time runs in processes and threads of its own."""

    paths: Paths
    say: Callable[[str], None]
    generation: Callable[[], int]  # that is in force
    ran: Callable[[str], None]  # a source had its say (agent/sources.py)
    wake: Callable[[str], None]
    told: Callable[[Sequence[Event]], None]  # events that are recorded already
    plugins: PluginSchedule = field(init=False)
    actions: ActionSchedule = field(init=False)
    _effective: Effective | None = None
    _startup: Router | None = None

    def __post_init__(self) -> None:
        self.plugins = PluginSchedule(
            PluginRunner(self.paths, self._ledger),
            lambda: self._effective,
            self.generation,
            self.ran,
            self.wake,
            self.say,
            self.told,
        )
        self.actions = ActionSchedule(Engine(self.paths, self._ledger), self.say, self.told)

    def follow(self, effective: Effective) -> None:
        """After every merge."""
        self._effective = effective
        self.actions.changed(effective)
        if effective.startup is not self._startup:
            self._startup = effective.startup
            self.plugins.watch(effective.startup.resources)

    def hear(self, events: Iterable[Event]) -> None:
        self.plugins.hear(events)

    def _ledger(self) -> Ledger:
        return Ledger.open(self.paths, command="holdfast serve", wait=LEDGER_WAIT_S)
