"""A plan with one of everything, made by hand."""

from __future__ import annotations

import socket

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.route import Nexthop, batch, expand, pack_key, template
from holdfast.engine.kinds.sysctl import sysctl
from holdfast.engine.plan import (
    Candidate,
    Change,
    Conflict,
    Held,
    Operation,
    Orphan,
    Plan,
    Risk,
    Verb,
)

TRANSIT = template(4, nexthops=(Nexthop("192.0.2.1", "wan0"),))


def keys(count: int) -> list[bytes]:
    return [pack_key(socket.inet_aton(f"10.{i >> 8}.{i & 255}.0"), 24) for i in range(count)]


def operations() -> tuple[Operation, ...]:
    created = Operation(
        Verb.CREATE,
        batch(TRANSIT, keys(1234)),
        ("RouteList/transit",),
        "declared and not there",
        "router.yaml:20:7",
        risk=Risk.LOW,
    )
    updated = Operation(
        Verb.UPDATE,
        link("wan0", {"mtu": 9000, "up": True}),
        ("Interface/wan",),
        "mtu differs",
        "router.yaml:6:7",
        "claim: set in generation 2",
        Risk.MEDIUM,
        "large packets are treated differently at once",
        (Change("mtu", 1500, 9000),),
    )
    replaced = Operation(
        Verb.REPLACE,
        link("vx1", {"type": "vxlan", "vni": 8}),
        ("Interface/vx",),
        "vni differs; vni cannot be changed in place",
        "router.yaml:9:7",
        "claim: created in generation 1",
        Risk.HIGH,
        "its addresses and routes go with it",
        (Change("vni", 7, 8),),
    )
    deleted = Operation(
        Verb.DELETE,
        batch(template(4, kind="blackhole"), keys(1)),
        (),
        "nothing declares it any more",
        proof="kernel tag",
        risk=Risk.MEDIUM,
        risk_note="the destination may become unreachable",
    )
    forgotten = Operation(
        Verb.FORGET,
        sysctl("net.ipv4.ip_forward", "1"),
        ("Sysctl/forward",),
        "nothing declares it any more; its value stays",
        "router.yaml:30:7",
    )
    kept = Operation(Verb.KEEP, link("lan0", {}), ("Interface/lan",), "as declared")
    return updated, replaced, created, deleted, kept, forgotten


def everything() -> Plan:
    one = expand(TRANSIT, keys(1)[0])
    other = Artifact(one.key, {**one.fields, "nexthops": ("via 192.0.2.9 dev wan0",)})
    moved = (Change("nexthops", ("via 192.0.2.9 dev wan0",), ("via 192.0.2.1 dev wan0",)),)
    return Plan(
        operations(),
        (Orphan(link("old0", {"type": "bridge"}), ("Interface/old",), False, "kept: never"),),
        (
            Conflict(
                one, ("IPv4Route/a",), "router.yaml:40:7", other, "protocol static", moved, "fix"
            ),
        ),
        (
            Candidate(one, ("IPv4Route/a",), "router.yaml:40:7", other, "protocol static", moved),
            Candidate(
                expand(TRANSIT, keys(2)[1]),
                ("IPv4Route/b",),
                "router.yaml:44:7",
                expand(TRANSIT, keys(2)[1]),
                "protocol static",
                (),
            ),
        ),
        (
            Held(
                "Interface/dmz",
                "router.yaml:50:7",
                "link dmz0 is not there yet",
                Key("link", "dmz0"),
            ),
        ),
        (Held("IPv4Route/c", "router.yaml:60:7", "somebody must decide"),),
        (("rule", "the dump was interrupted"),),
        "too much would be deleted",
    )
