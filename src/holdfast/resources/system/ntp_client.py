"""NTPClient: where the time comes from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address

from holdfast.engine.intent import Intent, Waiting
from holdfast.engine.kinds.dropin import DROPIN, dropin
from holdfast.engine.kinds.file import FILE, file
from holdfast.engine.kinds.service import SERVICE, Unit, service
from holdfast.resources.facts import GONE
from holdfast.resources.resource import Fault, Kind, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.dns_name import parse_domain
from holdfast.resources.spec.repeats import repeated
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    link_reference,
    listed,
    optional,
    parsed,
)
from holdfast.resources.spec.values import parse_address

TIMESYNCD = "systemd-timesyncd"
_DROPIN = "/etc/systemd/timesyncd.conf.d/holdfast.conf"
_CHRONYD = "/usr/sbin/chronyd"
_CHRONY_CONF = "/etc/holdfast/chrony.conf"
# Beside the state of Holdfast itself, which is closed to the user that chronyd becomes.
_CHRONY_STATE = "/var/lib/holdfast-chrony"
_CHRONY_RUN = "/run/holdfast/chrony"
_HEAD = "# Holdfast wrote this file for {} and will write it again.\n"

Server = str | IPv4Address | IPv6Address


def parse_server(text: str) -> Server:
    if text.replace(".", "").isdecimal() or ":" in text:
        found = parse_address(text)
        if found.is_multicast or found.is_unspecified:
            raise ValueError(f"{text} cannot be the address of a time server")
        return found
    return parse_domain(text)


class NTPClient(Spec):
    provider: str = optional(
        choice(TIMESYNCD, "chrony"),
        "the program: systemd's own client, where PID 1 is systemd, or chrony, anywhere",
        default=TIMESYNCD,
    )
    managed: bool = optional(
        flag(), "false: somebody else sees to the time, and nothing is done for it", default=True
    )
    source: str = optional(
        choice("static", "dhcp4"),
        "where the servers are known from: `servers`, or the DHCP lease of `interface`",
        default="static",
    )
    interface: str | None = optional(
        link_reference(),
        "for `dhcp4`: the link with the lease. For `static` with chrony: the servers are asked over"
        " this link alone. Under routerd.net also with systemd-timesyncd, which asks over any",
    )
    servers: tuple[Server, ...] = optional(
        listed(parsed(parse_server, "host name or address", {"minLength": 1}), least=0),
        "for `static`",
        default=(),
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: NTPClient = resource.spec
    if not spec.managed:
        return
    yield from repeated(spec.servers, ("servers",))
    if spec.source == "dhcp4":
        if spec.interface is None:
            yield Fault(("interface",), "is missing; `source: dhcp4` needs it")
        if spec.servers:
            yield Fault(("servers",), "have no meaning with `source: dhcp4`")
        return
    if not spec.servers:
        yield Fault(("servers",), "is missing; `source: static` needs it")
    if spec.interface is not None and spec.provider == TIMESYNCD:
        message = f"{TIMESYNCD} cannot be told over which link to ask"
        message += "; it asks over any" if resource.alias else "; write `provider: chrony`"
        yield Fault(("interface",), message, warning=resource.alias)


def intents(resource: Resource, site: Site) -> Iterator[Intent | Waiting]:
    spec: NTPClient = resource.spec
    if not spec.managed:
        return
    servers: Sequence[Server] = spec.servers
    if spec.source == "dhcp4" and spec.interface is not None:
        lease = site.facts.leases4.get(site.ifname(spec.interface))
        if lease is None or lease is GONE or not lease.ntp:
            keeps = lease is None
            lacking = (
                "a DHCP lease" if lease is None or lease is GONE else "time servers in a lease"
            )
            reason = f"waits for {lacking} on {spec.interface}"
            yield Waiting(resource.id, resource.place, reason, keeps=keeps)
            return
        servers = lease.ntp
    if spec.provider == TIMESYNCD:
        yield _timesyncd(resource, servers)
    else:
        yield from _chrony(resource, servers, site)


def _timesyncd(resource: Resource, servers: Sequence[Server]) -> Intent:
    text = _HEAD.format(resource.id) + f"[Time]\nNTP={' '.join(map(str, servers))}\n"
    artifact = dropin(_DROPIN, text.encode(), f"{TIMESYNCD}.service")
    return Intent(resource.id, artifact, resource.place)


def _chrony(resource: Resource, servers: Sequence[Server], site: Site) -> Iterator[Intent]:
    spec: NTPClient = resource.spec
    links: tuple[str, ...] = ()
    if spec.interface is not None and spec.source == "static":
        links = (site.ifname(spec.interface),)
    text = _HEAD.format(resource.id) + chrony_conf(servers, links, site)
    conf = file(_CHRONY_CONF, text.encode())
    yield Intent(resource.id, conf, resource.place)
    unit = Unit(
        "chrony",
        "time by NTP (chrony)",
        # In the foreground, to standard error.
        (_CHRONYD, "-d", "-f", site.under(_CHRONY_CONF)),
        config=hashlib.sha256(text.encode()).hexdigest(),
        folders=(site.under(_CHRONY_RUN),),
    )
    requires = (conf.key, *(key for link in links for key in site.link_key(link)))
    yield Intent(resource.id, service(unit), resource.place, requires=requires)


def chrony_conf(servers: Sequence[Server], links: Sequence[str], site: Site) -> str:
    lines = [
        # A name may stand for several servers, and other ones tomorrow.
        f"pool {server} iburst maxsources 4"
        if isinstance(server, str)
        else f"server {server} iburst"
        for server in servers
    ]
    lines += [f"bindacqdevice {link}" for link in links]
    lines += [
        # chronyd makes this folder for the user it becomes, and no other.
        f"dumpdir {site.under(_CHRONY_STATE)}",
        f"driftfile {site.under(_CHRONY_STATE)}/drift",
        f"pidfile {site.under(_CHRONY_RUN)}/chronyd.pid",
        # After a boot without a battery-backed clock the time is years off: it may jump, at first.
        "makestep 1 3",
        "rtcsync",
        # Nothing is served, and nobody controls it but us.
        "port 0",
        "cmdport 0",
        "bindcmdaddress /",
    ]
    return "\n".join(lines) + "\n"


KINDS = (
    Kind(
        NTPClient,
        "Where the time comes from. One managed NTPClient at most.",
        (DROPIN.name, FILE.name, SERVICE.name),
        "provider: chrony\nservers: [ntp.example.net, 192.0.2.123]\n",
        intents,
        check,
        groups=("system",),
        needs_facts=True,
        alias_asks_managed=True,
        only_one="the clock can have one managed NTPClient, and has",
    ),
)
