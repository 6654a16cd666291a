"""Changes that take away the ground somebody stands on."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_network

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.kinds import route
from holdfast.engine.plan import Operation, Plan, Verb


@dataclass(frozen=True, slots=True)
class Ground:
    """What a connection needs on our side."""

    address: str
    links: frozenset[str]
    far: IPv4Address | IPv6Address  # the other end
    way: Key | None  # the route that leads there


def cut_off(plan: Plan, ground: Ground) -> str:
    """What the plan would do that takes some of it away; "" where it takes nothing."""
    for operation in plan.changes:
        if operation.kind == "route":
            loss = _route_loss(operation, ground, plan)
        elif isinstance(operation.subject, Artifact):
            loss = _loss(operation, operation.subject, ground)
        else:
            loss = ""
        if loss:
            return f"it would {loss}"
    return ""


def _loss(operation: Operation, subject: Artifact, ground: Ground) -> str:
    removes = operation.verb in (Verb.DELETE, Verb.REPLACE)
    if subject.key.kind == "address":
        lost = removes and subject.fields.get("address") == ground.address
        return f"{operation.verb} {subject.key}" if lost else ""
    if subject.key.kind != "link" or subject.key.name not in ground.links:
        return ""
    if removes:
        return f"{operation.verb} {subject.key}"
    changed = {change.field: change.after for change in operation.changes}
    if changed.get("up") is False:
        return f"set {subject.key} down"
    if changed.get("master"):
        # The kernel gives packets of a member to its master, whose addresses are other ones.
        return f"put {subject.key} under {changed['master']}"
    return ""


def _route_loss(operation: Operation, ground: Ground, plan: Plan) -> str:
    covering = [each.key for each in _covering(operation, ground.far)]
    if operation.verb is Verb.DELETE:
        if ground.way not in covering or any(_leads(op, ground) for op in plan.operations):
            return ""
        return f"delete {ground.way}, the way back"
    for artifact in _covering(operation, ground.far):
        if artifact.fields.get("type") != "unicast" and _length(artifact.key) >= _way(ground):
            return f"{operation.verb} {artifact.fields['type']} {artifact.key}"
    return ""


def _leads(operation: Operation, ground: Ground) -> bool:
    """Whether there will be a route of ours that leads there instead."""
    return operation.kind == "route" and any(
        operation.verb not in (Verb.DELETE, Verb.FORGET) and each.fields.get("type") == "unicast"
        for each in _covering(operation, ground.far)
    )


def _covering(operation: Operation, far: IPv4Address | IPv6Address) -> Iterator[Artifact]:
    """The routes an operation is about whose destination holds an address."""
    subject = operation.subject
    if isinstance(subject, Artifact):
        if far in ip_network(str(subject.fields["destination"])):
            yield subject
    elif subject.template.family == far.version:
        yield from _of_batch(subject, far)


def _of_batch(batch: Batch, far: IPv4Address | IPv6Address) -> Iterator[Artifact]:
    bits = far.max_prefixlen
    wanted = {
        route.pack_key((int(far) >> (bits - n) << (bits - n)).to_bytes(bits // 8, "big"), n)
        for n in range(bits + 1)
    }
    for key in wanted.intersection(batch.keys):
        yield batch.artifact(key)


def _length(key: Key) -> int:
    return ip_network(key.name.split(" ", 1)[0]).prefixlen


def _way(ground: Ground) -> int:
    return _length(ground.way) if ground.way is not None else 0
