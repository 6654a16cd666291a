"""How the sessions of declared BGP peers are, asked of FRR now: no pass is needed for that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.bgp_instance import name_and_vrf
from holdfast.engine.kinds.bgp_peer import BGP_PEER
from holdfast.engine.plan import Plan, Verb
from holdfast.errors import DriverError
from holdfast.paths import Paths
from holdfast.resources.spec.moments import format_moment

if TYPE_CHECKING:
    from holdfast.frr.facts import PeerState

_FAMILIES = {"ipv4Unicast": "IPv4", "ipv6Unicast": "IPv6"}


@dataclass(frozen=True, slots=True)
class Sessions:
    """By resource, in words."""

    up: Mapping[str, str] = field(default_factory=dict)
    down: Mapping[str, str] = field(default_factory=dict)


def sessions(paths: Paths, plan: Plan) -> Sessions:
    """Of peers that are as declared. Nothing where bgpd does not answer: the plan says that."""
    peers = list(_peers(plan))
    if not peers:
        return Sessions()
    from holdfast.frr import facts
    from holdfast.frr.vty import Vty

    try:
        vty = Vty(paths.frr / "bgpd.vty")
    except DriverError:
        return Sessions()
    try:
        states = facts.peers(vty.show("show bgp vrf all summary json"))
    except DriverError:
        return Sessions()
    finally:
        vty.close()
    up: dict[str, str] = {}
    down: dict[str, str] = {}
    for owner, peer in peers:
        name, vrf = name_and_vrf(peer.key.name)
        state = states.get((vrf, name))
        if state is not None and state.is_up:
            up[owner] = _told(state)
        elif not peer.fields.get("shutdown"):
            found = state.state if state is not None and state.state else "not begun"
            down[owner] = f"the session is not established: it is {found}"
    return Sessions(up, down)


def _peers(plan: Plan) -> Iterator[tuple[str, Artifact]]:
    for op in plan.operations:
        if op.kind == BGP_PEER.name and op.verb is Verb.KEEP and isinstance(op.subject, Artifact):
            for owner in op.owners:
                yield owner, op.subject


def _told(state: PeerState) -> str:
    counts = [
        f"{state.received[family]} prefixes received and {state.sent.get(family, 0)} sent"
        f" ({_FAMILIES.get(family, family)})"
        for family in state.received
    ]
    since = f"established since {format_moment(int(state.since))}"
    return "; ".join((since, *counts))
