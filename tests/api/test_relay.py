"""The relay between the service manager's listener and the server's own socket."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits, sockets
from holdfast.api.client import Client, connected
from holdfast.api.conditions import Gone
from holdfast.api.inherited import Inherited
from holdfast.api.refusals import Refusals
from holdfast.api.relay import Relay
from holdfast.api.server import Server
from holdfast.paths import Paths
from tests.api.handed import NAMES, held
from tests.api.test_server import LONG, Faulty, services


@contextmanager
def looping() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def relayed(listener: socket.socket, place: Path) -> Iterator[Callable[[], None]]:
    """While it runs; what is given stops it from taking more."""
    taken = socket.socket(fileno=socket.dup(listener.fileno()))
    taken.setblocking(False)
    with looping() as loop:
        relay = Relay(taken, str(place), limits.MAX_CONNECTIONS)

        def on_loop(work: Callable[[], None]) -> None:
            async def run() -> None:
                work()

            asyncio.run_coroutine_threadsafe(run(), loop).result(LONG)

        on_loop(relay.start)
        try:
            yield lambda: on_loop(relay.pause)
        finally:
            asyncio.run_coroutine_threadsafe(relay.end(), loop).result(LONG)


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with listening(tmp_path / "outer") as one:
        yield one


@contextmanager
def listening(place: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(place))
        one.listen()
        one.settimeout(LONG)
        yield one


def caller(place: Path) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(LONG)
    one.connect(str(place))
    return one


def everything(one: socket.socket) -> bytes:
    return b"".join(iter(lambda: one.recv(1 << 20), b""))


def accepted(inner: socket.socket) -> socket.socket:
    one, _ = inner.accept()
    one.settimeout(LONG)
    return one


def test_the_end_of_what_is_asked_is_not_that_of_the_answer(
    listener: socket.socket, tmp_path: Path
) -> None:
    question, answer = b"q" * 3_000_000, b"a" * 3_000_000
    with (
        listening(tmp_path / "inner") as inner,
        relayed(listener, tmp_path / "inner"),
        caller(tmp_path / "outer") as client,
    ):
        heard: list[bytes] = []

        def serve() -> None:
            with accepted(inner) as server:
                heard.append(everything(server))
                server.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        client.sendall(question)
        client.shutdown(socket.SHUT_WR)
        assert everything(client) == answer
        server.join(LONG)
        assert heard == [question]


def test_who_takes_nothing_holds_up_who_sends(listener: socket.socket, tmp_path: Path) -> None:
    with (
        listening(tmp_path / "inner") as inner,
        relayed(listener, tmp_path / "inner"),
        caller(tmp_path / "outer") as client,
        accepted(inner) as server,
    ):
        server.settimeout(0.5)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 100 << 20:
                sent += server.send(b"x" * 65536)
        assert sent < 4 << 20  # what the kernel and the relay hold between them
        client.settimeout(LONG)
        server.close()
        assert len(everything(client)) == sent


def test_a_client_that_goes_away_ends_its_call(listener: socket.socket, tmp_path: Path) -> None:
    with listening(tmp_path / "inner") as inner, relayed(listener, tmp_path / "inner"):
        client = caller(tmp_path / "outer")
        with accepted(inner) as server:
            client.close()
            assert everything(server) == b""


def test_so_many_at_once(
    listener: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who speaks is not sent away for the next, which waits."""
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 2)
    with listening(tmp_path / "inner") as inner, relayed(listener, tmp_path / "inner"):
        calls = []
        taken = []
        for _ in range(2):
            calls.append(caller(tmp_path / "outer"))
            calls[-1].sendall(b"x")
            taken.append(accepted(inner))
            assert taken[-1].recv(1) == b"x"
        calls.append(caller(tmp_path / "outer"))
        inner.settimeout(2 * limits.UNSAID_S)
        with pytest.raises(TimeoutError):
            inner.accept()  # the third waits
        inner.settimeout(LONG)
        taken[0].close()
        accepted(inner).close()
        for one in (taken[1], *calls):
            one.close()


def test_who_says_nothing_gives_way_and_the_oldest_first(
    listener: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 3)
    with listening(tmp_path / "inner") as inner, relayed(listener, tmp_path / "inner"):
        speaks = caller(tmp_path / "outer")
        speaks.sendall(b"x")
        heard = accepted(inner)
        assert heard.recv(1) == b"x"
        silent = [caller(tmp_path / "outer") for _ in range(4)]
        assert everything(silent[0]) == b"", "it was sent away"
        assert everything(silent[1]) == b""
        heard.sendall(b"y")
        assert speaks.recv(1) == b"y", "the one that spoke was not"
        for one in (speaks, heard, *silent):
            one.close()


@pytest.mark.parametrize("first", ["next", "question"])
def test_who_has_spoken_is_not_sent_away_by_a_busy_process(
    first: str, listener: socket.socket, tmp_path: Path
) -> None:
    """It did so in time, and nobody had the time to read it."""

    async def run() -> None:
        listener.setblocking(False)
        relay = Relay(listener, str(tmp_path / "inner"), most=1)
        relay.start()
        loop = asyncio.get_running_loop()
        client = caller(tmp_path / "outer")
        inner.setblocking(False)
        server, _ = await loop.sock_accept(inner)
        waiting = []

        def call() -> None:
            waiting.append(caller(tmp_path / "outer"))

        steps: list[Callable[[], None]] = [call, lambda: client.sendall(b"x")]
        for step in steps if first == "next" else reversed(steps):
            step()
        time.sleep(2 * limits.UNSAID_S)
        server.setblocking(False)
        assert await asyncio.wait_for(loop.sock_recv(server, 1), LONG) == b"x"
        await loop.sock_sendall(server, b"y")
        client.setblocking(False)
        assert await asyncio.wait_for(loop.sock_recv(client, 1), LONG) == b"y"
        for one in (client, server, *waiting):
            one.close()
        await relay.end()

    with listening(tmp_path / "inner") as inner:
        asyncio.run(run())


@pytest.mark.parametrize("descriptors", [0, 256, 1024, 4096, 65536, 1 << 30])
def test_connections_never_take_what_passes_need(descriptors: int) -> None:
    most = limits.connections(descriptors)
    assert 4 <= most <= limits.MAX_CONNECTIONS
    if descriptors >= 512:
        taken = 2 * most * limits.DESCRIPTORS_EACH
        assert descriptors - taken >= limits.RESERVED_DESCRIPTORS


def test_no_room_for_a_descriptor(
    listener: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "NO_ROOM_S", 0.1)
    failures = [OSError(24, "Too many open files")] * 2

    class Full(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            if failures:
                raise failures.pop()
            return super().accept()

    taken = Full(fileno=socket.dup(listener.fileno()))
    with (
        listening(tmp_path / "inner") as inner,
        relayed(taken, tmp_path / "inner"),
        caller(tmp_path / "outer"),
        taken,
    ):
        accepted(inner).close()


def test_after_its_end_callers_wait_for_another(listener: socket.socket, tmp_path: Path) -> None:
    with (
        listening(tmp_path / "inner") as inner,
        caller(tmp_path / "outer") as early,
        contextlib.ExitStack() as waiting,
    ):
        with relayed(listener, tmp_path / "inner") as pause, accepted(inner):
            pause()
            late = waiting.enter_context(caller(tmp_path / "outer"))
        assert everything(early) == b""  # its server is gone
        with relayed(listener, tmp_path / "inner"), accepted(inner) as server:
            server.sendall(b"hello")
            assert late.recv(5) == b"hello"


def test_a_server_that_is_not_there(listener: socket.socket, tmp_path: Path) -> None:
    with relayed(listener, tmp_path / "inner"), caller(tmp_path / "outer") as client:
        assert everything(client) == b""


@contextmanager
def served(root: Path, backend: Faulty) -> Iterator[Client]:
    with held(root) as found, looping() as loop:
        for one in found:
            one.setblocking(False)
        handed = {name: one.dup() for name, one in zip(NAMES, found, strict=True)}
        server = Server(services(backend), print, Refusals(print), Inherited(handed))
        asyncio.run_coroutine_threadsafe(server.start(Paths(root)), loop).result(LONG)
        with sockets.folder(Paths(root)) as folder, connected(f"{folder}/{NAMES[0]}") as client:
            yield client
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(LONG)
        for one in handed.values():
            one.close()  # the server has copies


def test_a_subscriber_that_never_reads_is_dropped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STALLED_S", 0.5)
    backend = Faulty()
    with served(root, backend) as client:
        events = client.stream("Events.Read", pb.ReadEventsRequest(), pb.ReadEventsReply, LONG)
        next(events)
        assert backend.dropped.wait(LONG)
        assert client.about().pid == 1
        events.close()  # type: ignore[attr-defined]  # a generator


def test_a_call_under_way_is_told_of_the_end(root: Path) -> None:
    told: list[BaseException] = []
    backend = Faulty()
    with served(root, backend) as client:
        client.about()

        def ask() -> None:
            try:
                client.ask("Router.Confirm", pb.ConfirmRequest(), pb.ConfirmReply, LONG)
            except Gone as error:
                told.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        assert backend.asked.wait(LONG)
    asking.join(LONG)
    assert len(told) == 1
