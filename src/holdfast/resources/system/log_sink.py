"""LogSink: where Holdfast sends a copy of its events."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import Spec, choice, flag, nested, optional, parsed, required

LEVELS = ("debug", "info", "warning", "error")
FACILITIES = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
)  # fmt: skip
_STREAMS = ("tcp", "udp")


def _parse_tag(text: str) -> str:
    if not text or len(text) > 48 or not all(33 <= ord(c) < 127 and c not in "[]:" for c in text):
        raise ValueError(f"{text!r} is not a tag: up to 48 letters, digits and signs but []:")
    return text


def _parse_path(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise ValueError(f"{text!r} is not an absolute path")
    return text


def _parse_place(text: str) -> str:
    """A socket path, or HOST:PORT."""
    if not text or any(c.isspace() or not c.isprintable() for c in text):
        raise ValueError(f"{text!r} is neither a path nor HOST:PORT")
    return text


class Syslog(Spec):
    network: str = optional(
        choice("", "unix", "unixgram", "tcp", "udp"),
        "how to reach it; empty is the local one",
        default="",
    )
    address: str | None = optional(
        parsed(_parse_place, "path or HOST:PORT"), "of the socket, /dev/log where not said"
    )
    facility: str = optional(choice(*FACILITIES), "syslog facility", default="local6")
    tag: str = optional(parsed(_parse_tag, "word"), "who says it", default="holdfast")


class Plugin(Spec):
    path: str = required(parsed(_parse_path, "absolute path"), "the program, run for each event")
    timeout: float = optional(duration(0.1, 60), "until it is ended", default=5.0)


class LogSink(Spec):
    type: str = required(choice("syslog", "plugin"), "what kind of sink")
    enabled: bool = optional(flag(), "false: nothing is sent", default=True)
    min_level: str = optional(choice(*LEVELS), "events below are not sent", default="info")
    syslog: Syslog | None = optional(nested(Syslog), "for `type: syslog`")
    plugin: Plugin | None = optional(nested(Plugin), "for `type: plugin`")


def check(resource: Resource) -> Iterator[Fault]:
    spec: LogSink = resource.spec
    for name in ("syslog", "plugin"):
        if name != spec.type and getattr(spec, name) is not None:
            yield Fault((name,), f"has no meaning here: `type` is {spec.type}")
    if spec.type == "plugin" and spec.plugin is None:
        yield Fault(("plugin",), "is missing: type plugin needs the path of its program")
    sink = spec.syslog
    if sink is None:
        return
    if sink.network in _STREAMS:
        if sink.address is None:
            yield Fault(("syslog", "address"), f"is missing; {sink.network} needs HOST:PORT")
        elif not _is_host_and_port(sink.address):
            yield Fault(("syslog", "address"), f"{sink.address!r} is not HOST:PORT")
    elif sink.address is not None and not sink.address.startswith("/"):
        yield Fault(("syslog", "address"), f"{sink.address!r} is not the path of a socket")


def _is_host_and_port(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host.strip("[]")) and port.isdecimal() and 0 < int(port) < 65536


def program(resource: Resource) -> tuple[str, str] | None:
    spec: LogSink = resource.spec
    return ("plugin.path", spec.plugin.path) if spec.plugin is not None else None


KINDS = (
    Kind(
        LogSink,
        "A copy of every event (what was created, changed, deleted, and what failed) for a syslog"
        " server or a program of yours. A program is run once for each event, as `nobody` where"
        " Holdfast is root, and gets one line of JSON on its standard input: `timestamp`, `level`,"
        " `message`, `router`, `command`, `resourceID`, `fields`. A program that others than root"
        " could write or replace is not run, and nothing that a program starts outlives it. A sink"
        " that cannot be reached is warned about and never stops a pass; one whose program is not"
        " run, or failed at the last event, is Degraded until it works.",
        (),
        "type: syslog\nminLevel: warning\nsyslog: {network: udp, address: 192.0.2.10:514}\n",
        nothing_alone,
        check,
        effect="receives a copy of Holdfast's own events",
        maskable=False,
        groups=("system",),
        receives_events=True,
        program=program,
    ),
)
