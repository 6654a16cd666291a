"""The thread that passes run in, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class PassThread(ThreadPoolExecutor):
    def __init__(self) -> None:
        super().__init__(1, "pass")

    async def work(self, work: Callable[..., T], *arguments: object) -> T:
        """Not on the event loop: probes go on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self, work, *arguments)
