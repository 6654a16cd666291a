"""Signs as they come in, for tests to wait for."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.agent.watch.sign import Sign
from holdfast.engine.artifact import Key

LONG = 10.0
TAG = 72


@dataclass(slots=True)
class Heard:
    signs: list[Sign] = field(default_factory=list)
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, sign: Sign) -> None:
        self.signs.append(sign)
        self._more.set()

    async def until(self, wanted: Callable[[Sign], bool]) -> Sign:
        """The first that is so; it and those before it are forgotten."""
        async with asyncio.timeout(LONG):
            while True:
                for at, sign in enumerate(self.signs):
                    if wanted(sign):
                        del self.signs[: at + 1]
                        return sign
                self._more.clear()
                await self._more.wait()

    async def next(self) -> Sign:
        return await self.until(lambda _sign: True)

    async def of(self, kind: str, name: str | None = None) -> Sign:
        key = None if name is None else Key(kind, name)
        return await self.until(lambda sign: sign.kind == kind and sign.key == key)

    async def before(self, wanted: Callable[[Sign], bool]) -> list[Sign]:
        """All that came before the first that is so."""
        async with asyncio.timeout(LONG):
            while True:
                for at, sign in enumerate(self.signs):
                    if wanted(sign):
                        earlier = self.signs[:at]
                        del self.signs[: at + 1]
                        return earlier
                self._more.clear()
                await self._more.wait()


def write(path: Path, text: str) -> None:
    """As another program does it: what we write ourselves is no news."""
    subprocess.run(["tee", str(path)], input=text.encode(), stdout=subprocess.DEVNULL, check=True)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())
