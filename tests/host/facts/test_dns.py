"""Lookups: of a real server, and of some that mean no good."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest

from holdfast.host.facts import answers, clock, dns
from holdfast.host.facts.dns import ask
from holdfast.paths import Paths
from holdfast.resources.facts import Lookup
from tests.namespace import Namespace

MANY = [f"10.1.{index // 250}.{index % 250 + 1}" for index in range(60)]
RECORDS = [
    "--host-record=aftr.example,2001:db8::a,300",
    "--host-record=aftr.example,2001:db8::b,300",
    "--host-record=v4.example,192.0.2.7,77",
    "--cname=alias.example,v4.example,60",
    *(f"--host-record=many.example,{address}" for address in MANY),
    "--local=/example/",
]


@contextmanager
def dnsmasq(*options: str, listen: str = "127.0.0.1") -> Iterator[subprocess.Popen[bytes]]:
    command = ["dnsmasq", "-k", "-C", "/dev/null", "--no-hosts", "--no-resolv", "--pid-file"]
    command += [f"--listen-address={listen}", "--bind-interfaces", "--user=root", *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + 60
            while not _open(listen):
                assert time.monotonic() < end
                time.sleep(0.02)
            yield server
        finally:
            server.terminate()
            server.wait(timeout=60)


def _open(listen: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((listen, 53)) == 0


@pytest.fixture
def server(netns: Namespace) -> Iterator[str]:
    del netns  # whose loopback it listens on
    with dnsmasq(*RECORDS):
        yield "127.0.0.1"


@contextmanager
def liar(answer: Callable[[bytes], list[bytes]], listen: str = "127.0.0.2") -> Iterator[str]:
    """A server that says what it is told to each question, on a thread."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((listen, 53))
        sock.settimeout(60)

        def serve() -> None:
            while True:
                question, sender = sock.recvfrom(4096)
                if question == b"end":
                    return
                for one in answer(question):
                    sock.sendto(one, sender)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listen
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"end", (listen, 53))
            thread.join()


def _reply(question: bytes, address: str, *, flags: int = 0x8180, count: int = 1) -> bytes:
    record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04" + ip_address(address).packed
    head = question[:2] + flags.to_bytes(2) + b"\0\1" + count.to_bytes(2) + bytes(4)
    return head + question[12:] + record * count


def test_answers_of_a_real_server(server: str) -> None:
    lookups = [
        Lookup("aftr.example", 6, (server,)),
        Lookup("V4.example.", 4, (server,)),
        Lookup("alias.example", 4, (server,)),
        Lookup("v4.example", 6, (server,)),
        Lookup("none.example", 4, (server,)),
    ]
    found, failures = ask(lookups, ())
    assert failures == []
    said = {lookup.name: (set(answer.addresses), answer.ttl) for lookup, answer in found.items()}
    assert said["aftr.example"] == ({IPv6Address("2001:db8::a"), IPv6Address("2001:db8::b")}, 300)
    assert said["V4.example."] == ({IPv4Address("192.0.2.7")}, 77)
    assert said["alias.example"] == ({IPv4Address("192.0.2.7")}, 60)
    assert found[lookups[3]].addresses == ()
    assert found[lookups[4]].addresses == ()


def test_long_answers_come_over_tcp(server: str) -> None:
    lookup = Lookup("many.example", 4, (server,))
    found, failures = ask([lookup], ())
    assert failures == []
    assert set(map(str, found[lookup].addresses)) == set(MANY)


def test_one_server_that_answers_is_enough(server: str) -> None:
    # Nobody listens on the first; the second can answer nothing.
    with dnsmasq("--port=53", listen="127.0.0.3"):
        lookup = Lookup("v4.example", 4, ("127.0.0.9", "127.0.0.3", server))
        found, failures = ask([lookup], ())
    assert failures == []
    assert found[lookup].addresses == (IPv4Address("192.0.2.7"),)


def test_answers_to_other_questions_are_passed_over(netns: Namespace) -> None:
    del netns

    def forged(question: bytes) -> list[bytes]:
        wrong = (int.from_bytes(question[:2]) ^ 1).to_bytes(2) + question[2:]
        other = question.replace(b"name", b"game")
        return [
            b"",
            question,  # a question, no answer
            _reply(wrong, "6.6.6.1"),
            _reply(other, "6.6.6.2"),
            _reply(question, "6.6.6.3")[:-1],
            _reply(question, "6.6.6.4", count=1)[:6] + b"\0\2" + _reply(question, "6.6.6.4")[8:],
            _reply(question, "192.0.2.8"),
        ]

    with liar(forged) as server:
        lookup = Lookup("name.example", 4, (server,))
        found, failures = ask([lookup], ())
    assert failures == []
    assert found[lookup].addresses == (IPv4Address("192.0.2.8"),)


def test_records_of_other_names_are_passed_over(netns: Namespace) -> None:
    del netns

    def poisoned(question: bytes) -> list[bytes]:
        stranger = b"\3abc\0\0\x01\0\x01\0\0\0\x3c\0\x04\x06\x06\x06\x06"
        return [question[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question[12:] + stranger]

    with liar(poisoned) as server:
        lookup = Lookup("name.example", 4, (server,))
        found, _ = ask([lookup], ())
    assert found[lookup].addresses == ()


def test_a_server_that_fails_says_nothing_of_the_name(netns: Namespace) -> None:
    del netns
    with liar(lambda question: [_reply(question, "6.6.6.6", flags=0x8182, count=0)]) as server:
        found, failures = ask([Lookup("name.example", 4, (server,))], ())
    assert found == {}
    assert [failure.reason for failure in failures] == ["127.0.0.2: code 2"]


def test_nobody_answers(netns: Namespace) -> None:
    del netns
    lookups = [
        Lookup("name.example", 4, ("127.0.0.9",)),
        Lookup("name.example", 6),
        Lookup("a..b", 4, ("127.0.0.9",)),
        Lookup("name.example", 4, ("127.0.0.2",)),
    ]
    with liar(lambda _question: []):
        found, failures = ask(lookups, (), time_s=0.3)
    assert found == {}
    reasons = {(one.lookup.name, one.lookup.family, one.reason) for one in failures}
    assert reasons == {
        ("name.example", 4, "127.0.0.9: Connection refused"),
        ("name.example", 6, "there is no DNS server to ask"),
        ("a..b", 4, "'a..b' is not a domain name"),
        ("name.example", 4, "no answer from 127.0.0.2"),
    }


def test_a_lost_question_is_asked_again(netns: Namespace) -> None:
    del netns
    heard: list[bytes] = []

    def deaf(question: bytes) -> list[bytes]:
        heard.append(question)
        return [_reply(question, "192.0.2.8")] if len(heard) > 1 else []

    with liar(deaf) as server:
        found, failures = ask([Lookup("name.example", 4, (server,))], ())
    assert failures == []
    assert len(found) == 1


def test_the_systems_servers(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    assert dns.system_servers(Paths(tmp_path)) == ()
    (tmp_path / "etc/resolv.conf").write_text(
        "# nameserver 6.6.6.6\nsearch x\nnameserver 192.0.2.1\nnameserver fe80::1%eth0 # y\n"
        "nameserver bad\nnameserver\n"
    )
    assert dns.system_servers(Paths(tmp_path)) == ("192.0.2.1", "fe80::1%eth0")


def test_an_answer_outlives_its_server(
    netns: Namespace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del netns
    lookup = Lookup("v4.example", 4, ("127.0.0.1",))
    paths, troubles = Paths(root), list[str]()
    with dnsmasq(*RECORDS):
        known = answers.read_answers(paths, [lookup], troubles)
    assert known == {lookup: (IPv4Address("192.0.2.7"),)}
    # Within its lifetime nobody is asked.
    assert answers.read_answers(paths, [lookup], troubles) == known
    assert troubles == []
    later = clock.uptime() + 78
    monkeypatch.setattr(clock, "uptime", lambda: later)
    assert answers.read_answers(paths, [lookup], troubles) == known
    refused = "v4.example could not be looked up: 127.0.0.1: Connection refused"
    assert troubles == [f"{refused}; the last answer stands"]
    # The server is back, and has another one.
    with dnsmasq("--host-record=v4.example,192.0.2.9,60"):
        assert answers.read_answers(paths, [lookup], []) == {lookup: (IPv4Address("192.0.2.9"),)}


def test_answers_that_cannot_be_kept(netns: Namespace, root: Path) -> None:
    del netns
    lookup = Lookup("v4.example", 4, ("127.0.0.1",))
    path = Paths(root).under(answers.FILE)
    path.parent.mkdir(parents=True)
    for spoiled in (b"", b"[]", b'{"answers": [1]}', b'{"answers": [{"name": "v4.example"}]}'):
        path.write_bytes(spoiled)
        troubles = list[str]()
        assert answers.read_answers(Paths(root), [lookup], troubles) == {}
        assert len(troubles) == 1
