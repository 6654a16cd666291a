"""The API and the console beside the loop: without them, the router is kept as declared all the
same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from holdfast.agent.answers.backend import Backend
from holdfast.agent.answers.base import Loop
from holdfast.agent.web import view
from holdfast.agent.web.address import Listen
from holdfast.api.inherited import Inherited
from holdfast.errors import HoldfastError


@asynccontextmanager
async def api(loop: Loop, say: Callable[[str], None], inherited: Inherited) -> AsyncIterator[None]:
    """Answers while the body runs; what keeps it from that is said once."""
    from holdfast.api.server import Server  # takes a while to import; tests of the loop do without

    backend = Backend(loop)
    server = Server(backend, say, inherited)
    try:
        await server.start(loop.paths)
    except (OSError, HoldfastError) as error:
        say(f"the API is not served: {error}")
    try:
        yield
    finally:
        await server.stop()
        backend.close()


def web(
    loop: view.Loop, listen: Listen | None, say: Callable[[str], None]
) -> AbstractAsyncContextManager[None]:
    """The console and the metrics, on the address given, or nowhere."""
    if listen is None:
        return nullcontext()
    from holdfast.agent.web.server import web as served  # as above

    return served(loop, listen, say)
