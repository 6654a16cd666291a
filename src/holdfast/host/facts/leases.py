"""What DHCP clients said, from the files their hook leaves: the environment of its last run.

Most values come from whoever answered on the link. Each is taken only as far as it is what it
should be; the rest of the lease still counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Set
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
)
from pathlib import Path

from holdfast.config import regular_file
from holdfast.dataclass import dataclass, field
from holdfast.host.facts import clock
from holdfast.paths import Paths
from holdfast.resources.facts import GONE, Address, Gone, Lease

FOLDER = "/run/holdfast/leases"
_SIZE_MAX = 1 << 18
_ITEMS_MAX = 8  # of a list or of numbered variables; nobody sends more in earnest

# What dhcpcd says when it has taken the address off the link. STOP is not among these: a client
# that was stopped (by an upgrade, a restart) has not said that the lease is over, and while its
# resource is declared it is started again.
_OVER = frozenset({"EXPIRE", "NAK", "RELEASE"})
# dhcpcd says EXPIRE of a prefix also when the carrier is lost or its configuration changes, while
# the prefix stays ours until its lifetime ends (RFC 7084, RFC 9096).
_GIVEN_BACK = frozenset({"RELEASE"})
_FOREVER = 0xFFFFFFFF
# Shorter ones than any provider was ever given can only be a mistake, or malice: the route that
# catches what is not in use of a prefix would swallow the Internet.
_SHORTEST_PREFIX = 16
_DOMAIN = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")


@dataclass(slots=True)
class Leases:
    leases4: dict[str, Lease | Gone] = field(default_factory=dict)
    leases6: dict[str, Lease | Gone] = field(default_factory=dict)
    delegations: dict[str, tuple[IPv6Network, ...] | Gone] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)


def read_leases(paths: Paths, links: Set[str]) -> Leases:
    """links: those that are there; what was said of others is of the past."""
    found = Leases()
    folder = paths.under(FOLDER)
    try:
        names = sorted(path.name for path in folder.iterdir())
        boot, now = clock.boot_id(), clock.uptime()
    except FileNotFoundError:
        return found
    except OSError as error:
        found.troubles.append(f"leases in {folder} could not be read: {error.strerror}")
        return found
    news: dict[tuple[str, str], dict[str, _Said]] = {}
    for name in names:
        parts = re.fullmatch(r"(.+)\.([46])\.(lease|over)", name)
        if parts is None or parts[1] not in links:
            continue
        try:
            said = _read(folder / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            found.troubles.append(f"{folder / name} could not be read: {error.strerror}")
            continue
        if said.get("holdfast_boot") == boot and said.get("interface") == parts[1]:
            about = news.setdefault((parts[1], parts[2]), {})
            about[parts[3]] = _Said(said, parts[1], now)
    for (ifname, family), about in news.items():
        _add(found, ifname, family, about.get("lease"), about.get("over"))
    return found


def _read(path: Path) -> dict[str, str]:
    with regular_file.opened(path) as descriptor:
        data = os.read(descriptor, _SIZE_MAX)
    found: dict[str, str] = {}
    for entry in data.split(b"\0")[:-1]:  # what no NUL ends was cut off
        name, equals, value = entry.partition(b"=")
        if equals:
            found[name.decode(errors="replace")] = value.decode(errors="replace")
    return found


@dataclass(frozen=True, slots=True)
class _Said:
    """The variables of one run of the hook."""

    variables: Mapping[str, str]
    ifname: str
    now: float

    @property
    def reason(self) -> str:
        return self.variables.get("reason", "").removesuffix("6")

    def get(self, name: str) -> str:
        return self.variables.get(f"new_{name}", "")

    def number(self, name: str) -> int | None:
        text = self.get(name)
        return int(text) if re.fullmatch(r"[0-9]{1,10}", text) else None

    def lasts(self, name: str) -> bool:
        """Whether a lifetime that began with this run still goes on. A client that died cannot
        say that its lease is over; time can."""
        seconds = self.number(name)
        began = self.variables.get("holdfast_uptime", "")
        if seconds is None or not re.fullmatch(r"[0-9]+(\.[0-9]+)?", began):
            return False
        return seconds == _FOREVER or float(began) + seconds > self.now

    def addresses(self, name: str, family: int) -> tuple[Address, ...]:
        """A list of servers."""
        found = (self._server(word, family) for word in self.get(name).split())
        return tuple(dict.fromkeys(one for one in found if one is not None))[:_ITEMS_MAX]

    def _server(self, word: str, family: int) -> Address | None:
        found = _address(word, family)
        if isinstance(found, IPv6Address) and found.is_link_local:
            # Without its link it leads nowhere, and no other link can be meant.
            if found.scope_id not in (None, self.ifname):
                return None
            return IPv6Address(f"{word.partition('%')[0]}%{self.ifname}")
        if isinstance(found, IPv6Address) and found.scope_id is not None:
            return None
        return found

    def domain(self, name: str) -> str:
        first = self.get(name).split()[:1]
        return first[0].lower() if first and _DOMAIN.fullmatch(first[0]) else ""


def _address(word: str, family: int) -> Address | None:
    """An address that some other machine may have."""
    try:
        found = ip_address(word)
    except ValueError:
        return None
    odd = found.is_unspecified or found.is_multicast or found.is_loopback
    broadcast = found == IPv4Address("255.255.255.255")
    return None if odd or broadcast or found.version != family else found


def _add(found: Leases, ifname: str, family: str, lease: _Said | None, over: _Said | None) -> None:
    leases = found.leases4 if family == "4" else found.leases6
    if over is not None:
        if over.reason in _OVER:
            leases[ifname] = GONE
    elif lease is not None:
        leases[ifname] = _lease4(lease) if family == "4" else _lease6(lease)
    if family == "6":
        said = over.reason if over is not None else ""
        if lease is not None and said not in _GIVEN_BACK:
            found.delegations[ifname] = tuple(_prefixes(lease)) or GONE
        elif said in _OVER:
            found.delegations[ifname] = GONE


def _lease4(said: _Said) -> Lease | Gone:
    address = _address(said.get("ip_address"), 4)
    length = said.number("subnet_cidr")
    if address is None or not said.lasts("dhcp_lease_time"):
        return GONE
    known = length if length is not None and 1 <= length <= 32 else 32
    return Lease(
        (IPv4Interface((str(address), known)),),
        _gateway(said),
        said.addresses("domain_name_servers", 4),
        said.addresses("ntp_servers", 4),
        said.domain("domain_name"),
    )


def _gateway(said: _Said) -> Address | None:
    """Option 121 takes the place of the router option where a server sends both (RFC 3442)."""
    words = said.get("classless_static_routes").split()
    for destination, gateway in zip(words[::2], words[1::2], strict=False):
        if destination == "0.0.0.0/0":
            return _address(gateway, 4)
    if words:
        return None
    return next(iter(said.addresses("routers", 4)), None)


def _lease6(said: _Said) -> Lease | Gone:
    addresses = tuple(_addresses6(said))
    prefixes = tuple(_prefixes(said))
    leased = any("_ia_" in name for name in said.variables if name.startswith("new_dhcp6_"))
    if leased and not addresses and not prefixes:
        return GONE  # all of it has run out
    return Lease(
        addresses,
        None,  # routers advertise themselves
        said.addresses("dhcp6_name_servers", 6),
        said.addresses("dhcp6_ntp_server_addr", 6) or said.addresses("dhcp6_sntp_servers", 6),
        said.domain("dhcp6_domain_search"),
    )


def _addresses6(said: _Said) -> Iterator[IPv6Interface]:
    for name in _numbered(said, "dhcp6_ia_na", "_ia_addr"):
        address = _address(said.get(name), 6)
        if address is not None and not address.is_link_local and said.lasts(f"{name}_vltime"):
            yield IPv6Interface((str(address), 128))


def _prefixes(said: _Said) -> Iterator[IPv6Network]:
    """Last those that are valid still and not to be used any more: a server that renumbers gives
    them without a preferred lifetime, beside the new one (RFC 8415)."""
    names = _numbered(said, "dhcp6_ia_pd", "_prefix")
    for name in sorted(names, key=lambda name: said.number(f"{name}_pltime") == 0):
        length = said.number(f"{name}_length")
        address = _address(said.get(name), 6)
        if address is None or length is None or not said.lasts(f"{name}_vltime"):
            continue
        if address.is_link_local or not _SHORTEST_PREFIX <= length <= 128:
            continue
        yield IPv6Network((str(address), length), strict=False)


def _numbered(said: _Said, outer: str, inner: str) -> Iterator[str]:
    """dhcp6_ia_pd1_prefix1, dhcp6_ia_pd1_prefix2, …"""
    for first in range(1, _ITEMS_MAX + 1):
        for second in range(1, _ITEMS_MAX + 1):
            name = f"{outer}{first}{inner}{second}"
            if f"new_{name}" in said.variables:
                yield name
