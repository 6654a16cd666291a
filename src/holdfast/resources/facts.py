"""Facts: what was learned outside and resources depend on.

A fact that is not there is unknown, which is not the same as gone: while a DHCP client has said
nothing (after a reboot, say), what was made of its last lease stays; once it says that the lease
is over, that goes too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, IPv6Network

from holdfast.dataclass import dataclass, field

Address = IPv4Address | IPv6Address
LinkAddress = IPv4Interface | IPv6Interface


class Gone(Enum):
    """Whoever knows says that there is none."""

    GONE = "gone"


GONE = Gone.GONE


@dataclass(frozen=True, slots=True)
class Lease:
    """What a DHCP server of either family, or the far end of a PPP session, gave a link."""

    addresses: tuple[LinkAddress, ...] = ()
    gateway: Address | None = None
    dns: tuple[Address, ...] = ()
    ntp: tuple[Address, ...] = ()
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a HealthCheck says of its target."""

    healthy: bool
    reason: str  # "3 of 3 probes answered", for people to read


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question to the DNS: which addresses a name has."""

    name: str
    family: int  # 4 or 6
    servers: tuple[str, ...] = ()  # none: the system's own


@dataclass(frozen=True, slots=True)
class Facts:
    """Links go by their kernel names; what is not in a mapping is unknown."""

    leases4: Mapping[str, Lease | Gone] = field(default_factory=dict)
    leases6: Mapping[str, Lease | Gone] = field(default_factory=dict)
    sessions: Mapping[str, Lease | Gone] = field(default_factory=dict)  # PPP
    # Prefixes delegated to us over a link, in the order given.
    delegations: Mapping[str, tuple[IPv6Network, ...] | Gone] = field(default_factory=dict)
    # All addresses on a link as the kernel lists them, whoever put them there.
    addresses: Mapping[str, tuple[LinkAddress, ...]] = field(default_factory=dict)
    # The default gateway of a family (4 or 6) that the kernel has learned over a link.
    gateways: Mapping[tuple[str, int], Address] = field(default_factory=dict)
    # Links that have a gateway in a network of theirs, by a routing table and the gateway: the one
    # that the kernel would take first. Of gateways that were asked for.
    on_link: Mapping[tuple[int, Address], tuple[str, ...]] = field(default_factory=dict)
    mtus: Mapping[str, int] = field(default_factory=dict)
    macs: Mapping[str, str] = field(default_factory=dict)  # of Ethernet links
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)  # by name of the HealthCheck
    answers: Mapping[Lookup, tuple[Address, ...]] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()  # why something is unknown, for people to read


NOTHING_KNOWN = Facts()
