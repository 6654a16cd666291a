"""One dnsmasq for all servers, scopes, reservations and forwarders of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from holdfast.engine.artifact import Artifact
from holdfast.engine.intent import Intent, Waiting
from holdfast.engine.kinds.file import file
from holdfast.engine.kinds.service import Unit, service
from holdfast.resources.lan import dnsmasq_conf as texts
from holdfast.resources.lan.dhcp_reservation import line
from holdfast.resources.lan.dhcp_server import Dns
from holdfast.resources.lan.dns_conditional_forwarder import lines
from holdfast.resources.lan.dnsmasq_lan import Lan, lan_of
from holdfast.resources.lan.self_address_policy import SelfAddressPolicy
from holdfast.resources.lan.upstream import LEARNED, Unknown, learned, spelled
from holdfast.resources.resource import Declared, Resource
from holdfast.resources.site import Site

ORDER = 10  # among combiners

_PROGRAM = "/usr/sbin/dnsmasq"


def combine(site: Site) -> Iterator[Declared]:
    lan = lan_of(site)
    if lan is None:
        return
    reread: list[Artifact] = []
    waiting: dict[Waiting, Resource] = {}  # two options may wait for one fact
    for owners, made in _files(lan, site):
        if isinstance(made, Unknown):
            for owner in owners:
                waiting[Waiting(owner.id, owner.place, str(made), made.keeps)] = owner
        else:
            if made.key.name != texts.UPSTREAM:  # dnsmasq watches that one by itself
                reread.append(made)
            yield from _owned(made, owners)
    for why, owner in waiting.items():
        yield owner, why
    conf = file(texts.CONF, texts.conf(lan, site).encode(), check="dnsmasq")
    yield from _owned(conf, lan.main)
    program = service(_unit(conf, reread, site))
    needs = (conf.key, *(artifact.key for artifact in reread))
    for owner in lan.main:
        yield owner, Intent(owner.id, program, owner.place, requires=needs)


Made = tuple[list[Resource], Artifact | Unknown]


def _files(lan: Lan, site: Site) -> Iterator[Made]:
    """What dnsmasq reads again while it runs."""
    if lan.dns is not None:
        if lan.resolver is not None and lan.dns.upstream_source in (*LEARNED, "static"):
            yield from _written(texts.UPSTREAM, [lan.resolver], partial(_upstream, lan.dns, site))
        yield from _servers(lan, site)
    for scope in lan.scopes:
        for path, option in texts.options(scope):
            name = scope.spec.self_address_policy if option is texts.dns else None
            policy = [] if name is None else [site.get(SelfAddressPolicy, name)]
            text = partial(option, scope, site)
            yield from _written(path, [scope, *policy], text, "dnsmasq options")
        reservations = lan.reservations.get((type(scope.spec), scope.name), [])
        hosts = texts.HEAD + "".join([line(reservation.spec) for reservation in reservations])
        artifact = file(texts.hosts(scope), hosts.encode(), check="dnsmasq hosts")
        yield [scope, *reservations], artifact


def _written(
    path: str, owners: list[Resource], text: Callable[[], str], check: str = ""
) -> Iterator[Made]:
    """A file with a text that may not be known: then what is there stays. Where it is known to be
    over, the file says nothing: it is not deleted, since dnsmasq would be told before it was gone.
    """
    try:
        said = text()
    except Unknown as missing:
        yield owners[:1], missing
        if missing.keeps:
            return
        said = ""
    yield owners, file(path, f"{texts.HEAD}{said}".encode(), check=check)


def _upstream(dns: Dns, site: Site) -> str:
    servers = [str(server) for server in dns.upstream_servers]
    if dns.upstream_interface is not None:
        dev = site.ifname(dns.upstream_interface)
        found = learned(dns.upstream_source, dns.upstream_interface, site)
        servers = [spelled(server, dev) for server in found]
    return "".join(f"nameserver {server}\n" for server in servers)


def _servers(lan: Lan, site: Site) -> Iterator[Made]:
    text = texts.HEAD
    for forwarder in lan.forwarders:
        try:
            text += lines(forwarder, site)
        except Unknown as missing:
            yield [forwarder], missing
    artifact = file(texts.SERVERS, text.encode(), check="dnsmasq")
    yield [*lan.servers, *lan.forwarders], artifact


def _owned(artifact: Artifact, owners: Iterable[Resource]) -> Iterator[Declared]:
    for owner in owners:
        yield owner, Intent(owner.id, artifact, owner.place)


def _unit(conf: Artifact, reread: list[Artifact], site: Site) -> Unit:
    said = "".join(f"{artifact.key.name} {artifact.fields['sha256']}\n" for artifact in reread)
    return Unit(
        name="dnsmasq",
        description="DHCP, router advertisements and DNS",
        argv=(_PROGRAM, "--keep-in-foreground", f"--conf-file={site.under(texts.CONF)}"),
        config=str(conf.fields["sha256"]),
        reload=hashlib.sha256(said.encode()).hexdigest()[:16],
        # dnsmasq does not start where the folder of a file it shall watch is missing.
        folders=tuple(map(site.under, (texts.STATE, texts.FOLDER))),
    )
