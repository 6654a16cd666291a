"""What is true in FRR of what owners declare, and what changed from one look to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.dataclass import dataclass, field
from holdfast.engine import event_kinds as kinds
from holdfast.engine.event_kinds import EventKind

ESTABLISHED, UP, FULL, GONE = "Established", "up", "Full", "gone"


@dataclass(frozen=True, slots=True)
class Peer:
    state: str  # as FRR says it
    remote_as: int = 0
    received: int = 0
    sent: int = 0
    uptime: str = ""
    bfd: str = ""


@dataclass(frozen=True, slots=True)
class BFD:
    state: str  # "up", "down", "init"
    uptime: str = ""


@dataclass(frozen=True, slots=True)
class Neighbor:
    """Of OSPF."""

    state: str  # "Full/DR"
    ifname: str = ""

    @property
    def full(self) -> bool:
        return self.state.partition("/")[0] == FULL


@dataclass(frozen=True, slots=True)
class FRR:
    connected: bool = False
    version: str = ""
    uptime: str = ""
    missing: tuple[str, ...] = ()  # daemons that are needed and do not answer


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. Peers and BFD sessions by address, OSPF's neighbours by router id."""

    frr: FRR = FRR()
    peers: Mapping[str, Peer] = field(default_factory=dict)
    bfd: Mapping[str, BFD] = field(default_factory=dict)
    neighbors: Mapping[str, Neighbor] = field(default_factory=dict)
    # Of each prefix that FRR sends, the peers that it is sent to.
    advertised: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # What FRR's running configuration has: `BGPPrefix/prefix-192.0.2.1-32`.
    applied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    kind: EventKind
    about: str  # an address, a prefix or a router id
    message: str
    data: Mapping[str, str] = field(default_factory=dict)


def changes(before: Seen, after: Seen) -> Iterator[Change]:
    """What clients are told. While FRR does not answer, nothing is known of its sessions: those
    that were up are down when it is told, or up still when it answers."""
    if before.frr.connected != after.frr.connected:
        yield _frr(after.frr)
    if not after.frr.connected:
        return
    yield from _peers(before, after)
    yield from _bfd(before, after)
    yield from _neighbors(before, after)
    yield from _advertised(before, after)


def carried(before: Seen, after: Seen) -> Seen:
    """What the next look is compared with."""
    if after.frr.connected:
        return after
    return Seen(after.frr, before.peers, before.bfd, before.neighbors, before.advertised)


def _frr(frr: FRR) -> Change:
    if frr.connected:
        return Change(kinds.FRR_CONNECTED, "FRR", f"FRR {frr.version} answers")
    missing = ", ".join(frr.missing) or "its daemons"
    return Change(kinds.FRR_DISCONNECTED, "FRR", f"FRR does not answer: {missing}")


def _peers(before: Seen, after: Seen) -> Iterator[Change]:
    for address in {**before.peers, **after.peers}:
        was = before.peers[address].state if address in before.peers else ""
        now = after.peers[address].state if address in after.peers else GONE
        up = now == ESTABLISHED
        if was != now and ESTABLISHED in (was, now):
            data = {"peer": address, "state": now, "previous_state": was}
            said = f"peer {address} is {now}"
            yield Change(kinds.PEER_UP if up else kinds.PEER_DOWN, address, said, data)


def _bfd(before: Seen, after: Seen) -> Iterator[Change]:
    for address in {**before.bfd, **after.bfd}:
        was = before.bfd[address].state if address in before.bfd else ""
        now = after.bfd[address].state if address in after.bfd else GONE
        if was != now and UP in (was, now):
            data = {"peer": address, "status": now, "previous_status": was}
            kind = kinds.BFD_UP if now == UP else kinds.BFD_DOWN
            yield Change(kind, address, f"BFD session to {address} is {now}", data)


def _neighbors(before: Seen, after: Seen) -> Iterator[Change]:
    nobody = Neighbor(GONE)
    for router in {**before.neighbors, **after.neighbors}:
        was, now = before.neighbors.get(router), after.neighbors.get(router, nobody)
        if (was is not None and was.full) != now.full:
            data = {
                "neighbor_id": router,
                "state": now.state,
                "previous_state": was.state if was is not None else "",
            }
            kind = kinds.OSPF_NEIGHBOR_UP if now.full else kinds.OSPF_NEIGHBOR_DOWN
            yield Change(
                kind,
                now.ifname or (was.ifname if was else ""),
                f"OSPF neighbour {router} is {now.state}",
                data,
            )


def _advertised(before: Seen, after: Seen) -> Iterator[Change]:
    for prefix in after.advertised.keys() - before.advertised.keys():
        to = ", ".join(after.advertised[prefix])
        data = {"prefix": prefix, "protocol": "BGP"}
        yield Change(kinds.PREFIX_ADVERTISED, prefix, f"{prefix} is sent to {to}", data)
    for prefix in before.advertised.keys() - after.advertised.keys():
        data = {"prefix": prefix, "protocol": "BGP"}
        yield Change(kinds.PREFIX_WITHDRAWN, prefix, f"{prefix} is sent to nobody", data)
