"""Those who propose beside the passes: plugins contribute parts, and parts propose actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holdfast.agent.actions.engine import Engine
from holdfast.agent.actions.schedule import Actions
from holdfast.agent.defaults import LEDGER_WAIT_S
from holdfast.agent.plugins.running import Runner
from holdfast.agent.plugins.schedule import Plugins
from holdfast.dataclass import dataclass, field
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.router import Router
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger


@dataclass(slots=True)
class Proposers:
    """On the event loop; what takes time runs in processes and threads of its own."""

    paths: Paths
    say: Callable[[str], None]
    generation: Callable[[], int]  # that is in force
    ran: Callable[[str], None]  # a source had its say (agent/sources.py)
    wake: Callable[[str], None]
    told: Callable[[Sequence[Event]], None]  # events that are recorded already
    plugins: Plugins = field(init=False)
    actions: Actions = field(init=False)
    _effective: Effective | None = None
    _startup: Router | None = None

    def __post_init__(self) -> None:
        self.plugins = Plugins(
            Runner(self.paths, self._ledger),
            lambda: self._effective,
            self.generation,
            self.ran,
            self.wake,
            self.say,
            self.told,
        )
        self.actions = Actions(Engine(self.paths, self._ledger), self.say, self.told)

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
