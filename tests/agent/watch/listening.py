"""Hints as they come in, for tests to wait for."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.agent.watch.hint import Hint
from holdfast.engine.artifact import Key

LONG = 120.0
TAG = 72


@dataclass(slots=True)
class Heard:
    hints: list[Hint] = field(default_factory=list)
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, hint: Hint) -> None:
        self.hints.append(hint)
        self._more.set()

    async def until(self, wanted: Callable[[Hint], bool]) -> Hint:
        """The first that is so; it and those before it are forgotten."""
        async with asyncio.timeout(LONG):
            while True:
                for at, hint in enumerate(self.hints):
                    if wanted(hint):
                        del self.hints[: at + 1]
                        return hint
                self._more.clear()
                await self._more.wait()

    async def next(self) -> Hint:
        return await self.until(lambda _hint: True)

    async def of(self, kind: str, name: str | None = None) -> Hint:
        key = None if name is None else Key(kind, name)
        return await self.until(lambda hint: hint.kind == kind and hint.key == key)

    async def before(self, wanted: Callable[[Hint], bool]) -> list[Hint]:
        """All that came before the first that is so."""
        async with asyncio.timeout(LONG):
            while True:
                for at, hint in enumerate(self.hints):
                    if wanted(hint):
                        earlier = self.hints[:at]
                        del self.hints[: at + 1]
                        return earlier
                self._more.clear()
                await self._more.wait()


def write(path: Path, text: str) -> None:
    """As another program does it: what we write ourselves is no news."""
    subprocess.run(["tee", str(path)], input=text.encode(), stdout=subprocess.DEVNULL, check=True)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())
