"""Hostname: the name of the host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.engine.intent import Action, Intent
from holdfast.engine.kinds.block import BLOCK, block
from holdfast.engine.kinds.hostname import HOSTNAME, hostname
from holdfast.resources.resource import Fault, Kind, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Spec, flag, optional, parsed, required

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
    hosts_entry: bool = optional(
        flag(),
        "keep a block in /etc/hosts that gives the name the address 127.0.1.1: without one,"
        " programs that look their own name up may wait for the DNS",
        default=False,
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: Hostname = resource.spec
    if spec.hosts_entry and not spec.managed:
        yield Fault(("hostsEntry",), "has no meaning with `managed: false`")


def intents(resource: Resource, _site: Site) -> Iterator[Intent]:
    spec: Hostname = resource.spec
    action = Action.ENSURE if spec.managed else Action.OBSERVE
    yield Intent(resource.id, hostname(spec.hostname), resource.place, action)
    if spec.hosts_entry:
        names = dict.fromkeys((spec.hostname, spec.hostname.partition(".")[0]))
        entry = block("/etc/hosts", "hostname", f"127.0.1.1 {' '.join(names)}\n".encode())
        yield Intent(resource.id, entry, resource.place)


KINDS = (
    Kind(
        Hostname,
        "The name of the host, the running one and /etc/hostname together. One managed Hostname"
        " at most.",
        (HOSTNAME.name, BLOCK.name),
        "hostname: router03.example.net\nhostsEntry: true\n",
        intents,
        check,
        # The alias system's validator demands net, its documentation says system.
        groups=("system", "net"),
        alias_asks_managed=True,
        only_one="the host can have one managed name, and has that of",
    ),
)
