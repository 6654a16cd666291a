"""What is too much, too long or no message at all; the daemon goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits, sockets
from holdfast.api.calls import CALLS, Call
from holdfast.engine import event_kinds
from holdfast.errors import HoldfastError
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from tests.agent.two_providers import until
from tests.api.conftest import Served

LONG = 120.0


def raw(served: Served, call: Call, data: bytes) -> grpc.StatusCode:
    """The code that a call with these bytes is answered with."""
    name = next(one.name for one in sockets.SOCKETS if call.service in one.services)
    channel = served.client(name).channel
    try:
        if call.streams:
            list(channel.unary_stream(call.path, bytes, bytes)(data, timeout=LONG))
        else:
            channel.unary_unary(call.path, bytes, bytes)(data, timeout=LONG)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK


def test_what_is_no_message(served: Served) -> None:
    huge = b"\x7a" + b"\xff" * limits.MAX_REQUEST_BYTES
    for call in CALLS.values():
        token_first = call.service in sockets.ROUTES.services and not call.reads
        expected = grpc.StatusCode.INVALID_ARGUMENT
        if token_first:  # over that socket, whoever shows none is told nothing of the message
            expected = grpc.StatusCode.UNAUTHENTICATED
        assert raw(served, call, b"\xff\xff\xff") == expected, call.short
        assert raw(served, call, huge) == grpc.StatusCode.RESOURCE_EXHAUSTED, call.short
    assert served.client().about().pid == served.daemon.process.pid
    assert "Traceback" not in served.daemon.said()


def test_a_call_that_nobody_knows(served: Served) -> None:
    channel = served.client().channel
    with pytest.raises(grpc.RpcError) as told:
        channel.unary_unary("/holdfast.v1.Router/Nonsense", bytes, bytes)(b"", timeout=LONG)
    assert told.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_one_subscriber_too_many(served: Served) -> None:
    client = served.client()
    asked = pb.ReadEventsRequest(follow=True)
    streams = [
        client.stream("Events.Read", asked, pb.ReadEventsReply, LONG)
        for _ in range(limits.MAX_SUBSCRIBERS)
    ]
    for stream in streams:
        next(stream)
    with pytest.raises(HoldfastError, match="others read events already"):
        next(client.stream("Events.Read", asked, pb.ReadEventsReply, LONG))
    assert client.ask("Router.Status", pb.StatusRequest(), pb.StatusReply, LONG).healthy
    streams.pop().close()  # type: ignore[attr-defined]  # a generator

    def room() -> bool:
        try:
            next(client.stream("Events.Read", asked, pb.ReadEventsReply, LONG))
        except HoldfastError:
            return False
        return True

    until(room, "a place to be free")


SUBSCRIBER = """
    import sys
    from pathlib import Path
    from holdfast.api import holdfast_pb2 as pb
    from holdfast.api import sockets
    from holdfast.api.client import connected
    from holdfast.paths import Paths

    paths = Paths(Path(sys.argv[1]))
    with sockets.folder(paths) as folder, connected(f"{folder}/holdfast.sock") as c:
        asked = pb.ReadEventsRequest(follow=True)
        for reply in c.stream("Events.Read", asked, pb.ReadEventsReply, None):
            if reply.HasField("lagged"):
                print("lagged", reply.lagged.missed, reply.lagged.replay_after, flush=True)
            else:
                print("event", reply.event.sequence, flush=True)
"""


@contextmanager
def subscriber(served: Served, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    with out.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SUBSCRIBER), str(served.root)], stdout=stream
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_subscriber_that_does_not_read_is_told_what_it_missed(
    served: Served, tmp_path: Path
) -> None:
    out = tmp_path / "read"
    with subscriber(served, out) as process:
        until(lambda: "event 1\n" in out.read_text(), "the first event")
        os.kill(process.pid, signal.SIGSTOP)
        newest = 0
        for _ in range(6):
            with Ledger.open(served.paths, command="test", wait=LONG) as ledger:
                newest = ledger.append_events(
                    Event(event_kinds.CREATED, "test", f"{n} {'x' * 2000}") for n in range(5000)
                )
            # Neither passes nor other calls wait for it.
            client = served.client()
            assert client.ask("Router.Status", pb.StatusRequest(), pb.StatusReply, LONG).healthy
            assert (
                next(
                    client.stream(
                        "Events.Read", pb.ReadEventsRequest(last=1), pb.ReadEventsReply, LONG
                    )
                ).event.sequence
                == newest
            )
        os.kill(process.pid, signal.SIGCONT)
        until(lambda: f"event {newest}\n" in out.read_text(), "the newest event")
    read, missed, at = 0, 0, 0
    for line in out.read_text().splitlines():
        words = line.split()
        if words[0] == "lagged":
            missed += int(words[1])
            assert int(words[2]) == at + int(words[1])
            at = int(words[2])
        else:
            read += 1
            assert int(words[1]) == at + 1
            at += 1
    assert missed > 0
    assert read + missed == newest
