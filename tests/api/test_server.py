"""The server with services that misbehave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits, sockets
from holdfast.api.callers import Caller
from holdfast.api.calls import CALLS
from holdfast.api.client import Client, connected
from holdfast.api.refusals import Refusals
from holdfast.api.server import Server
from holdfast.api.services import Services
from holdfast.errors import HoldfastError
from holdfast.paths import Paths

LONG = 120.0


class Faulty:
    """Answers nothing as it should."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.dropped = threading.Event()

    async def about(self, _request: pb.AboutRequest, _caller: Caller) -> pb.AboutReply:
        return pb.AboutReply(pid=1)

    async def status(self, _request: pb.StatusRequest, _caller: Caller) -> pb.StatusReply:
        raise ZeroDivisionError("not meant to happen")

    async def confirm(self, _request: pb.ConfirmRequest, _caller: Caller) -> pb.ConfirmReply:
        self.asked.set()
        await asyncio.sleep(LONG)
        raise AssertionError

    async def read(
        self, _request: pb.ReadEventsRequest, _caller: Caller
    ) -> AsyncGenerator[pb.ReadEventsReply, None]:
        try:
            while True:
                yield pb.ReadEventsReply(event=pb.Event(message="x" * 100_000))
        finally:
            self.dropped.set()

    def __getattr__(self, name: str) -> Any:
        async def nothing(_request: object, _caller: Caller) -> object:
            raise HoldfastError(name)

        return nothing


def services(backend: Any) -> Services:
    """One for all of them."""
    return Services(*[backend] * 7)


@contextmanager
def serving(root: Path, backend: Any, said: list[str]) -> Iterator[Client]:
    loop = asyncio.new_event_loop()
    server = Server(services(backend), said.append, Refusals(said.append))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(Paths(root)), loop).result(LONG)
        with sockets.folder(Paths(root)) as folder, connected(f"{folder}/holdfast.sock") as client:
            yield client
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(LONG)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_fault_of_ours_is_said_and_answered(root: Path) -> None:
    said: list[str] = []
    with serving(root, Faulty(), said) as client:
        with pytest.raises(HoldfastError, match="a fault of Holdfast's: ZeroDivisionError"):
            client.ask("Router.Status", pb.StatusRequest(), pb.StatusReply, LONG)
        assert client.about().pid == 1
    assert len(said) == 1
    assert said[0].startswith("Router.Status: a fault of Holdfast's: ZeroDivisionError")
    assert "test_server.py:" in said[0]


def test_a_call_that_takes_too_long_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGE_S", 0.2)
    with (
        serving(root, Faulty(), []) as client,
        pytest.raises(HoldfastError, match=r"did not answer Router\.Confirm in time"),
    ):
        client.ask("Router.Confirm", pb.ConfirmRequest(), pb.ConfirmReply, LONG)


def test_a_subscriber_that_never_reads_is_dropped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STALLED_S", 0.5)
    backend = Faulty()
    with serving(root, backend, []) as client:
        function = client.channel.unary_stream(CALLS["Events.Read"].path, bytes, bytes)
        stream = function(pb.ReadEventsRequest().SerializeToString())
        next(iter(stream))
        assert backend.dropped.wait(LONG)
        assert client.about().pid == 1
        with pytest.raises(grpc.RpcError) as told:
            for _ in stream:
                pass
        assert told.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "come back with the number" in (told.value.details() or "")
