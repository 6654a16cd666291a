"""Hostname: the name of the host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.engine.intent import Action, Intent
from holdfast.engine.kinds.hostname import hostname
from holdfast.resources.resource import Kind, Resource
from holdfast.resources.shape import Spec, flag, optional, parsed, required
from holdfast.resources.topology import Topology

_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LONGEST = 64  # __NEW_UTS_LEN of the kernel


def parse_hostname(text: str) -> str:
    if len(text) > _LONGEST:
        raise ValueError(f"{len(text)} characters long, the kernel takes {_LONGEST}")
    for label in text.split("."):
        if not _LABEL.fullmatch(label):
            raise ValueError(
                f"{text!r} is not a host name: its part {label!r} must be 1 to 63 letters, digits"
                " and inner hyphens"
            )
    return text


class Hostname(Spec):
    hostname: str = required(
        parsed(parse_hostname, "host name (RFC 1123), at most 64 characters", {"maxLength": 64}),
        "the name",
    )
    managed: bool = optional(flag(), "false: only observe it", default=True)


def intents(resource: Resource, _topology: Topology) -> Iterator[Intent]:
    spec: Hostname = resource.spec
    action = Action.ENSURE if spec.managed else Action.OBSERVE
    yield Intent(resource.id, hostname(spec.hostname), resource.place, action)


KINDS = {
    "Hostname": Kind(
        "Hostname",
        Hostname,
        "The name of the host, the running one and /etc/hostname together. One managed Hostname"
        " at most.",
        ("hostname",),
        "hostname: router03.example.net\n",
        intents,
    )
}
