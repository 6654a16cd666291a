"""IPv4DHCPReservation and IPv6DHCPReservation: one client's address, name and lease time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from holdfast.engine.kinds.file import FILE
from holdfast.resources.lan import lease_time as times
from holdfast.resources.lan.dhcp_scope import IPv4DHCPScope, IPv6DHCPScope
from holdfast.resources.lan.lease_time import lease_time
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.spec.dns_name import parse_host
from holdfast.resources.spec.shape import Shape, Spec, optional, parsed, reference, required
from holdfast.resources.spec.values import address, mac

_HEX = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2})+")
# Words that dnsmasq would take for something else than a name in the line of a host.
_NO_NAMES = re.compile(r"[0-9]+[smhdw]?|infinite|ignore")


def parse_client_id(text: str) -> str:
    found = text.lower()
    if not _HEX.fullmatch(found):
        raise ValueError(f"{text!r} is not a client id: bytes in hex such as 01:02:5e:10")
    if len(found) > 3 * 255:
        raise ValueError("is longer than the 255 bytes that DHCP has for it")
    return found


def parse_reserved_name(text: str) -> str:
    name = parse_host(text)
    if _NO_NAMES.fullmatch(name):
        raise ValueError(f"{text!r} means something else to dnsmasq; choose another name")
    return name


def _client_id() -> Shape:
    return parsed(parse_client_id, "bytes in hex, with colons between", {"minLength": 5})


def _name() -> Shape:
    return parsed(parse_reserved_name, "host name without domain", {"maxLength": 63})


_MAC = "the client's hardware address"
_HOSTNAME = "its name in the DNS, from its first lease on, whatever it calls itself"
_LEASE_TIME = "instead of the scope's"


class IPv4DHCPReservation(Spec):
    scope: str = required(reference(IPv4DHCPScope), "the scope of the link that the client is on")
    mac: str | None = optional(mac(), _MAC)
    client_id: str | None = optional(
        _client_id(), "or what it calls itself by in DHCP (option 61, the type byte first)"
    )
    address: IPv4Address = required(
        address(4), "the address kept for it, in the subnet of the scope, in its range or not"
    )
    hostname: str | None = optional(_name(), _HOSTNAME)
    lease_time: int | None = optional(lease_time(), _LEASE_TIME)


class IPv6DHCPReservation(Spec):
    scope: str = required(
        reference(IPv6DHCPScope), "the `stateful` scope of the link that the client is on"
    )
    mac: str | None = optional(
        mac(), f"{_MAC}. DHCPv6 does not carry it, so dnsmasq asks the link; `duid` is surer"
    )
    duid: str | None = optional(_client_id(), "or its DHCP unique identifier")
    address: IPv6Address = required(
        address(6), "the address kept for it; its end alone (::20) for every prefix there"
    )
    hostname: str | None = optional(_name(), _HOSTNAME)
    lease_time: int | None = optional(lease_time(), _LEASE_TIME)


DHCPReservation = IPv4DHCPReservation | IPv6DHCPReservation


def identity(spec: DHCPReservation) -> tuple[str, str]:
    """The field that says which client it is, and what it says."""
    if spec.mac is not None:
        return "mac", spec.mac
    if isinstance(spec, IPv4DHCPReservation):
        return "clientId", spec.client_id or ""
    return "duid", spec.duid or ""


def check(resource: Resource) -> Iterator[Fault]:
    spec: DHCPReservation = resource.spec
    name = "clientId" if isinstance(spec, IPv4DHCPReservation) else "duid"
    other = spec.client_id if isinstance(spec, IPv4DHCPReservation) else spec.duid
    if (spec.mac is None) == (other is None):
        yield Fault((), f"needs `mac` or `{name}`, and not both")


def line(spec: DHCPReservation) -> str:
    """For dnsmasq's file of hosts."""
    field, client = identity(spec)
    words = [client if field == "mac" else f"id:{client}"]
    words.append(f"[{spec.address}]" if spec.address.version == 6 else str(spec.address))
    if spec.hostname is not None:
        words.append(spec.hostname)
    if spec.lease_time is not None:
        words.append(times.shown(spec.lease_time))
    return ",".join(words) + "\n"


KINDS = (
    Kind(
        IPv4DHCPReservation,
        "An IPv4 address kept for one client. A change is taken up without a restart.",
        (FILE.name,),
        """\
scope: lan
mac: 02:00:5e:10:00:20
address: 192.168.1.20
hostname: nas
""",
        nothing_alone,
        check,
        cross_checks="lan.dhcp_checks",
    ),
    Kind(
        IPv6DHCPReservation,
        "An IPv6 address kept for one client. A change is taken up without a restart.",
        (FILE.name,),
        """\
scope: lan
duid: 00:03:00:01:02:00:5e:10:00:20
address: "::20"
hostname: nas
""",
        nothing_alone,
        check,
        cross_checks="lan.dhcp_checks",
    ),
)
