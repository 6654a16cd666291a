"""OSPF, version 2 for IPv4 and 3 for IPv6: instances, interfaces, and prefixes that are told."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

from holdfast.dataclass import asdict, dataclass
from holdfast.engine.artifact import (
    Artifact,
    ArtifactKind,
    Batch,
    Key,
    NamedBy,
    Naming,
    PartialLook,
    Value,
)
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF, in_vrf, name_and_vrf
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb

VERSIONS = (2, 3)

# What FRR takes where nothing is said.
HELLO_INTERVAL = 10
DEAD_INTERVAL = 40
PRIORITY = 1

# The name that maps and lists of prefixes begin with, which are told to OSPF: `HF-ospf-…`.
OSPF_PREFIX_NAME = "HF-ospf"


def _version(name: str) -> str:
    return "ospf" if name.startswith("v2") else "ospf6"


def _instance_shown(name: str, _fields: Mapping[str, Any]) -> list[str]:
    _, vrf = name_and_vrf(name)
    words = ["router", _version(name)]
    return words if vrf == DEFAULT_VRF else [*words, "vrf", vrf]


def _instance_risk(verb: Verb, _subject: Artifact | Batch, _changes: Changes) -> Cost:
    if verb is Verb.CREATE:
        return Risk.LOW, ""
    return Risk.HIGH, "all its neighbours are lost, if only for a moment"


OSPF_INSTANCE = ArtifactKind(
    name="ospf_instance",
    identity="version and VRF",
    fields=("router_id",),
    proof="a claim. FRR has no place for a tag on it",
    cleanup="deleted when claimed, while nothing of others is in it",
    deletes_orphans=True,
    after=("link", "address"),
    urgent=lambda instance, _operation: f"OSPF{instance.key.name}",
    interrupts=lambda operation: (
        "loses its neighbours"
        if operation.verb is Verb.DELETE
        or any(change.field == "router_id" for change in operation.changes)
        else ""
    ),
    risk=_instance_risk,
    survives_reboot=True,
    needs_program=True,
    shown=_instance_shown,
)


def ospf_instance_key(version: int, vrf: str = DEFAULT_VRF) -> Key:
    return Key(OSPF_INSTANCE.name, in_vrf(f"v{version}", vrf))


def ospf_instance(
    version: int, *, vrf: str = DEFAULT_VRF, router_id: str | None = None
) -> Artifact:
    """`router ospf [vrf VRF]`, `router ospf6 [vrf VRF]`: without it, an interface in an area says
    nothing to anybody.

    `router_id` is `ospf router-id A`, `ospf6 router-id A`. It is declared only where somebody
    declares it; one that was set by hand stays.
    """
    fields: dict[str, Value] = {} if router_id is None else {"router_id": router_id}
    return Artifact(ospf_instance_key(version, vrf), fields)


@dataclass(frozen=True, slots=True)
class OspfInterface:
    """What is said below `interface NAME`: `ip ospf …` in version 2, `ipv6 ospf6 …` in version 3.

    | field | line | without a line |
    |-------|------|----------------|
    | area | `area A`, dotted also where FRR shows a number | not in OSPF |
    | cost | `cost N` | None: by the speed of the link |
    | hello_interval | `hello-interval N` | 10 |
    | dead_interval | `dead-interval N` | 40 |
    | priority | `priority N` | 1 |
    | passive | `passive` | off |
    | network | `network point-to-point`, `network broadcast`; version 2 also `non-broadcast`,
    |         | `point-to-multipoint` | None: by the kind of the link |
    | mtu_ignore | `mtu-ignore` | off |
    | bfd | `bfd`, also with a profile | off |
    | bfd_profile | `bfd profile NAME` | None |

    An area that differs is taken away before the other is given: FRR refuses the one beside the
    other, and ospf6d says 0 for that.
    """

    area: str
    cost: int | None = None
    hello_interval: int = HELLO_INTERVAL
    dead_interval: int = DEAD_INTERVAL
    priority: int = PRIORITY
    passive: bool = False
    network: str | None = None
    mtu_ignore: bool = False
    bfd: bool = False
    bfd_profile: str | None = None


_LOSES_NEIGHBOURS = frozenset({"area", "hello_interval", "dead_interval", "passive", "network"})


def _interface_interrupts(operation: Operation) -> str:
    if operation.verb is Verb.DELETE:
        return "loses its neighbours"
    changed = {change.field for change in operation.changes}
    return "loses its neighbours for a moment" if changed & _LOSES_NEIGHBOURS else ""


def _interface_risk(verb: Verb, _subject: Artifact | Batch, changes: Changes) -> Cost:
    if verb is Verb.CREATE:
        return Risk.LOW, ""
    if verb is Verb.DELETE:
        return Risk.HIGH, "what is learned over it is forgotten"
    if any(change.field in _LOSES_NEIGHBOURS for change in changes):
        return Risk.HIGH, "its neighbours are lost, if only for a moment"
    return Risk.LOW, ""


OSPF_INTERFACE = ArtifactKind(
    name="ospf_interface",
    identity="version and link",
    fields=OspfInterface.__slots__,
    proof="a claim. FRR has no place for a tag on it",
    cleanup="all `ospf` lines of that version go from the link when claimed and still what was"
    " claimed; its other lines stay",
    deletes_orphans=True,
    after=("link", "address", "ospf_instance", "bfd_profile"),
    urgent=lambda interface, _operation: f"OSPF{interface.key.name}",
    interrupts=_interface_interrupts,
    risk=_interface_risk,
    survives_reboot=True,
    needs_program=True,
    shown=lambda name, fields: [
        "interface", name.partition(" ")[2], _version(name), "area", str(fields.get("area"))
    ],
)  # fmt: skip


def ospf_interface(version: int, interface: str, told: OspfInterface) -> Artifact:
    """Named `v2 eth0`, `v3 eth0`. The VRF is that of the link."""
    fields: dict[str, Value] = {**asdict(told), "area": area(told.area)}
    return Artifact(Key(OSPF_INTERFACE.name, f"v{version} {interface}"), fields)


def area(said: str) -> str:
    """Dotted, of either way to write it; ValueError where it is none."""
    if said.isascii() and said.isdigit() and int(said) <= 0xFFFFFFFF:
        return str(IPv4Address(int(said)))
    return str(IPv4Address(said))


OSPF_PREFIX = ArtifactKind(
    name="ospf_prefix",
    identity="prefix, whose family says the version, and the VRF",
    fields=("metric", "metric_type"),
    proof="the list that it stands in, which is called `HF-ospf-…`",
    cleanup="deleted from the list of ours that it stands in",
    deletes_orphans=True,
    after=("link", "address", "route", "ospf_instance"),
    risk=lambda verb, _subject, _changes: (
        (Risk.LOW, "neighbours may send what is for it here")
        if verb is Verb.CREATE
        else (Risk.MEDIUM, "neighbours learn it otherwise, or no longer")
    ),
    survives_reboot=True,
    tells_its_maker=True,
    tagged=True,
    needs_program=True,
    partial_look=PartialLook.KIND,
    shown=lambda name, _fields: ["ospf", "prefix", name],
    naming=Naming(by=NamedBy.DESTINATION),
)


def ospf_prefix(
    prefix: str, *, vrf: str = DEFAULT_VRF, metric: int | None = None, metric_type: int = 2
) -> Artifact:
    """An external prefix (`redistribute`) of version 2 or 3.

    OSPF tells what is in the routing table, and nothing else: `network P` would only choose
    interfaces. So ours are the routes to P, by whatever made them, that these lines let through
    (`ospf` is `ospf6` and `ip` is `ipv6` in version 3, and V is `v2` or `v3`, with the VRF behind
    it where it is not the default):

        ip prefix-list HF-ospf-V-METRIC-TYPE seq N permit P      `METRIC` is `any` for None
        route-map HF-ospf-V permit M                             one entry for each list
         match ip address prefix-list HF-ospf-V-METRIC-TYPE
         set metric METRIC
         set metric-type type-TYPE
        router ospf
         redistribute kernel route-map HF-ospf-V
         redistribute connected route-map HF-ospf-V
         redistribute static route-map HF-ospf-V

    A `redistribute` of somebody else's is not replaced. Where one without a map is there, it lets
    all through, and ours are told by it without their metric; where one has another map, or a
    metric, the prefix is a Failure that names the line. The three lines, the map and its lists go
    with the last prefix. The resource declares a route to the prefix beside it, so that there is
    one.
    """
    name = in_vrf(prefix, vrf)
    return Artifact(
        Key(OSPF_PREFIX.name, name),
        {"prefix": prefix, "vrf": vrf, "metric": metric, "metric_type": metric_type},
    )
