"""Routing control in the daemon: what it is made of, and what it does without being called."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from holdfast.agent.event_stream import EventStream
from holdfast.agent.services.backend import Backend
from holdfast.agent.services.frr_sightings import FrrSightings
from holdfast.agent.services.route_desk import RouteDesk
from holdfast.agent.services.route_sources import LedgerDeclarations, StartupPolicies
from holdfast.agent.services.route_store import LedgerJournal, LedgerNotes
from holdfast.api.refusals import TOO_MANY, UNAUTHENTICATED
from holdfast.api.sockets import ROUTES
from holdfast.runtime.routes.control import Control
from holdfast.runtime.routes.leases import Leases
from holdfast.runtime.routes.metrics import RouteNumbers
from holdfast.runtime.routes.overrides import Overrides
from holdfast.runtime.routes.tally import Tally


class Routing:
    def __init__(
        self, backend: Backend, events: EventStream, refused: Mapping[tuple[str, str], int]
    ) -> None:
        """refused: calls, by socket and reason."""
        self._refused = refused
        tally, notes = Tally(), LedgerNotes(backend)
        self._journal = LedgerJournal(backend, events, tally)
        policies = StartupPolicies(backend)
        self._declarations = LedgerDeclarations(backend, policies)
        control = Control(policies, self._declarations, self._journal, Overrides(notes), tally)
        leases = Leases(notes, time.monotonic)
        self._sightings = FrrSightings(backend, lambda: control.index().holders)
        self.desk = RouteDesk(control, leases, self._sightings, events, backend.loop.wake)

    def numbers(self) -> RouteNumbers:
        """Raises CallRefused before the first pass. It is asked for in other threads."""
        control, desk = self.desk.control, self.desk
        return RouteNumbers(
            control.tally,
            desk.picture(),
            frozenset(control.policies.owners()),
            len(desk.sessions),
            sum(
                count
                for (socket, reason), count in dict(self._refused).items()
                if socket == ROUTES.name and reason in (UNAUTHENTICATED, TOO_MANY)
            ),
        )

    def tasks(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        """Each goes on for as long as the daemon does."""
        return self._journal.write, self._declarations.watch, self.desk.keep_leases, self._look

    async def _look(self) -> None:
        await self.desk.ready()
        await self._sightings.watch(self.desk.looked)
