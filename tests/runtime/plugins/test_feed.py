"""holdfast-feed: routes from files and web servers."""

from __future__ import annotations

import json
import os
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from holdfast.plugin import Failed, Request, feed

REQUEST = Request("offices", {})


def look(monkeypatch: pytest.MonkeyPatch, **settings: str) -> list[str]:
    for name in ("FEED", "FORMAT", "NAME", "TTL", "VIA", "TABLE", "METRIC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    answer = feed.look(REQUEST).document()["status"]
    assert answer["ttl"]
    routes: list[str] = answer["resources"][0]["spec"]["routes"] if answer["resources"] else []
    return routes


def test_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "routes.csv"
    place.write_text("prefix,via,metric\n203.0.113.0/24,192.0.2.1,50\n2001:db8::/32,fe80::1,\n")
    assert look(monkeypatch, FEED=str(place), TABLE="100") == [
        "203.0.113.0/24 via 192.0.2.1 metric 50 table 100",
        "2001:db8::/32 via fe80::1 table 100",
    ]


def test_json_of_plain_prefixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "routes.json"
    place.write_text(json.dumps(["203.0.113.0/24", {"prefix": "198.51.100.0/24", "dev": "lan"}]))
    assert look(monkeypatch, FEED=str(place), VIA="192.0.2.9") == [
        "203.0.113.0/24 via 192.0.2.9",
        "198.51.100.0/24 via 192.0.2.9 dev lan",
    ]


def test_an_empty_feed_contributes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "routes.json"
    place.write_text("[]")
    assert look(monkeypatch, FEED=str(place)) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "prefix\n203.0.113.0/24\n", "a.csv:2: needs via or dev"),
        ("a.csv", "prefix,via\nx,192.0.2.1\n", "a.csv:2: prefix: 'x' does not appear"),
        ("a.csv", "prefix,via\n203.0.113.1/24,192.0.2.1\n", "has host bits set"),
        ("a.csv", "via\n192.0.2.1\n", "a.csv:1: the head line"),
        ("a.csv", "prefix,via\n203.0.113.0/24,192.0.2.1,9\n", "a.csv:2: more values"),
        ("a.csv", "prefix,dev\n203.0.113.0/24,lan; rm\n", "is not the name of an interface"),
        ("a.csv", "prefix,via,metric\n203.0.113.0/24,192.0.2.1,low\n", "metric 'low'"),
        ("a.csv", "prefix,via,metric\n203.0.113.0/24,192.0.2.1,\u0663\n", "is not a number"),
        ("a.json", "{}", "must be a list"),
        ("a.json", "[[1]]", "a.json[0]: is neither"),
        ("a.json", '[{"prefix": "203.0.113.0/24", "gw": "x"}]', "unknown field 'gw'"),
        ("a.json", "[", "is not JSON"),
        ("a.txt", "", "set FORMAT"),
    ],
)
def test_what_cannot_be_read_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    place = tmp_path / name
    place.write_text(text)
    with pytest.raises(Failed) as caught:
        look(monkeypatch, FEED=str(place))
    assert said in str(caught.value)


def test_no_feed_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failed, match="FEED is not set"):
        look(monkeypatch)
    with pytest.raises(Failed, match="No such file"):
        look(monkeypatch, FEED=str(tmp_path / "none.json"))
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(Failed, match="not a regular file"):
        look(monkeypatch, FEED=str(tmp_path / "pipe.json"))


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/routes.json":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'["203.0.113.0/24"]')
        elif self.path == "/half.csv":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"prefix\n203.0.113.0/24\n")
        elif self.path == "/chunks.csv":
            self.protocol_version = "HTTP/1.1"
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"50\r\nprefix\n203.0.113.0/24\n")
            self.close_connection = True
        elif self.path == "/away.json":
            self.send_response(302)
            self.send_header("Location", "file:///etc/hostname")
            self.end_headers()
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Answers) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_address[1]}"
        found.shutdown()
        thread.join()


def test_from_a_web_server(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(monkeypatch, FEED=f"{server}/routes.json", VIA="192.0.2.1") == [
        "203.0.113.0/24 via 192.0.2.1"
    ]
    with pytest.raises(Failed, match="Not Found"):
        look(monkeypatch, FEED=f"{server}/no.json")
    with pytest.raises(Failed):
        look(monkeypatch, FEED=f"{server}/away.json")
    with pytest.raises(Failed, match="refused"):
        look(monkeypatch, FEED="http://127.0.0.1:1/routes.json")


@pytest.mark.parametrize(
    ("name", "said"), [("half", "was cut short, 78 bytes"), ("chunks", "IncompleteRead")]
)
def test_half_of_an_answer_is_none(
    server: str, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    with pytest.raises(Failed, match=said):
        look(monkeypatch, FEED=f"{server}/{name}.csv", VIA="192.0.2.1")


def test_who_answers_stays_proven() -> None:
    asked = urllib.request.Request("https://feed.example/a.csv")
    follow = feed._SameScheme().redirect_request
    with pytest.raises(Failed, match="which is not followed"):
        follow(asked, None, 302, "", {}, "http://feed.example/a.csv")
    assert follow(asked, None, 302, "", {}, "https://other.example/a.csv") is not None
