"""The console beside the loop: without it, the router is kept as declared all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from holdfast.agent.event_stream import EventStream
from holdfast.agent.web.app import make_app
from holdfast.agent.web.console import Console
from holdfast.agent.web.view import Loop, Seen
from holdfast.runtime.log import Level, Line
from holdfast.web.server import bound, serving, why_silent

_THREADS = 4


@asynccontextmanager
async def web(loop: Loop, console: Console, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Answers while the body runs; what keeps it from that is said once."""
    listen = console.listen
    # Of its own: readers must not take the threads that deadlines are kept in.
    threads = ThreadPoolExecutor(_THREADS, "web")
    app = make_app(Seen(loop, EventStream(loop.paths, threads)), console)
    try:
        sock = bound(listen)
        silent = why_silent(listen)
        if silent:
            say(Line(silent, Level.WARNING))
    except OSError as error:
        console.problem = f"{listen.shown} cannot be listened on ({error.strerror})"
        say(Line(f"{console.problem}: no console, no metrics", Level.ERROR))
        yield
        return
    try:
        async with serving(app, listen, sock):
            yield
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
