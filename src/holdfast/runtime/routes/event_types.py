"""Events of the ledger as clients of RouteControl know them."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.api import route_control_pb2 as rc
from holdfast.engine import event_kinds as kinds
from holdfast.engine.event_kinds import EventKind
from holdfast.runtime.routes.owners import owner_of
from holdfast.runtime.routes.text import invalid, shown
from holdfast.state.events import StoredEvent

TYPES: dict[EventKind, rc.EventType.ValueType] = {
    kinds.PEER_UP: rc.EVENT_TYPE_PEER_UP,
    kinds.PEER_DOWN: rc.EVENT_TYPE_PEER_DOWN,
    kinds.PREFIX_ADVERTISED: rc.EVENT_TYPE_PREFIX_ADVERTISED,
    kinds.PREFIX_WITHDRAWN: rc.EVENT_TYPE_PREFIX_WITHDRAWN,
    kinds.BFD_UP: rc.EVENT_TYPE_BFD_UP,
    kinds.BFD_DOWN: rc.EVENT_TYPE_BFD_DOWN,
    kinds.OSPF_NEIGHBOR_UP: rc.EVENT_TYPE_OSPF_NEIGHBOR_UP,
    kinds.OSPF_NEIGHBOR_DOWN: rc.EVENT_TYPE_OSPF_NEIGHBOR_DOWN,
    kinds.FRR_CONNECTED: rc.EVENT_TYPE_FRR_CONNECTED,
    kinds.FRR_DISCONNECTED: rc.EVENT_TYPE_FRR_DISCONNECTED,
    kinds.OWNER_REGISTERED: rc.EVENT_TYPE_OWNER_REGISTERED,
    kinds.OWNER_DEREGISTERED: rc.EVENT_TYPE_OWNER_DEREGISTERED,
    kinds.ROUTE_REFUSED: rc.EVENT_TYPE_POLICY_VIOLATION,
    # No type of theirs says it better: who lost an object hears of it.
    kinds.ROUTE_OVERRIDDEN: rc.EVENT_TYPE_POLICY_VIOLATION,
    kinds.BGP_INSTANCE_CHANGED: rc.EVENT_TYPE_BGP_CONFIG_CHANGED,
}
KINDS = frozenset(map(str, TYPES))
# A call causes them, so that whoever calls much may not drive out what others did.
CAUSED = frozenset(
    {
        kinds.OWNER_REGISTERED,
        kinds.OWNER_DEREGISTERED,
        kinds.ROUTE_REFUSED,
        kinds.ROUTE_OVERRIDDEN,
        kinds.ROUTE_GIVEN_BACK,
        kinds.BGP_INSTANCE_CHANGED,
    }
)
_BY_NAME = {str(kind): value for kind, value in TYPES.items()}
_PREFIX = "EVENT_TYPE_"


def kinds_of(names: Iterable[str]) -> frozenset[str]:
    """Kinds of the ledger's events by what clients call them: `PEER_UP`, in any case."""
    wanted: set[str] = set()
    for name in names:
        full = name.upper() if name.upper().startswith(_PREFIX) else _PREFIX + name.upper()
        value = rc.EventType.DESCRIPTOR.values_by_name.get(full)
        if value is None or not value.number:
            known = ", ".join(n.removeprefix(_PREFIX) for n in rc.EventType.keys()[1:])
            raise invalid(f"event_types: {shown(name)} is none of {known}")
        wanted |= {str(kind) for kind, number in TYPES.items() if number == value.number}
    return frozenset(wanted) or KINDS


def name(kind: EventKind) -> str:
    """As metrics have it."""
    return rc.EventType.Name(TYPES[kind]).removeprefix(_PREFIX)


def owner(event: StoredEvent) -> str:
    """Whose it is: events of sessions say it, others are about their source."""
    said = event.data.get("owner")
    return str(said) if said is not None else owner_of(event.subject)


def route_event(event: StoredEvent) -> rc.RouteEvent:
    metadata = {
        name: str(value)
        for name, value in event.data.items()
        if name != "owner" and not isinstance(value, list | dict)
    }
    return rc.RouteEvent(
        type=_BY_NAME[event.kind],
        detail=event.message,
        timestamp_unix=int(event.time),
        owner=owner(event),
        metadata=metadata | {"sequence": str(event.sequence)},
    )
