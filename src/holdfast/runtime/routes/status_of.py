"""How each object is doing: as clients of RouteControl know it, and as Holdfast says more of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from holdfast.api import route_control_pb2 as rc
from holdfast.api import routes_pb2 as routes
from holdfast.config.part import Target
from holdfast.dataclass import dataclass
from holdfast.resources.spec.durations import parse_duration
from holdfast.runtime.routes import documents
from holdfast.runtime.routes.conflicts import ADMIN_SOURCE, Claimed
from holdfast.runtime.routes.overrides import Lost
from holdfast.runtime.routes.owners import owner_of
from holdfast.runtime.routes.sessions import ESTABLISHED, UP, Seen

_WORDS = {
    routes.ROUTE_STAGE_ACCEPTED: "accepted",
    routes.ROUTE_STAGE_APPLIED: "applied",
    routes.ROUTE_STAGE_ESTABLISHED: "established",
    routes.ROUTE_STAGE_ADVERTISED: "advertised",
    routes.ROUTE_STAGE_FAILED: "failed",
    routes.ROUTE_STAGE_OVERRIDDEN: "overridden",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why it could not be done, as the loop has it."""

    error: str
    attempts: int = 0
    next_try: float = 0.0


class Observed(Protocol):
    def seen(self) -> Seen: ...
    def troubles(self) -> Mapping[str, Trouble]:
        """By resource: `BGPPrefix/prefix-192.0.2.1-32`."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is declared and what is seen, at one moment."""

    holders: Mapping[Target, Claimed]
    lost: Mapping[Target, Lost]
    seen: Seen
    troubles: Mapping[str, Trouble]
    ifname: Callable[[str], str]  # of the link that a resource stands for

    def summary(self, owner: str) -> rc.GetStatusResponse:
        frr = self.seen.frr
        reply = rc.GetStatusResponse(
            frr_status=rc.FRRStatus(version=frr.version, connected=frr.connected, uptime=frr.uptime)
        )
        for claimed in self._of(owner):
            spec, whose = claimed.document["spec"], _whose(claimed.source)
            if claimed.target.kind == documents.PEER:
                reply.peers.append(self._peer(spec, whose))
            elif claimed.target.kind == documents.BFD:
                reply.bfd_sessions.append(self._bfd(spec, whose))
            elif claimed.target.kind == documents.OSPF:
                reply.ospf_interfaces.append(self._ospf(spec, whose))
            elif claimed.target.kind in (documents.PREFIX, documents.OSPF_PREFIX):
                reply.prefixes.add(
                    prefix=spec["prefix"],
                    protocol="BGP" if claimed.target.kind == documents.PREFIX else "OSPF",
                    owner=whose,
                    state=_WORDS[self._stage(claimed)],
                )
        return reply

    def objects(self, owner: str) -> Iterator[routes.RouteObjectStatus]:
        for claimed in self._of(owner):
            trouble = self.troubles.get(claimed.resource)
            yield routes.RouteObjectStatus(
                resource=claimed.resource,
                owner=_whose(claimed.source),
                stage=self._stage(claimed),
                advertised_to=self._sent_to(claimed),
                last_error=trouble.error if trouble is not None else "",
                attempts=trouble.attempts if trouble is not None else 0,
                next_try=trouble.next_try if trouble is not None else 0.0,
            )
        for target, lost in self.lost.items():
            if not owner or owner_of(lost.source) == owner:
                yield routes.RouteObjectStatus(
                    resource=str(target),
                    owner=_whose(lost.source),
                    stage=routes.ROUTE_STAGE_OVERRIDDEN,
                    overridden_by=_whose(ADMIN_SOURCE),
                )

    def live(self, kind: str) -> Iterator[tuple[str, bool]]:
        """Owner of each object of a kind, and whether it is really there."""
        done = (routes.ROUTE_STAGE_ESTABLISHED, routes.ROUTE_STAGE_ADVERTISED)
        for holder in self.holders.values():
            if holder.target.kind == kind:
                yield _whose(holder.source), self._stage(holder) in done

    def _of(self, owner: str) -> Iterator[Claimed]:
        for holder in self.holders.values():
            if not owner or owner_of(holder.source) == owner:
                yield holder

    def _stage(self, claimed: Claimed) -> routes.RouteStage.ValueType:
        if claimed.resource in self.troubles:
            return routes.ROUTE_STAGE_FAILED
        if self._sent_to(claimed):
            return routes.ROUTE_STAGE_ADVERTISED
        if self._established(claimed):
            return routes.ROUTE_STAGE_ESTABLISHED
        if claimed.resource in self.seen.applied:
            return routes.ROUTE_STAGE_APPLIED
        return routes.ROUTE_STAGE_ACCEPTED

    def _sent_to(self, claimed: Claimed) -> tuple[str, ...]:
        if claimed.target.kind != documents.PREFIX:
            return ()
        return self.seen.advertised.get(claimed.document["spec"]["prefix"], ())

    def _established(self, claimed: Claimed) -> bool:
        spec = claimed.document["spec"]
        if claimed.target.kind == documents.PEER:
            peer = self.seen.peers.get(spec["address"])
            return peer is not None and peer.state == ESTABLISHED
        if claimed.target.kind == documents.BFD:
            session = self.seen.bfd.get(spec["peer"])
            return session is not None and session.state == UP
        if claimed.target.kind == documents.OSPF:
            ifname = self.ifname(spec["interface"])
            return any(near.full for near in self.seen.neighbors.values() if near.ifname == ifname)
        return False

    def _peer(self, spec: Mapping[str, Any], owner: str) -> rc.PeerStatus:
        address = spec["address"]
        found, session = self.seen.peers.get(address), self.seen.bfd.get(address)
        return rc.PeerStatus(
            neighbor_address=address,
            remote_as=_number(spec.get("remoteAS")),
            state=found.state if found is not None else "Accepted",
            owner=owner,
            prefixes_received=found.received if found is not None else 0,
            prefixes_sent=found.sent if found is not None else 0,
            uptime=found.uptime if found is not None else "",
            bfd_enabled="bfd" in spec,
            bfd_status=(session.state if session is not None else "") if "bfd" in spec else "",
            description=spec.get("description", ""),
        )

    def _bfd(self, spec: Mapping[str, Any], owner: str) -> rc.BFDSessionStatus:
        found = self.seen.bfd.get(spec["peer"])
        return rc.BFDSessionStatus(
            peer_address=spec["peer"],
            state=found.state if found is not None else "accepted",
            owner=owner,
            min_rx_ms=_milliseconds(spec.get("receiveInterval")),
            min_tx_ms=_milliseconds(spec.get("transmitInterval")),
            detect_multiplier=spec.get("detectMultiplier", 3),
            uptime=found.uptime if found is not None else "",
        )

    def _ospf(self, spec: Mapping[str, Any], owner: str) -> rc.OSPFInterfaceStatus:
        ifname = self.ifname(spec["interface"])
        near = [neighbor for neighbor in self.seen.neighbors.values() if neighbor.ifname == ifname]
        full = any(neighbor.full for neighbor in near)
        return rc.OSPFInterfaceStatus(
            interface_name=ifname,
            area_id=spec["area"],
            state="Full" if full else near[0].state if near else "accepted",
            owner=owner,
            neighbor_count=len(near),
            cost=spec.get("cost", 0),
        )


def _whose(source: str) -> str:
    """An owner by its name, as clients know it; any other source as it is."""
    return owner_of(source) or source


def _number(remote_as: object) -> int:
    """0 for `internal` and `external`, which say no number."""
    return remote_as if isinstance(remote_as, int) else 0


def _milliseconds(interval: object) -> int:
    return round(parse_duration(interval) * 1000) if isinstance(interval, str) else 300
