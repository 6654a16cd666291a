"""The client for programs without asyncio: the other one, on a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Self, TypeVar

from holdfast.api import routes_pb2 as pb
from holdfast.client import requests
from holdfast.client.async_routes import AsyncRoutes
from holdfast.client.requests import Event

T = TypeVar("T")


class Routes:
    """As `AsyncRoutes`; each method returns when it is done. It may be used by several threads."""

    def __init__(
        self,
        owner: str,
        *,
        token: str = "",
        token_file: str | os.PathLike[str] = "",
        socket: str = requests.SOCKET,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="holdfast-routes", daemon=True
        )
        self._owner, self._token, self._socket = owner, requests.token_of(token, token_file), socket
        self._routes: AsyncRoutes | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        self._thread.start()

        async def opened() -> AsyncRoutes:
            routes = AsyncRoutes(self._owner, token=self._token, socket=self._socket)
            await routes.open()
            return routes

        try:
            self._routes = self._run(opened())
        except BaseException:
            self._end()
            raise

    def close(self, *, withdraw: bool = False) -> None:
        try:
            self._run(self._open.close(withdraw=withdraw))
        finally:
            self._end()

    def declare(
        self,
        put: Sequence[pb.RouteObject] = (),
        withdraw: Sequence[pb.RouteKey] = (),
        *,
        each: bool = False,
        dry_run: bool = False,
        wait: float = 0.0,
    ) -> list[pb.RouteOutcome]:
        return self._run(self._open.declare(put, withdraw, each=each, dry_run=dry_run, wait=wait))

    def advertise(self, prefix: str, **attributes: Any) -> None:
        self._run(self._open.advertise(prefix, **attributes))

    def withdraw(self, prefix: str, protocol: str = "bgp") -> None:
        self._run(self._open.withdraw(prefix, protocol))

    def peer(self, address: str, remote_as: int, **fields: Any) -> None:
        self._run(self._open.peer(address, remote_as, **fields))

    def remove_peer(self, address: str) -> None:
        self._run(self._open.remove_peer(address))

    def status(self, owner: str = "") -> pb.RouteStatusReply:
        return self._run(self._open.status(owner))

    def sync(self, objects: Sequence[pb.RouteObject]) -> list[str]:
        return self._run(self._open.sync(objects))

    def events(self, *types: str, owner: str = "", after: int = 0) -> Iterator[Event]:
        found = self._open.events(*types, owner=owner, after=after)
        while True:
            yield self._run(anext(found))  # type: ignore[arg-type]  # an awaitable of an event

    @property
    def _open(self) -> AsyncRoutes:
        if self._routes is None:
            raise requests.RouteError("FAILED_PRECONDITION", "it is not open: use `with`")
        return self._routes

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._routes = None
