"""BGP peers and peer groups: what a session is told, and what it takes and gives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import (
    Artifact,
    ArtifactKind,
    Batch,
    Key,
    MadeOf,
    NamedBy,
    Naming,
    Value,
)
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF, in_vrf, name_and_vrf
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb

FAMILIES = {4: "ipv4_unicast", 6: "ipv6_unicast"}
MULTIHOP_ANY = 255  # `ebgp-multihop` without a number

# What says who the neighbour is and how it is spoken to: FRR starts the session anew.
_RESETS = frozenset(
    {
        "remote_as", "group", "local_as", "update_source", "ebgp_multihop", "ttl_security",
        "password", "extended_nexthop", "graceful_restart", "shutdown", "passive",
        "disable_connected_check",
    }
)  # fmt: skip
# In a family, these decide what is spoken about at all.
_FAMILY_RESETS = ("activate", "route-reflector-client", "addpath-", "capability ")
_SETTINGS = (
    "remote_as", "description", "local_as", "update_source", "ebgp_multihop", "ttl_security",
    "disable_connected_check", "password", "keepalive", "hold_time", "connect_time",
    "advertisement_interval", "passive", "shutdown", "graceful_shutdown", "graceful_restart",
    "extended_nexthop", "bfd", "bfd_profile", *FAMILIES.values(), "other",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Session:
    """What FRR is told of a peer, or of all peers of a group, as its running configuration says it.

    Each field is one line `neighbor NAME …` below `router bgp`. None and False stand for no such
    line: FRR's default, or what the group of a peer says. FRR shows of a peer in a group only what
    it has by itself, and so do these fields.

    | field | line behind `neighbor NAME` |
    |-------|-----------------------------|
    | remote_as | `remote-as 65001`, `remote-as internal`, `remote-as external` |
    | description | `description TEXT` |
    | local_as | `local-as 65010`, `… no-prepend`, `… no-prepend replace-as` |
    | update_source | `update-source A`: an address or the name of a link |
    | ebgp_multihop | `ebgp-multihop N`; 255 also where FRR shows no number |
    | ttl_security | `ttl-security hops N` |
    | disable_connected_check | `disable-connected-check` |
    | password | `password TEXT`; the field holds `password_digest(TEXT)` |
    | keepalive, hold_time | `timers K H`: both or none |
    | connect_time | `timers connect N` |
    | advertisement_interval | `advertisement-interval N` |
    | passive | `passive` |
    | shutdown | `shutdown` |
    | graceful_shutdown | `graceful-shutdown`; 8.4 has it for the whole instance only |
    | graceful_restart | "restart" `graceful-restart`, "helper" `graceful-restart-helper`,
    |                  | "disable" `graceful-restart-disable` |
    | extended_nexthop | `capability extended-nexthop`; a peer by link has it without a line |
    | bfd | `bfd`, also with a profile |
    | bfd_profile | `bfd profile NAME` |

    ipv4_unicast, ipv6_unicast: the lines of the family, without `neighbor NAME `, sorted, as FRR
    writes them: "activate", "next-hop-self", "maximum-prefix 1000 80 warning-only",
    "route-map HF-upstream-0123456789abcdef in", "soft-reconfiguration inbound". "activate" is there
    where the family is in force, though FRR leaves it out for IPv4 while `bgp default
    ipv4-unicast` is in force; a peer of a group without lines of its own has ().
    """

    remote_as: str | None = None
    description: str | None = None
    local_as: str | None = None
    update_source: str | None = None
    ebgp_multihop: int | None = None
    ttl_security: int | None = None
    disable_connected_check: bool = False
    password: str | None = field(default=None, repr=False)
    keepalive: int | None = None
    hold_time: int | None = None
    connect_time: int | None = None
    advertisement_interval: int | None = None
    passive: bool = False
    shutdown: bool = False
    graceful_shutdown: bool = False
    graceful_restart: str | None = None
    extended_nexthop: bool = False
    bfd: bool = False
    bfd_profile: str | None = None
    ipv4_unicast: tuple[str, ...] = ()
    ipv6_unicast: tuple[str, ...] = ()

    def fields(self) -> dict[str, Value]:
        found: dict[str, Value] = {name: getattr(self, name) for name in self.__slots__}
        found["password"] = password_digest(self.password) if self.password is not None else None
        for family in FAMILIES.values():
            found[family] = tuple(sorted(getattr(self, family)))
        return found

    def payload(self) -> bytes:
        return (self.password or "").encode()


@lru_cache(maxsize=256)
def password_digest(password: str) -> str:
    """Fields stand in plans and in the ledger. People choose passwords, so that the digest is made
    slow to compute, for whoever would try a dictionary."""
    made = hashlib.scrypt(
        password.encode(), salt=b"holdfast bgp password", n=1 << 13, r=8, p=1, dklen=32
    )
    return f"scrypt:{made.hex()}"


def resets(changes: Changes) -> bool:
    """Whether FRR ends the session for one of these changes, and starts it anew."""
    return any(
        change.field in _RESETS
        or (change.field in FAMILIES.values() and _telling(change.before) != _telling(change.after))
        for change in changes
    )


def _telling(settings: Value) -> list[str]:
    """Those of a family's settings that a session is negotiated by."""
    found: Sequence[str] = settings if isinstance(settings, tuple) else ()
    return sorted(one for one in found if one.startswith(_FAMILY_RESETS))


def _interrupts(operation: Operation) -> str:
    if operation.verb is Verb.DELETE:
        return "ends its session"
    return "resets its session" if resets(operation.changes) else ""


def _group_interrupts(operation: Operation) -> str:
    if operation.verb is Verb.DELETE:
        return "ends the sessions of its peers"
    return "resets the sessions of its peers" if resets(operation.changes) else ""


def _risk(verb: Verb, _subject: Artifact | Batch, changes: Changes) -> Cost:
    if verb is Verb.CREATE:
        return Risk.LOW, ""
    if verb is Verb.DELETE:
        return Risk.HIGH, "the session ends, and what was learned by it is forgotten"
    if resets(changes):
        return Risk.HIGH, "the session is reset"
    if any(change.field in FAMILIES.values() for change in changes):
        return Risk.MEDIUM, "other routes are learned or told from then on; the session stays"
    return Risk.LOW, "the session stays"


def is_address(name: str) -> bool:
    """Whether a peer is known by its address; else it is one by link (unnumbered)."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _peer_shown(name: str, fields: Mapping[str, Any]) -> list[str]:
    peer, vrf = name_and_vrf(name)
    words = ["neighbor", peer, *(["interface"] if not is_address(peer) else [])]
    if fields.get("remote_as"):
        words += ["remote-as", str(fields["remote_as"])]
    if fields.get("group"):
        words += ["peer-group", str(fields["group"])]
    return words if vrf == DEFAULT_VRF else [*words, "vrf", vrf]


def _group_shown(name: str, fields: Mapping[str, Any]) -> list[str]:
    group, vrf = name_and_vrf(name)
    words = ["neighbor", group, "peer-group"]
    if fields.get("remote_as"):
        words += ["remote-as", str(fields["remote_as"])]
    return words if vrf == DEFAULT_VRF else [*words, "vrf", vrf]


BGP_PEER_GROUP = ArtifactKind(
    name="bgp_peer_group",
    identity="name of the group, and the VRF",
    fields=(*_SETTINGS, "listen_ranges"),
    surplus=("other",),
    proof="a claim. FRR has no place for a tag on it",
    cleanup="deleted when claimed and still what was claimed, while no peer of others is in it",
    deletes_orphans=True,
    after=("link", "address", "bgp_instance", "bgp_filter", "bfd_profile"),
    urgent=lambda group, _operation: f"the peers of group {group.key.name}",
    interrupts=_group_interrupts,
    risk=_risk,
    survives_reboot=True,
    made_of=MadeOf.CONTENT,
    needs_program=True,
    shown=_group_shown,
)

BGP_PEER = ArtifactKind(
    name="bgp_peer",
    identity="address, or link where it is known by that, and the VRF",
    fields=("group", *_SETTINGS),
    surplus=("other",),
    proof="a claim. FRR has no place for a tag on it",
    cleanup="deleted when claimed and still what was claimed",
    deletes_orphans=True,
    after=(*BGP_PEER_GROUP.after, "bgp_peer_group"),
    urgent=lambda peer, _operation: f"the session with {peer.key.name}",
    interrupts=_interrupts,
    risk=_risk,
    survives_reboot=True,
    made_of=MadeOf.CONTENT,
    needs_program=True,
    shown=_peer_shown,
    naming=Naming(aliases=("peer", "neighbor"), by=NamedBy.ADDRESS),
)


def peer_key(peer: str, vrf: str = DEFAULT_VRF) -> Key:
    return Key(BGP_PEER.name, in_vrf(peer, vrf))


def group_key(group: str, vrf: str = DEFAULT_VRF) -> Key:
    return Key(BGP_PEER_GROUP.name, in_vrf(group, vrf))


def bgp_peer(
    peer: str, session: Session, *, vrf: str = DEFAULT_VRF, group: str | None = None
) -> Artifact:
    """peer: a canonical address, or the name of a link: then it is `neighbor LINK interface …`.

    `group` is the line `neighbor NAME peer-group GROUP`; the others are those of `Session`. The
    payload is the password, as it is. `other`, which nobody declares, holds the lines of this
    neighbour that no field stands for, in families, too ("ipv4 vpn activate"): they go.
    """
    return Artifact(
        peer_key(peer, vrf), {**session.fields(), "group": group}, payload=session.payload()
    )


def bgp_peer_group(
    group: str,
    session: Session,
    *,
    vrf: str = DEFAULT_VRF,
    listen_ranges: Iterable[str] = (),
) -> Artifact:
    """`neighbor GROUP peer-group`, the lines of `Session`, and one `bgp listen range P peer-group
    GROUP` for each of `listen_ranges`: canonical prefixes, IPv4 first, in order."""
    ranges = sorted(map(ip_network, listen_ranges), key=lambda one: (one.version, one))
    fields = {**session.fields(), "listen_ranges": tuple(map(str, ranges))}
    return Artifact(group_key(group, vrf), fields, payload=session.payload())
