"""What is answered on the local address, by plain HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from holdfast.agent.web.address import parse_listen
from holdfast.web.server_sent_events import MOST_STREAMS
from tests.agent.two_providers import until
from tests.agent.web.conftest import COOKIE, KEY, Scene

_COOKIE = f"{COOKIE}={KEY}"
_STREAM = (
    f"GET /api/v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1:9473\r\nCookie: {_COOKIE}\r\n\r\n"
).encode()


def get(
    path: str, method: str = "GET", host: str = "127.0.0.1:9473", cookie: str = _COOKIE
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", 9473, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host)
    connection.putheader("Cookie", cookie)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_health_and_metrics(scene: Scene) -> None:
    assert get("/healthz") == (200, "ok\n")
    assert get("/readyz") == (200, "ok\n")
    status, text = get("/metrics")
    assert status == 200
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert values['holdfast_resources{phase="Healthy"}'] == "3.0"
    assert values['holdfast_resources{phase="Pending"}'] == "1.0"
    assert values["holdfast_troubles"] == "0.0"
    assert json.loads(get("/api/v1/status")[1])["troubles"] == []
    assert "pending: Interface/spare" in scene.daemon.said()
    assert float(values["holdfast_passes_total"]) >= 1
    assert float(values["holdfast_events_total"]) >= 3
    before = float(values.get('holdfast_hints_total{kind="route"}', 0))
    scene.netns.ip("route del 203.0.113.0/24")
    scene.daemon.wait_for("repaired")
    text = get("/metrics")[1]
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values['holdfast_hints_total{kind="route"}']) > before


def test_not_ready_without_a_valid_file(scene: Scene) -> None:
    scene.daemon.end()
    scene.file.write_text("kind: Nonsense\n")
    (scene.root / "var/lib/holdfast/state.db").unlink()
    from tests.agent.daemon import serve

    with serve(scene.root, scene.file) as daemon:
        daemon.wait_for("was never valid")
        until(lambda: _answers(), "an answer")
        assert get("/healthz")[0] == 200
        status, text = get("/readyz")
        assert status == 503
        assert "no pass" in text
        assert get("/")[0] == 200


def _answers() -> bool:
    try:
        get("/healthz")
    except OSError:
        return False
    return True


@pytest.mark.usefixtures("scene")
def test_nothing_can_be_changed_and_nobody_else_can_read() -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert get("/api/v1/status", method)[0] == 405
    assert get("/", host="evil.example:9473")[0] == 421
    assert get("/", host="127.0.0.1:9473.evil.example")[0] == 421
    assert get("/", host="localhost:9473")[0] == 200
    assert get("/static/../app.py")[0] == 404
    assert get("/static/..%2fapp.py")[0] == 404
    assert get("/generations/99")[0] == 404
    assert get("/generations/x")[0] == 404
    assert get("/nothing")[0] == 404
    assert get("/api/v1/events/stream?after=x")[0] == 400


@pytest.mark.usefixtures("scene")
def test_documents() -> None:
    status = json.loads(get("/api/v1/status")[1])
    assert status["counts"] == {"Healthy": 3, "Pending": 1}
    assert status["pass"]["count"] >= 1
    assert json.loads(get("/api/v1/plan")[1])["operations"] == []
    events = json.loads(get("/api/v1/events?kind=created")[1])["events"]
    assert {one["kind"] for one in events} == {"created"}
    assert json.loads(get("/api/v1/generations")[1])["generations"][0]["number"] == 1


def _stream() -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", 9473, timeout=20)
    connection.request(
        "GET", "/api/v1/events/stream", headers={"Connection": "close", "Cookie": _COOKIE}
    )
    return connection.getresponse()


def _stream_status() -> int:
    """Without reading what never ends."""
    with closing(_stream()) as answer:
        return answer.status


def test_streams_that_are_asked_for_all_at_once(scene: Scene) -> None:  # noqa: ARG001 (made)
    """None of them was read of when the others were let in."""
    asked = [socket.create_connection(("127.0.0.1", 9473), timeout=20) for _ in range(40)]
    for sock in asked:
        sock.sendall(_STREAM)
    answers = [sock.recv(12) for sock in asked]
    assert answers.count(b"HTTP/1.1 200") == MOST_STREAMS
    assert answers.count(b"HTTP/1.1 503") == 40 - MOST_STREAMS
    for sock in asked:
        sock.close()
    until(lambda: _stream_status() == 200, "their places are free again")


@pytest.mark.usefixtures("scene")
def test_a_number_of_another_ledger_is_no_dead_end() -> None:
    connection = http.client.HTTPConnection("127.0.0.1", 9473, timeout=20)
    connection.request(
        "GET", "/api/v1/events/stream", headers={"Last-Event-ID": "999999", "Cookie": _COOKIE}
    )
    answer = connection.getresponse()
    newest = json.loads(get("/api/v1/events")[1])["events"][-1]["sequence"]
    assert answer.readline().decode() == f"id: {newest}\n"
    connection.close()


def test_what_cannot_be_told_now_is_not_said_to_be_missing(scene: Scene) -> None:
    assert get("/generations/99")[0] == 404
    assert get("/generations/99999999999999999999")[0] == 404
    ledger = scene.root / "var/lib/holdfast/state.db"
    ledger.rename(ledger.with_suffix(".away"))
    ledger.write_text("no database, and longer than a hundred bytes, as SQLite reads it" * 4)
    status, said = get("/generations/1")
    assert (status, "could not read the ledger" in said) == (503, True)


def test_streams_that_nobody_reads(scene: Scene) -> None:
    """They hold nothing up; those above the limit are refused."""
    idle: list[socket.socket] = []
    try:
        for _ in range(16):
            sock = socket.create_connection(("127.0.0.1", 9473))
            sock.sendall(_STREAM)
            idle.append(sock)
        until(lambda: _stream_status() == 503, "the limit")
        for _ in range(30):
            scene.netns.ip("route del 203.0.113.0/24")
            until(lambda: "203.0.113.0/24" in scene.netns.ip("route"), "the repair")
            time.sleep(0.02)
        assert get("/healthz") == (200, "ok\n")
    finally:
        for sock in idle:
            sock.close()


_ASKING = b"GET /static/page.js HTTP/1.1\r\nHost: 127.0.0.1:9473\r\n"


@pytest.mark.parametrize(
    "said",
    [b"", _ASKING, (_ASKING + b"\r\n") * 500],
    ids=["say nothing", "do not end what they say", "do not read what they are told"],
)
def test_clients_that_keep_connections_keep_nobody_from_health(scene: Scene, said: bytes) -> None:
    with ExitStack() as kept:
        stream = kept.enter_context(closing(_stream()))
        for _ in range(150):
            sock = kept.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(20)
            sock.connect(("127.0.0.1", 9473))
            sock.setblocking(False)
            with suppress(BlockingIOError):
                sock.send(said)
        assert get("/healthz") == (200, "ok\n")
        assert get("/metrics")[0] == 200
        descriptors = Path(f"/proc/{scene.daemon.process.pid}/fd")
        until(lambda: len(list(descriptors.iterdir())) < 140, "most of them gave way")
        # A stream is not what gives way.
        scene.netns.ip("route del 203.0.113.0/24")
        while b"203.0.113.0/24" not in stream.readline():
            pass


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.0.0.0:9473", "not an address of the loopback"),
        ("192.0.2.1:80", "not an address of the loopback"),
        ("[::]:9473", "not an address of the loopback"),
        ("localhost:9473", "not an IP address"),
        ("127.0.0.1", "not an address and port"),
        ("127.0.0.1:0", "not an address and port"),
        ("127.0.0.1:99999", "not an address and port"),
    ],
)
def test_only_local_addresses(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_listen(text)


def test_ipv6() -> None:
    assert parse_listen("[::1]:9473").shown == "[::1]:9473"
