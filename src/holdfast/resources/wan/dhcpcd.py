"""One dhcpcd for each link and family: its configuration, its hook and its unit, from all that is
asked for there.

One for both families would do, but it drops all its addresses for a while when its configuration
changes: so that asking for a prefix does not cut IPv4.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact
from holdfast.engine.intent import Intent, Waiting
from holdfast.engine.kinds.file import FILE, file
from holdfast.engine.kinds.service import SERVICE, Unit, dhcp_client, service
from holdfast.resources.facts import GONE, LinkAddress
from holdfast.resources.resource import Declared, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Spec
from holdfast.resources.wan.dhcp_address import IPv4DHCPAddress, IPv6DHCPAddress
from holdfast.resources.wan.prefix_delegation import IPv6PrefixDelegation

ORDER = 80  # among combiners

FAMILIES: dict[type[Spec], int] = {
    IPv4DHCPAddress: 4,
    IPv6DHCPAddress: 6,
    IPv6PrefixDelegation: 6,
}
LEASES = "/run/holdfast/leases"
HOOK = "/etc/holdfast/dhcpcd-hook"
_DHCPCD = "/usr/sbin/dhcpcd"
# dhcpcd has these compiled in. They hold its leases and DUID, and the pid file by which it
# refuses to run twice for one link and family.
_STATE, _RUN = "/var/lib/dhcpcd", "/run/dhcpcd"
_IA_NA, _IA_PD = 1, 2  # numbers of our own choice; a server knows the lease by them

# Not the MTU: dhcpcd would set what it is told, against what is declared.
_REQUESTED4 = (
    "subnet_mask",
    "routers",
    "classless_static_routes",
    "domain_name_servers",
    "domain_name",
    "ntp_servers",
)
_REQUESTED6 = ("dhcp6_name_servers", "dhcp6_domain_search", "dhcp6_sntp_servers")

# Only the environment's own bytes are written, and nothing in it is looked at but three variables
# that dhcpcd sets itself: all others are what somebody sent over the network. The last lease stays
# beside the news that it is over, since dhcpcd says so of every lease when a cable is pulled.
_HOOK = """\
#!/bin/sh
# Written by Holdfast: keeps what dhcpcd was told, for Holdfast to read. Changes are overwritten.
set -u
umask 022
case "${{protocol-}}" in
dhcp) family=4 ;;
dhcp6) family=6 ;;
*) exit 0 ;;
esac
case "${{interface-}}" in
'' | .* | */*) exit 1 ;;
esac
name=$interface.$family
case "${{reason-}}" in
BOUND* | RENEW* | REBIND* | REBOOT* | INFORM* | TIMEOUT*) kind=lease ;;
EXPIRE* | NAK* | RELEASE* | STOP*) kind=over ;;
*) exit 0 ;;
esac
read -r boot </proc/sys/kernel/random/boot_id || exit 1
read -r uptime rest </proc/uptime || exit 1
mkdir -p {folder} && cd {folder} || exit 1
env -0 holdfast_boot="$boot" holdfast_uptime="$uptime" >".$name.$$" &&
  mv -f ".$name.$$" "$name.$kind" || {{ rm -f ".$name.$$"; exit 1; }}
[ "$kind" = over ] || rm -f "$name.over"
"""

# Below another root, dhcpcd sees folders of that root in place of the machine's. The shell is
# gone once dhcpcd runs: `exec` all the way, so that signals reach it.
_MOVED = " && ".join(
    (
        f"mkdir -p {_RUN}",
        f'mount --bind "$1" {_STATE}',
        f'mount --bind "$2" {_RUN}',
        "shift 2",
        'exec "$@"',
    )
)


@dataclass(frozen=True, slots=True)
class _Client:
    ifname: str
    family: int
    resources: list[Resource]

    @property
    def name(self) -> str:
        return dhcp_client(self.family, self.ifname)

    @property
    def delegation(self) -> Resource | None:
        found = (
            resource
            for resource in self.resources
            if isinstance(resource.spec, IPv6PrefixDelegation)
        )
        return next(found, None)

    @property
    def ntt(self) -> bool:
        return self.delegation is not None and self.delegation.spec.ntt


def combine(site: Site) -> Iterator[Declared]:
    clients: dict[tuple[str, int], list[Resource]] = {}
    for resource in site.of(*FAMILIES):
        at = site.ifname(resource.spec.interface), FAMILIES[type(resource.spec)]
        clients.setdefault(at, []).append(resource)
    for (ifname, family), resources in clients.items():
        yield from _declare(_Client(ifname, family, resources), site)


def _declare(client: _Client, site: Site) -> Iterator[Declared]:
    mac = _mac(client.ifname, site)
    if client.ntt and not mac:
        for resource in client.resources:
            reason = f"waits for the hardware address of {client.ifname}, which its DUID is made of"
            yield resource, Waiting(resource.id, resource.place, reason)
        return
    artifacts = _artifacts(client, f"00:03:00:01:{mac}" if client.ntt else "", site)
    files = tuple(artifact.key for artifact in artifacts if artifact.key.kind == FILE.name)
    needed = (*site.link_key(client.ifname), *files)
    for resource in client.resources:
        for artifact in artifacts:
            requires = needed if artifact.key.kind == SERVICE.name else ()
            yield resource, Intent(resource.id, artifact, resource.place, requires=requires)
        if not isinstance(resource.spec, IPv6PrefixDelegation):  # which waits for its prefix itself
            yield from _lease(resource, client, site)


def _mac(ifname: str, site: Site) -> str:
    """The one declared, which the link will have, or else the one it has."""
    interface = site.interfaces.get(ifname)
    declared = interface.spec.mac if interface is not None else None
    return declared or site.facts.macs.get(ifname, "")


def _lease(resource: Resource, client: _Client, site: Site) -> Iterator[Declared]:
    leases = site.facts.leases4 if client.family == 4 else site.facts.leases6
    found = leases.get(client.ifname)
    if found is not None and found is not GONE and found.addresses:
        return
    if client.ntt and any(map(_global, site.facts.addresses.get(client.ifname, ()))):
        return
    lost = "; none is given at present" if found is GONE else ""
    yield (
        resource,
        Waiting(
            resource.id,
            resource.place,
            f"waits for an IPv{client.family} address on {client.ifname}{lost}",
            keeps=False,  # the artifacts are all declared, whatever the server says
            required=resource.spec.required,
        ),
    )


def _global(link_address: LinkAddress) -> bool:
    return link_address.version == 6 and not link_address.is_link_local


def _artifacts(client: _Client, duid: str, site: Site) -> tuple[Artifact, ...]:
    path = f"/etc/holdfast/{client.name}.conf"
    config = _config(client, duid)
    hook = _HOOK.format(folder=shlex.quote(site.under(LEASES)))
    own = (site.under(_STATE), site.under(_RUN)) if site.root else ()
    unit = Unit(
        name=client.name,
        description=f"DHCPv{client.family} client on {client.ifname}",
        argv=_argv(client, path, site),
        config=duid,  # which it reads only when it starts
        reload=_digest(config),
        folders=(site.under(LEASES), *own),
    )
    return file(path, config.encode()), file(HOOK, hook.encode(), 0o755), service(unit)


def _argv(client: _Client, path: str, site: Site) -> tuple[str, ...]:
    # Both paths by option: in a configuration file blanks and quotes would have a meaning.
    options = (f"-{client.family}", "-B", "-f", site.under(path), "-c", site.under(HOOK))
    program = (_DHCPCD, *options, client.ifname)
    if not site.root:
        return program
    shell = ("/usr/bin/unshare", "--mount", "/bin/sh", "-c", _MOVED, "sh")
    return (*shell, site.under(_STATE), site.under(_RUN), *program)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _config(client: _Client, duid: str) -> str:
    names = ", ".join(resource.id for resource in client.resources)
    lines = [
        f"# Written by Holdfast for {names}. Changes are overwritten.",
        "nodev",
        "nodelay",
        # Else it exits when nobody answers within 30 s.
        "timeout 0",
    ]
    if duid:
        lines.append(f"duid {duid}")
    lines.append(f"interface {client.ifname}")
    lines += _config4() if client.family == 4 else _config6(client)
    if not client.ntt:
        lines.append("option rapid_commit")
    return "".join(f"{line}\n" for line in lines)


def _config4() -> list[str]:
    # The hardware address as the client's name, as most providers expect it.
    return ["noipv4ll", "clientid", f"option {', '.join(_REQUESTED4)}"]


def _config6(client: _Client) -> list[str]:
    lines = [f"option {', '.join(_REQUESTED6)}", "ipv6rs"]
    wanted = any(isinstance(resource.spec, IPv6DHCPAddress) for resource in client.resources)
    if wanted and not client.ntt:
        lines.append(f"ia_na {_IA_NA}")
    if client.delegation is not None:
        hint = client.delegation.spec.hint
        asked = f"/::/{hint}" if hint else ""
        # Without the name of a link dhcpcd would put subnets on every other link by itself.
        lines.append(f"ia_pd {_IA_PD}{asked} -")
    return lines
