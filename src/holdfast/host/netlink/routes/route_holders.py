"""Other programs' routes, looked for only where a declared route is missing or a claim points."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from holdfast.engine.artifact import Artifact, Value
from holdfast.engine.claim import Claim
from holdfast.engine.kinds.route import ROUTE, RouteTemplate, expand, scope
from holdfast.engine.observed import Sighting
from holdfast.host.netlink import tags
from holdfast.host.netlink.routes.route_codec import OddTemplate
from holdfast.host.netlink.routes.route_decode import keys_of, pick, protocol_of, select, settle
from holdfast.host.netlink.routes.route_read import dump_routes, dump_runs
from holdfast.host.netlink.routes.route_sighting import RouteSighting
from holdfast.host.netlink.routes.shared_legs import SharedRoutes
from holdfast.host.netlink.socket import NetlinkSocket


class Asked:
    """Identities to look for, by the table they are in."""

    def __init__(self) -> None:
        self._scopes: dict[bytes, list[Sequence[bytes]]] = defaultdict(list)

    def add(self, identity_scope: bytes, keys: Sequence[bytes]) -> None:
        if keys:
            self._scopes[identity_scope].append(keys)

    def tables(self) -> Iterator[tuple[int, int, dict[bytes, list[Sequence[bytes]]]]]:
        """Family, table, and the keys asked for by scope."""
        grouped: dict[tuple[int, int], dict[bytes, list[Sequence[bytes]]]] = defaultdict(dict)
        for identity_scope, keys in self._scopes.items():
            family, table, _, _ = struct.unpack("!BIIB", identity_scope)
            grouped[family, table][identity_scope] = keys
        for (family, table), scopes in grouped.items():
            yield family, table, scopes


def find_holders(
    sock: NetlinkSocket,
    asked: Asked,
    seen: RouteSighting,
    shared: SharedRoutes,
    claims: Mapping[bytes, Claim],
) -> None:
    """Add to `seen` who else is at the identities asked for."""
    for family, table, scopes in asked.tables():
        bodies = dump_routes(sock, family, table=table)
        others = [body for body in bodies if not seen.is_own(protocol_of(body))]
        wanted = _met(others, family, scopes)
        found: dict[bytes, list[Sighting]] = defaultdict(list)
        for body in settle(select(others, family, set().union(*wanted.values())), family):
            route, key = seen.reader.read(body)
            identity = scope(route) + key
            if key not in wanted.get(scope(route), ()) or _is_another_identity(route):
                continue
            if identity in shared.claims:
                # Our legs may stand behind another's. What else is there is not reported: the
                # claim is on our legs, and must not be taken as one on the route they are in.
                part = shared.own_part(body)
                if part is not None:
                    seen.own.add(part)
                    continue
            found[identity].append(_sighting(route, key, protocol_of(body)))
        for identity, sightings in found.items():
            seen.foreign[identity] = _meant(sightings, claims.get(identity))


def find_routes_to(sock: NetlinkSocket, keys: Collection[bytes], seen: RouteSighting) -> None:
    """Add to `seen` what is at these destinations, in every table."""
    for family, width in ((4, 4), (6, 16)):
        wanted = {key for key in keys if len(key) == 1 + width}
        bodies = pick(dump_runs(sock, family), family, wanted) if wanted else []
        for body in settle(bodies, family):
            route, key = seen.reader.read(body)
            if seen.is_own(protocol_of(body)):
                seen.own.add(body)
            elif not _is_another_identity(route):
                found = seen.foreign.setdefault(scope(route) + key, [])
                found.append(_sighting(route, key, protocol_of(body)))


def _met(
    others: list[bytes], family: int, scopes: Mapping[bytes, Sequence[Sequence[bytes]]]
) -> dict[bytes, set[bytes]]:
    """The keys asked for, by scope; at least those that are there. The set is made of whichever
    side has fewer: a million may be declared, and a million may be there."""
    asked = sum(len(keys) for lists in scopes.values() for keys in lists)
    if len(others) >= asked:
        return {one: set().union(*lists) for one, lists in scopes.items()}
    there = keys_of(others, family)
    return {
        one: set().union(*(there.intersection(keys) for keys in lists))
        for one, lists in scopes.items()
    }


def _is_another_identity(route: RouteTemplate) -> bool:
    """The kernel keeps routes that differ in TOS or source prefix side by side."""
    return isinstance(route, OddTemplate) and bool(route.tos or route.source)


def _sighting(route: RouteTemplate, key: bytes, protocol: int) -> Sighting:
    artifact = expand(route, key)
    fields: dict[str, Value] = {**artifact.fields, "protocol": protocol}
    if isinstance(route, OddTemplate):
        fields["nhid"] = route.nhid
    return Sighting(Artifact(artifact.key, fields), holder=tags.holder_text(protocol))


def _meant(sightings: Sequence[Sighting], claim: Claim | None) -> list[Sighting]:
    """Of several IPv4 aliases, the one a claim is on; the others are nobody's business here."""
    if claim is None or len(sightings) == 1:
        return list(sightings)
    protocol = claim.fields.get("protocol")
    same = [s for s in sightings if protocol in (None, s.artifact.fields["protocol"])]
    exact = [
        s
        for s in same
        if all(s.artifact.fields.get(name) == claim.fields.get(name) for name in ROUTE.fields)
    ]
    return (exact or same or list(sightings))[:1]
