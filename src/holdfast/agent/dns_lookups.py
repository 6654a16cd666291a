"""Names that resources refer to, asked for beside the passes: a server that does not answer slows
none of them down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from holdfast.dataclass import dataclass, field
from holdfast.host.facts.read import read_facts
from holdfast.paths import Paths
from holdfast.resources.facts import Address, Lookup

# Asked for again this often; an answer that does not come leaves the last one standing.
_LOOKUP_S = 60.0


@dataclass(slots=True)
class DnsLookups:
    paths: Paths
    changed: Callable[[], None]
    answers: dict[Lookup, tuple[Address, ...]] = field(default_factory=dict)
    unanswered: tuple[str, ...] = ()
    _wanted: tuple[Lookup, ...] = ()
    _asked: asyncio.Event = field(default_factory=asyncio.Event)

    def want(self, wanted: tuple[Lookup, ...]) -> None:
        if wanted == self._wanted:
            return
        self._wanted = wanted
        self.answers = {lookup: self.answers[lookup] for lookup in wanted if lookup in self.answers}
        self._asked.set()

    async def run(self) -> None:
        while True:
            self._asked.clear()
            if self._wanted:
                try:
                    await self._look_up(self._wanted)
                except Exception as error:
                    self.unanswered = (f"names were not looked up: {error!r}",)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOKUP_S):
                    await self._asked.wait()

    async def _look_up(self, wanted: tuple[Lookup, ...]) -> None:
        found = await asyncio.to_thread(read_facts, self.paths, wanted)
        self.unanswered = found.troubles
        fresh = {lookup: found.answers[lookup] for lookup in wanted if lookup in found.answers}
        if any(self.answers.get(lookup) != answer for lookup, answer in fresh.items()):
            self.answers = {**self.answers, **fresh}
            self.changed()
