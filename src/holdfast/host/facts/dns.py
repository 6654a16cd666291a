"""DNS lookups: all questions to all their servers at once, within one short time."""

from __future__ import annotations

import secrets
import selectors
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from ipaddress import ip_address

from dns.name import Name

from holdfast.config import regular_file
from holdfast.dataclass import dataclass, field
from holdfast.host.facts import dns_message
from holdfast.host.facts.dns_message import Answer, Nonsense, ServerFailed, Truncated
from holdfast.paths import Paths
from holdfast.resources.facts import Lookup

PORT = 53
TIME_S = 2.0  # for everything together; a pass waits for it
_AGAIN_S = 0.7  # datagrams get lost
_SERVERS_MAX = 8
_TCP_SIZE = struct.Struct("!H")


@dataclass(slots=True)
class _Question:
    lookup: Lookup
    name: Name
    servers: Sequence[str]
    answer: Answer | None = None
    refusals: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Conversation:
    """One question to one server: a socket of its own, so that the kernel picks a port by chance
    and lets nothing in that others sent."""

    question: _Question
    server: str
    sock: socket.socket
    identity: int
    message: bytes

    def send(self) -> None:
        try:
            self.sock.send(self.message)
        except OSError as error:
            self.fail(error.strerror or str(error))

    def fail(self, why: str) -> None:
        self.question.refusals.append(f"{self.server}: {why}")


@dataclass(frozen=True, slots=True)
class Failure:
    lookup: Lookup
    reason: str


def ask(
    lookups: Sequence[Lookup], system_servers: Sequence[str], *, time_s: float = TIME_S
) -> tuple[Mapping[Lookup, Answer], list[Failure]]:
    """What is missing in the answers is said among the failures."""
    deadline = time.monotonic() + time_s
    questions: list[_Question] = []
    failures: list[Failure] = []
    for lookup in lookups:
        try:
            name = dns_message.parse_name(lookup.name)
        except ValueError as error:
            failures.append(Failure(lookup, str(error)))
            continue
        questions.append(_Question(lookup, name, (lookup.servers or system_servers)[:_SERVERS_MAX]))
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for question in questions:
            for talk in _open(question, stack):
                selector.register(talk.sock, selectors.EVENT_READ, talk)
                talk.send()
        _listen(selector, questions, deadline)
    for question in questions:
        if question.answer is None:
            failures.append(Failure(question.lookup, _why(question)))
    answers = {
        question.lookup: question.answer for question in questions if question.answer is not None
    }
    return answers, failures


def _why(question: _Question) -> str:
    if not question.servers:
        return "there is no DNS server to ask"
    said = dict.fromkeys(question.refusals)
    return "; ".join(said) or f"no answer from {', '.join(question.servers)}"


def _open(question: _Question, stack: ExitStack) -> Iterator[_Conversation]:
    for server in question.servers:
        identity = secrets.randbits(16)
        message = dns_message.encode_question(identity, question.name, question.lookup.family)
        try:
            sock = stack.enter_context(_socket(server, socket.SOCK_DGRAM))
            sock.setblocking(False)
            sock.connect(_place(server))
        except OSError as error:
            question.refusals.append(f"{server}: {error.strerror or error}")
            continue
        yield _Conversation(question, server, sock, identity, message)


def _socket(server: str, kind: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    return socket.socket(family, kind | socket.SOCK_CLOEXEC)


def _place(server: str) -> tuple[str, int] | tuple[str, int, int, int]:
    address, _, zone = server.partition("%")
    if ":" not in server:
        return address, PORT
    return address, PORT, 0, socket.if_nametoindex(zone) if zone else 0


def _listen(
    selector: selectors.BaseSelector, questions: Sequence[_Question], deadline: float
) -> None:
    again = time.monotonic() + _AGAIN_S
    while selector.get_map() and any(question.answer is None for question in questions):
        now = time.monotonic()
        if now >= deadline:
            return
        if now >= again:
            again = deadline
            for key in list(selector.get_map().values()):
                key.data.send()
        for key, _ in selector.select(min(again, deadline) - now):
            talk: _Conversation = key.data
            if talk.question.answer is not None or _heard(talk, deadline):
                selector.unregister(talk.sock)


def _heard(talk: _Conversation, deadline: float) -> bool:
    """Whether this server has said all it will."""
    try:
        data = talk.sock.recv(65535)
        talk.question.answer = _read(talk, data)
    except Nonsense:
        return False
    except Truncated:
        _ask_over_tcp(talk, deadline)
    except ServerFailed as said:
        talk.fail(str(said))
    except OSError as error:
        talk.fail(error.strerror or str(error))
    return True


def _read(talk: _Conversation, data: bytes) -> Answer:
    question = talk.question
    return dns_message.read_answer(data, talk.identity, question.name, question.lookup.family)


def _ask_over_tcp(talk: _Conversation, deadline: float) -> None:
    try:
        with _socket(talk.server, socket.SOCK_STREAM) as sock:
            sock.settimeout(max(0.01, deadline - time.monotonic()))
            sock.connect(_place(talk.server))
            sock.sendall(_TCP_SIZE.pack(len(talk.message)) + talk.message)
            (size,) = _TCP_SIZE.unpack(_receive(sock, 2, deadline))
            talk.question.answer = _read(talk, _receive(sock, size, deadline))
    except (Nonsense, Truncated, ServerFailed) as said:
        talk.fail(f"over TCP: {said or 'truncated'}")
    except OSError as error:
        talk.fail(f"over TCP: {error.strerror or error}")


def _receive(sock: socket.socket, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        sock.settimeout(max(0.01, deadline - time.monotonic()))
        more = sock.recv(size - len(data))
        if not more:
            raise Nonsense("cut short")
        data += more
    return data


def system_servers(paths: Paths) -> tuple[str, ...]:
    """The `nameserver` lines of resolv.conf."""
    try:
        text = regular_file.read(paths.under("/etc/resolv.conf")).decode(errors="replace")
    except OSError:
        return ()
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "nameserver":
            try:
                ip_address(words[1])
            except ValueError:
                continue
            found.append(words[1])
    return tuple(found)
