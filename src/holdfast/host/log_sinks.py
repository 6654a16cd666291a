"""Events handed on to syslog and to programs of the operator's."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from holdfast.characters import escaped
from holdfast.dataclass import dataclass
from holdfast.engine.event_kinds import EventKind
from holdfast.errors import DriverError, Refused
from holdfast.host import confined_program, process
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.resource import Resource
from holdfast.resources.router import Router
from holdfast.resources.system.log_sink import FACILITIES, LEVELS, LogSink, Syslog

_SEVERITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3}
_TIMEOUT_S = 2.0
_LONGEST = 8192  # RFC 5424 lets receivers cut what is longer than 2048; this is a bound for us


@dataclass(frozen=True, slots=True)
class Message:
    level: str
    text: str
    resource: str = ""
    fields: Mapping[str, Any] | None = None


class Event(Protocol):
    """What happened, as the ledger keeps it."""

    @property
    def kind(self) -> EventKind: ...
    @property
    def subject(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


def forward(
    paths: Paths,
    router: Router,
    command: str,
    events: Sequence[Event],
    ran: Callable[[str, str], None] = lambda _sink, _why: None,
) -> Iterator[str]:
    """Hands events on to the sinks a configuration declares; yields what went wrong."""
    sinks = registry.having(router.resources, lambda kind: kind.receives_events)
    return deliver(paths, sinks, router.name, command, [_message(event) for event in events], ran)


def _message(event: Event) -> Message:
    return Message(
        _level(event.kind),
        f"{event.kind} {event.subject}: {event.message}",
        ", ".join(event.data.get("owners", ())),
        {"kind": event.kind, "generation": event.generation, **event.data},
    )


def _level(kind: EventKind) -> str:
    return "error" if kind.failure else "warning" if kind.warning else "info"


def deliver(
    paths: Paths,
    sinks: Iterable[Resource],
    router: str,
    command: str,
    messages: Sequence[Message],
    ran: Callable[[str, str], None] = lambda _sink, _why: None,
) -> Iterator[str]:
    """Sends messages to every enabled sink; yields what went wrong, which stops nothing.

    ran: told of each sink that something was sent to, and what was wrong, if anything."""
    for resource in sinks:
        spec: LogSink = resource.spec
        wanted = [
            message
            for message in messages
            if LEVELS.index(message.level) >= LEVELS.index(spec.min_level)
        ]
        if not spec.enabled or not wanted:
            continue
        try:
            if spec.plugin is not None:
                for message in wanted:
                    _run(paths, spec.plugin.path, spec.plugin.timeout, router, command, message)
            else:
                _send(paths, spec.syslog or Syslog(), wanted)
            ran(resource.id, "")
        except (OSError, DriverError, Refused) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            events = "1 event was" if len(wanted) == 1 else f"{len(wanted)} events were"
            if not isinstance(error, Refused):
                ran(resource.id, str(why))
            yield f"{resource.id}: {events} not delivered: {why}"


def _run(
    paths: Paths, path: str, timeout: float, router: str, command: str, message: Message
) -> None:
    line = {
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "level": message.level,
        "message": message.text,
        "router": router,
        "command": command,
        "resourceID": message.resource,
        "fields": dict(message.fields or {}),
    }
    about = {"LEVEL": message.level, "ROUTER": router, "COMMAND": command}
    environment = {f"HOLDFAST_LOG_{name}": value for name, value in about.items()}
    # The programs written for routerd look for these.
    environment |= {f"ROUTERD_LOG_{name}": value for name, value in about.items()}
    # As a plugin is: it is told what it needs to know, and nothing that it starts outlives it.
    environment["LC_ALL"] = "C.UTF-8"
    with confined_program.command(paths.under(path), timeout, environment) as started:
        ended = process.run(
            started.argv,
            given=json.dumps(line) + "\n",
            timeout=timeout,
            keep=started.descriptors,
            name=path,
        )
    if ended.status:
        raise DriverError(f"{path}: {ended.said}")


def _send(paths: Paths, sink: Syslog, messages: Sequence[Message]) -> None:
    with _connect(paths, sink) as connection:
        stream = connection.type == socket.SOCK_STREAM
        for message in messages:
            data = _line(sink, message)
            # Octet counting frames a stream (RFC 6587); local streams end messages with NUL.
            if stream and sink.network == "tcp":
                data = f"{len(data)} ".encode() + data
            elif stream:
                data += b"\0"
            connection.sendall(data)


def _connect(paths: Paths, sink: Syslog) -> socket.socket:
    if sink.network in ("tcp", "udp"):
        host, _, port = (sink.address or "").rpartition(":")
        kind = socket.SOCK_STREAM if sink.network == "tcp" else socket.SOCK_DGRAM
        family, _, _, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=kind)[0]
        return _open(family, kind, place)
    kind = socket.SOCK_STREAM if sink.network == "unix" else socket.SOCK_DGRAM
    return _open(socket.AF_UNIX, kind, str(paths.under(sink.address or "/dev/log")))


def _open(family: int, kind: int, place: Any) -> socket.socket:
    connection = socket.socket(family, kind)
    try:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(place)
    except OSError:
        connection.close()
        raise
    return connection


def _line(sink: Syslog, message: Message) -> bytes:
    """RFC 3164 to the local syslog, whose socket knows host and time; RFC 5424 over the network."""
    priority = FACILITIES.index(sink.facility) * 8 + _SEVERITIES[message.level]
    text = escaped(" ".join(message.text.split()))
    pid = os.getpid()
    if sink.network in ("tcp", "udp"):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        shown = f"<{priority}>1 {now} {socket.gethostname()} {sink.tag} {pid} - - {text}"
    else:
        # Always the English names of months, whatever the locale.
        now = time.asctime()[4:19]
        shown = f"<{priority}>{now} {sink.tag}[{pid}]: {text}"
    return shown.encode(errors="backslashreplace")[:_LONGEST]
