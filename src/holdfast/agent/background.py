"""What runs beside the passes for as long as the daemon does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.runtime.log import fault

_AGAIN_S = 5.0


async def keep_running(run: Callable[[], Awaitable[None]], say: Callable[[str], None]) -> None:
    """A fault in it is said once, and it is begun again: nobody waits for a task that was to go on
    for ever, so that its end would be silent."""
    said = ""
    while True:
        try:
            await run()
            return
        except Exception as error:
            told = fault("a task of the daemon failed", error)
        if told != said:
            said = told
            say(told)
        await asyncio.sleep(_AGAIN_S)


def hear_faults(say: Callable[[str], None], missed: Callable[[], None]) -> None:
    """On this event loop, of callbacks that nobody waits for: a change outside that could not be
    read, say. Told to `missed`, for nobody knows what it was about."""
    said = ""

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal said
        error = context.get("exception")
        if not isinstance(error, Exception):
            error = RuntimeError(context["message"])
        told = fault("something beside the passes failed", error)
        if told != said:
            said = told
            say(told)
        missed()

    asyncio.get_running_loop().set_exception_handler(handle)
