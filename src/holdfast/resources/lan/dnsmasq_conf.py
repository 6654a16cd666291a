"""The texts of dnsmasq's files.

What a signal makes dnsmasq read again stands in files of its own (servers, hosts, options), and so
do the servers to ask (a file it watches by itself): a new lease of the WAN, a new prefix or another
reservation must not restart DNS and DHCP for the whole LAN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from holdfast.resources.lan import lease_time
from holdfast.resources.lan.dhcp_scope import IPv4DHCPScope, IPv6DHCPScope, link_of
from holdfast.resources.lan.dnsmasq_lan import Lan, candidates, server_of, tag
from holdfast.resources.lan.self_address_policy import elsewhere, resolve
from holdfast.resources.lan.upstream import learned
from holdfast.resources.links.link_addresses import missing, on_link
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Address, Interface

FOLDER = "/etc/holdfast/dnsmasq"
CONF = "/etc/holdfast/dnsmasq.conf"
UPSTREAM, SERVERS = f"{FOLDER}/upstream", f"{FOLDER}/servers"
STATE = "/var/lib/holdfast"
LEASES = f"{STATE}/dnsmasq.leases"
HEAD = "# Holdfast wrote this file and will write it again.\n"
_LEASES_MAX = 100_000  # some 30 MB, should somebody on a link go on asking for more
_MODES = {"stateless": ",ra-stateless", "ra-only": ",ra-only", "stateful": ""}


def conf(lan: Lan, site: Site) -> str:
    lines = [*_process(site), *_links(lan, site), *_dns(lan, site)]
    if lan.scopes:
        lines += _dhcp(lan, site)
    return HEAD + "".join(f"{line}\n" for line in lines)


def _process(site: Site) -> Iterator[str]:
    if site.root:
        # Files are read again after root's rights are given up, and a folder under `--root` may be
        # closed to others. In a user namespace there may be no other user or group at all.
        yield "user=root"
        yield "group="
    else:
        yield "user=dnsmasq"
    yield "pid-file="  # none: whoever started it knows
    yield "log-facility=-"  # standard error, for whoever started it to keep


def _links(lan: Lan, site: Site) -> Iterator[str]:
    yield "bind-dynamic"  # links and addresses may come later
    served = _served(lan, site)
    # With no `interface` at all dnsmasq would serve every link there is.
    for dev in served or ("lo",):
        yield f"interface={dev}"
    found: dict[Address, None] = {}
    for scope in lan.scopes:
        if scope.spec.dns_source == "self":
            family = 4 if isinstance(scope.spec, IPv4DHCPScope) else 6
            found |= dict.fromkeys(elsewhere(candidates(scope, site), family, served, site))
    for address in found:
        yield f"listen-address={address}"


def _served(lan: Lan, site: Site) -> list[str]:
    names = (name for server in lan.servers for name in _links_of(server, lan, site))
    return list(dict.fromkeys(map(site.ifname, names)))


def _links_of(server: Resource, lan: Lan, site: Site) -> Iterable[str]:
    listed: tuple[str, ...] | None = server.spec.listen_interfaces
    if listed is not None:
        return listed
    of_server = type(server.spec), server.name
    return (link_of(scope, site) for scope in lan.scopes if server_of(scope) == of_server)


def _dns(lan: Lan, site: Site) -> Iterator[str]:
    if lan.dns is None:
        yield "port=0"
        return
    yield "port=53"
    yield "domain-needed"
    yield "bogus-priv"
    # /etc/hosts is about the router itself: Debian's says that its name is 127.0.1.1.
    yield "no-hosts"
    if lan.dns.cache_size is not None:
        yield f"cache-size={lan.dns.cache_size}"
    match lan.dns.upstream_source:
        case "none":
            yield "no-resolv"
        case "system":
            yield f"resolv-file={quoted(site.under('/etc/resolv.conf'))}"
        case _:
            yield f"resolv-file={quoted(site.under(UPSTREAM))}"
    yield f"servers-file={quoted(site.under(SERVERS))}"


def _dhcp(lan: Lan, site: Site) -> Iterator[str]:
    yield f"dhcp-leasefile={quoted(site.under(LEASES))}"
    # Without it clients beyond the first 1000 are refused, however large the ranges. The same for
    # all: one more reservation must not restart it.
    yield f"dhcp-lease-max={_LEASES_MAX}"
    if any(getattr(scope.spec, "authoritative", False) for scope in lan.scopes):
        yield "dhcp-authoritative"
    if any(isinstance(scope.spec, IPv6DHCPScope) for scope in lan.scopes):
        yield "enable-ra"
    for scope in lan.scopes:
        # Each by its name: whatever else lies in the folders is not read.
        for path, _ in options(scope):
            yield f"dhcp-optsfile={quoted(site.under(path))}"
        yield f"dhcp-hostsfile={quoted(site.under(hosts(scope)))}"
        dev = site.ifname(link_of(scope, site))
        if isinstance(scope.spec, IPv4DHCPScope):
            yield _range4(tag(scope), scope.spec, dev, site)
        else:
            yield _range6(tag(scope), scope.spec, dev)
            yield from _advertised(scope.spec, dev, lan)


def _range4(name: str, spec: IPv4DHCPScope, dev: str, site: Site) -> str:
    # A mask that is not said here is that of the address on the link, once there is one.
    own = next((address for address in site.addresses(dev) if holds(address, spec)), None)
    mask = f"{own.network.netmask}," if own is not None else ""
    time = lease_time.shown(spec.lease_time)
    return f"dhcp-range=set:{name},{spec.range_start},{spec.range_end},{mask}{time}"


def _range6(name: str, spec: IPv6DHCPScope, dev: str) -> str:
    span = f"{spec.range_start},{spec.range_end}" if spec.mode == "stateful" else "::"
    time = lease_time.shown(spec.lease_time)
    return f"dhcp-range=set:{name},{span},constructor:{dev}{_MODES[spec.mode]},64,{time}"


def _advertised(spec: IPv6DHCPScope, dev: str, lan: Lan) -> Iterator[str]:
    # ra-param=LINK,[mtu:N,]INTERVAL[,LIFETIME]: a number alone would be the interval, of which 0
    # is the default. A lifetime of 0 is that of no default router.
    mtus = [mtu for _, mtu in lan.mtus.get(dev, ())]
    if mtus or not spec.default_route:
        mtu = f"mtu:{min(mtus)}," if mtus else ""
        yield f"ra-param={dev},{mtu}0{'' if spec.default_route else ',0'}"


def holds(own: Interface, spec: IPv4DHCPScope) -> bool:
    return spec.range_start in own.network and spec.range_end in own.network


def hosts(scope: Resource) -> str:
    """The file of its reservations."""
    return f"{FOLDER}/{tag(scope)}.hosts"


def options(scope: Resource) -> Iterator[tuple[str, Callable[[Resource, Site], str]]]:
    """What its clients are told besides their addresses: a file each, so that one can wait, and
    what makes the text."""
    if isinstance(scope.spec, IPv4DHCPScope):
        yield f"{FOLDER}/{tag(scope)}.router", router
    yield f"{FOLDER}/{tag(scope)}.dns", dns


# An option without a value is not sent; one that nobody mentions would be dnsmasq's own.


def router(scope: Resource, site: Site) -> str:
    """Raises Unknown."""
    spec: IPv4DHCPScope = scope.spec
    found = _own(spec, site) if spec.router_source == "interfaceAddress" else spec.router
    return f"tag:{tag(scope)},option:router{f',{found}' if found else ''}\n"


def dns(scope: Resource, site: Site) -> str:
    """Raises Unknown."""
    if isinstance(scope.spec, IPv4DHCPScope):
        said = "".join(f",{server}" for server in _dns4(scope, scope.spec, site))
        return f"tag:{tag(scope)},option:dns-server{said}\n"
    spec: IPv6DHCPScope = scope.spec
    servers: tuple[Address, ...] = spec.dns_servers
    if spec.dns_source == "self":
        servers = (resolve(candidates(scope, site), 6, site),)
    said = "".join(f",[{server}]" for server in servers)
    return f"tag:{tag(scope)},option6:dns-server{said}\n"


def _dns4(scope: Resource, spec: IPv4DHCPScope, site: Site) -> tuple[Address, ...]:
    if spec.dns_source == "self":
        named = spec.self_address_policy is not None
        return (resolve(candidates(scope, site), 4, site) if named else _own(spec, site),)
    if spec.dns_interface is not None:
        return learned(spec.dns_source, spec.dns_interface, site)
    return spec.dns_servers


def _own(spec: IPv4DHCPScope, site: Site) -> Address:
    dev = site.ifname(spec.interface)
    for one in on_link(dev, 4, site):
        if holds(one, spec):
            return one.ip
    raise missing(dev, f"an address on {dev} whose subnet holds {spec.range_start}", site)


def quoted(path: str) -> str:
    """A path as a value: a blank followed by # would start a comment."""
    if not any(sign in path for sign in ' \t#"\\'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
