"""Deleting routes, so that the kernel refuses to delete anything but what is meant."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.engine.artifact import Batch
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds.route import (
    Nexthop,
    RouteTemplate,
    destination,
    expand,
    scope,
    template_of,
)
from holdfast.engine.plan import Operation
from holdfast.host.netlink.links.link_names import LinkNames
from holdfast.host.netlink.routes.route_codec import RTM_DELROUTE, OddTemplate, deleted
from holdfast.host.netlink.routes.route_decode import (
    Reader,
    keys_without_metric,
    protocol_of,
    select,
)
from holdfast.host.netlink.routes.route_probe import FEW, look_at
from holdfast.host.netlink.routes.route_read import dump_routes, legs_of
from holdfast.host.netlink.routes.shared_legs import among
from holdfast.host.netlink.socket import NetlinkSocket, Request

_CHUNK = 10_000


class Target(NamedTuple):
    """Routes as they were observed, and the protocol that made them."""

    shared: RouteTemplate
    keys: Sequence[bytes]
    protocol: int


class Refused(NamedTuple):
    """An IPv6 leg that a guarded delete did not find: gone, or another program's."""

    shared: RouteTemplate
    key: bytes
    leg: Nexthop


def target_of(operation: Operation, tag: int) -> Target:
    """What an operation deletes. A route that was adopted carries its maker's protocol."""
    seen = operation.observed or operation.subject
    if isinstance(seen, Batch):
        return Target(seen.template, seen.keys, seen.template.protocol or tag)
    shared, key = template_of(seen)
    fields = seen.fields
    if fields.get("nhid"):
        shared = OddTemplate(
            shared.family,
            shared.table,
            shared.metric,
            shared.type,
            shared.nexthops,
            shared.prefsrc,
            shared.mtu,
            shared.other,
            nhid=int(str(fields["nhid"])),
        )
    return Target(shared, [key], int(str(fields.get("protocol", tag))))


def delete_routes(
    sock: NetlinkSocket,
    tag: int,
    names: LinkNames,
    operations: Sequence[Operation],
    progress: Callable[[int], None],
) -> list[Result]:
    targets = [target_of(operation, tag) for operation in operations]
    there = _without_metric(sock, targets)
    failures: list[list[Failure]] = []
    refused: list[list[Refused]] = []
    for target in targets:
        keys = target.keys
        if target.shared.family == 4 and not target.shared.metric:
            present = there[target.shared.table, target.protocol]
            keys = [key for key in keys if key in present]
        progress(len(target.keys) - len(keys))
        failed, unfound = _delete(sock, target._replace(keys=keys), names, progress)
        failures.append(failed)
        refused.append(unfound)
    notes = others_legs(sock, names, [leg for legs in refused for leg in legs])
    return [
        Result(
            operation,
            len(target.keys) - len(failed),
            tuple(failed),
            tuple(notes[leg] for leg in unfound if leg in notes),
        )
        for operation, target, failed, unfound in zip(
            operations, targets, failures, refused, strict=True
        )
    ]


def _without_metric(
    sock: NetlinkSocket, targets: Iterable[Target]
) -> dict[tuple[int, int], set[bytes]]:
    """The destinations of IPv4 routes of metric 0, by table and protocol.

    An IPv4 delete can't ask for metric 0: it takes a route of any metric where there is none
    without. So it is only sent where there is one.
    """
    wanted: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for target in targets:
        if target.shared.family == 4 and not target.shared.metric:
            wanted[target.shared.table, target.protocol] += target.keys
    there: dict[tuple[int, int], set[bytes]] = {}
    for (table, protocol), keys in wanted.items():
        few = _few_without_metric(sock, table, protocol, keys) if len(keys) <= FEW else None
        if few is None:
            few = keys_without_metric(dump_routes(sock, 4, table=table, protocol=protocol))
        there[table, protocol] = few
    return there


def _few_without_metric(
    sock: NetlinkSocket, table: int, protocol: int, keys: Iterable[bytes]
) -> set[bytes] | None:
    """The same of a few destinations, each of which has one; None where that cannot be told from
    what counts there. One that does not count may be there all the same."""
    found: set[bytes] = set()
    for key in keys:
        body = look_at(sock, table, key).body
        if body is None or protocol_of(body) != protocol or not keys_without_metric([body]):
            return None
        found.add(key)
    return found


def _delete(
    sock: NetlinkSocket, target: Target, names: LinkNames, progress: Callable[[int], None]
) -> tuple[list[Failure], list[Refused]]:
    failures: dict[bytes, Failure] = {}
    refused: list[Refused] = []
    legs = legs_of(target.shared, names.indexes)
    if isinstance(legs, str):  # routes go with their link
        progress(len(target.keys))
        return [], []
    shapes = deleted(target.shared, legs, target.protocol)
    # Backwards: the kernel's IPv4 trie shrinks several times faster from its end.
    backwards = sorted(target.keys, reverse=True)
    for start in range(0, len(backwards), _CHUNK):
        keys = backwards[start : start + _CHUNK]
        requests = [
            Request(RTM_DELROUTE, 0, body) for shape in shapes for body in shape.bodies(keys)
        ]
        for index, error in sock.transact(requests).items():
            number, at = divmod(index, len(keys))
            if error.errno != errno.ESRCH:
                name = expand(target.shared, keys[at]).key
                failures[keys[at]] = Failure(name, error.text)
            elif target.shared.family == 6 and legs:
                refused.append(Refused(target.shared, keys[at], legs[number].nexthop))
        progress(len(keys))
    return list(failures.values()), refused


def legs_at(
    sock: NetlinkSocket, names: LinkNames, routes: Iterable[tuple[RouteTemplate, bytes]]
) -> Mapping[bytes, Sequence[tuple[Nexthop, ...]]]:
    """The legs of each IPv6 route at certain identities now, whoever made them."""
    tables: dict[int, set[bytes]] = defaultdict(set)
    identities = set()
    for shared, key in routes:
        tables[shared.table].add(key)
        identities.add(scope(shared) + key)
    reader = Reader(names.names)
    found: dict[bytes, list[tuple[Nexthop, ...]]] = defaultdict(list)
    for table, keys in tables.items():
        for body in select(dump_routes(sock, 6, table=table), 6, keys):
            shared, key = reader.read(body)
            identity = scope(shared) + key
            if identity in identities:
                found[identity].append(shared.nexthops)
    return found


def others_legs(
    sock: NetlinkSocket, names: LinkNames, refused: Sequence[Refused]
) -> dict[Refused, str]:
    """A leg that is still there although the delete under our protocol did not find it."""
    if not refused:
        return {}
    there = legs_at(sock, names, [(one.shared, one.key) for one in refused])
    return {
        one: left_alone(one.leg, one.key)
        for one in refused
        if any(among(one.leg, route) for route in there[scope(one.shared) + one.key])
    }


def left_alone(leg: Nexthop, key: bytes) -> str:
    return f"leg {leg} of {destination(key)} is another program's (kernel guard); left alone"
