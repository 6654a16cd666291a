"""Actions in the daemon: runs beside the passes, and never in their way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import HoldfastError, Refused
from holdfast.resources.dynamic.effective import Effective
from holdfast.runtime.actions.engine import Done, Engine
from holdfast.runtime.log import Level, Line
from holdfast.state.actions import FAILED, SUCCEEDED, Action
from holdfast.state.events import Event

# Windows open, parts end, claims are abandoned and other commands write the journal: it is looked
# at this often, whatever happens. It is also how far apart runs are that executed something, so
# that many merges in a row do not make `maxActionsPerRun` meaningless.
RUN_S = 60.0
# A merge seldom comes alone.
_DEBOUNCE_S = 0.2


@dataclass(slots=True)
class ActionSchedule:
    """One run at a time."""

    engine: Engine
    say: Callable[[str], None]
    told: Callable[[Sequence[Event]], None] = lambda _events: None
    run_s: float = RUN_S
    _effective: Effective | None = None
    _proposes: tuple[tuple[str, int], ...] | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _said: str = ""

    def changed(self, effective: Effective) -> None:
        """After every merge. Returns at once."""
        startup = self._effective.startup if self._effective is not None else None
        self._effective = effective
        proposes = tuple((p.source, p.generation) for p in effective.active if p.action_plans)
        if proposes != self._proposes or effective.startup is not startup:
            self._proposes = proposes
            self._wake.set()

    async def run(self) -> None:
        """Until it is cancelled. What is under way then stays `running` in the journal, and is
        resolved after the next start."""
        pause = self.run_s
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            await asyncio.sleep(_DEBOUNCE_S)
            self._wake.clear()
            if self._effective is None:
                continue
            if await self._guarded():
                await asyncio.sleep(self.run_s)
            pause = min(self.run_s, await asyncio.to_thread(self._until_deadline))

    async def execute(self, key: str = "") -> list[Done]:
        """Now, because somebody asks for it."""
        async with self._turn:
            return await self._engine().run(self._view, key)

    async def dry_run(self, key: str, *, undoes: bool = False) -> Done:
        return await self._engine().dry_run(self._view, key, undoes=undoes)

    async def rollback(self, key: str, by: str) -> Done:
        async with self._turn:
            return await self._engine().rollback(self._view, key, by)

    async def approve(self, key: str, by: str, digest: str = "") -> Action:
        approved = await asyncio.to_thread(self._engine().approve, self._view, key, by, digest)
        self._wake.set()
        return approved

    def _view(self) -> Effective:
        if self._effective is None:
            raise Refused("there is no valid startup file yet")
        return self._effective

    def _engine(self) -> Engine:
        """Events are told on the event loop, wherever they come from."""
        loop = asyncio.get_running_loop()

        def hear(events: Sequence[Event]) -> None:
            loop.call_soon_threadsafe(self.told, events)

        return replace(self.engine, hear=hear)

    def _until_deadline(self) -> float:
        """What a daemon before this one, or another process, left without a result is resolved as
        soon as that is possible."""
        try:
            left = self.engine.next_deadline()
        except HoldfastError:  # the run will say it
            return self.run_s
        # What has to wait longer (for a window to open) is not asked for all the time.
        return left + _DEBOUNCE_S if left else self.run_s

    async def _guarded(self) -> bool:
        """Whether anything was executed. Whatever goes wrong, there will be another run."""
        trouble, done = "", list[Done]()
        try:
            if not await asyncio.to_thread(self.engine.idle, self._view()):
                done = await self.execute()
        except HoldfastError as error:
            trouble = f"actions were not looked at: {error}"
        except Exception as error:
            trouble = f"actions were not looked at, which is a fault of Holdfast's: {error!r}"
        if trouble and trouble != self._said:
            self.say(Line(trouble, Level.ERROR))
        self._said = trouble
        for one in done:
            reason = "" if one.outcome == SUCCEEDED else f": {one.reason}"
            level = Level.ERROR if one.outcome == FAILED else Level.INFO
            self.say(Line(f"Action/{one.action.key} {one.outcome}{reason}", level))
        return bool(done)
