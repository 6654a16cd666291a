"""What FRR knows of its neighbours, as values: BGP peers, BFD sessions, OSPF neighbours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.dataclass import dataclass, field
from holdfast.errors import DriverError
from holdfast.frr.commands import word
from holdfast.frr.vty import Vty

ESTABLISHED = "Established"
UP = "up"
FULL = "Full"


@dataclass(frozen=True, slots=True)
class PeerState:
    peer: str  # an address, or a link
    vrf: str
    remote_as: int
    state: str  # "Established", "Active", "Idle", …
    since: float = 0.0  # seconds since 1970; 0 where it is not established
    dropped: int = 0  # sessions that ended since FRR started
    received: Mapping[str, int] = field(default_factory=dict)  # "ipv4Unicast" -> prefixes
    sent: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_up(self) -> bool:
        return self.state == ESTABLISHED


@dataclass(frozen=True, slots=True)
class BfdState:
    peer: str
    local: str  # empty where FRR does not say
    vrf: str
    interface: str
    multihop: bool
    status: str  # "up", "down", "init", "shutdown"
    diagnostic: str = ""

    @property
    def session(self) -> tuple[str, str, str, str, bool]:
        return self.peer, self.local, self.vrf, self.interface, self.multihop

    @property
    def is_up(self) -> bool:
        return self.status == UP


@dataclass(frozen=True, slots=True)
class OspfState:
    version: int
    router_id: str
    interface: str
    state: str  # "Full", "Init", "2-Way", …

    @property
    def is_up(self) -> bool:
        return self.state == FULL


def peers(text: str) -> dict[tuple[str, str], PeerState]:
    """Of `show bgp vrf all summary json`, by VRF and peer, which stands in each of its families."""
    found: dict[tuple[str, str], PeerState] = {}
    for vrf, families in _object(text).items():
        for family, summary in _members(families):
            for name, told in _members(summary.get("peers", {})):
                known = found.get((vrf, name))
                received = {**(known.received if known else {}), family: told.get("pfxRcd", 0)}
                sent = {**(known.sent if known else {}), family: told.get("pfxSnt", 0)}
                is_up = told.get("state") == ESTABLISHED
                found[vrf, name] = PeerState(
                    name,
                    vrf,
                    int(told.get("remoteAs", 0)),
                    str(told.get("state", "")),
                    float(told.get("peerUptimeEstablishedEpoch", 0)) if is_up else 0.0,
                    int(told.get("connectionsDropped", 0)),
                    received,
                    sent,
                )
    return found


def bfd(text: str) -> dict[tuple[str, str, str, str, bool], BfdState]:
    """Of `show bfd peers json`."""
    told = json.loads(text)
    states = (
        BfdState(
            str(one.get("peer", "")),
            str(one.get("local", "")),
            str(one.get("vrf", "default")),
            str(one.get("interface", "")),
            bool(one.get("multihop")),
            str(one.get("status", "")),
            str(one.get("diagnostic", "")),
        )
        for one in (told if isinstance(told, list) else ())
    )
    return {state.session: state for state in states}


def ospf(text: str) -> dict[tuple[int, str, str], OspfState]:
    """Of `show ip ospf neighbor json`."""
    found = {}
    for router_id, adjacencies in _members(_object(text).get("neighbors", {})):
        for adjacency in adjacencies if isinstance(adjacencies, list) else ():
            interface = str(adjacency.get("ifaceName", "")).partition(":")[0]
            state = str(adjacency.get("nbrState", "")).partition("/")[0]
            found[2, router_id, interface] = OspfState(2, router_id, interface, state)
    return found


def ospf6(text: str) -> dict[tuple[int, str, str], OspfState]:
    """Of `show ipv6 ospf6 neighbor json`."""
    found = {}
    told = _object(text).get("neighbors", [])
    for one in told if isinstance(told, list) else ():
        router_id, interface = str(one.get("neighborId", "")), str(one.get("interfaceName", ""))
        found[3, router_id, interface] = OspfState(3, router_id, interface, str(one.get("state")))
    return found


def advertised_to(bgpd: Vty, prefix: str, vrf: str = "default") -> tuple[str, ...]:
    """The peers that a prefix is really told to, by its canonical name."""
    family = "ipv6" if ":" in prefix else "ipv4"
    where = "" if vrf == "default" else f" vrf {word(vrf)}"
    text = bgpd.show(f"show bgp{where} {family} unicast {word(prefix)} json")
    return tuple(_object(text).get("advertisedTo", {}))


def _object(text: str) -> dict[str, Any]:
    try:
        told = json.loads(text or "{}")
    except ValueError as error:
        raise DriverError(f"FRR answers with what is no JSON: {error}") from error
    return told if isinstance(told, dict) else {}


def _members(told: object) -> Iterator[tuple[str, Any]]:
    return iter(told.items()) if isinstance(told, dict) else iter(())
