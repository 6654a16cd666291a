"""Routes on their way from one template to another.

NLM_F_REPLACE is never used: it hits the first route of a destination and metric, whoever made it.
The new is put beside the old, and then the old is deleted under the guard of its protocol.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.artifact import Batch, Fields, Key
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds.route import ROUTE, Nexthop, RouteTemplate, expand, template_of
from holdfast.engine.plan import Operation
from holdfast.host.netlink.links.link_names import LinkNames
from holdfast.host.netlink.routes.route_codec import LOOPBACK, Leg
from holdfast.host.netlink.routes.route_delete import target_of
from holdfast.host.netlink.routes.route_read import legs_of
from holdfast.host.netlink.socket import NetlinkError

# So many are made before their old ones are deleted: enough for the batches of the socket to
# overlap, few enough for the two to stand side by side only for a moment.
_CHUNK = 10_000
_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


@dataclass(slots=True)
class Update:
    operation: Operation
    keys: Sequence[bytes]
    old: RouteTemplate
    new: RouteTemplate
    protocol: int  # of the old ones; the new ones carry our tag
    names: LinkNames
    old_legs: list[Leg] | None = None  # None: the old ones went with their link
    new_legs: list[Leg] = field(default_factory=list)
    failures: dict[bytes, Failure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    remember: dict[Key, Fields] = field(default_factory=dict)

    def fail(self, key: bytes, error: NetlinkError) -> None:
        name = expand(self.new, key).key
        text = refusal(self.new, error, self.names)
        self.failures[key] = Failure(name, text, error.errno == errno.EEXIST)

    def fail_all(self, why: str) -> None:
        self.failures = {key: Failure(expand(self.new, key).key, why) for key in self.keys}

    def unfailed(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        return [key for key in keys if key not in self.failures] if self.failures else keys

    def result(self) -> Result:
        done = len(self.keys) - len(self.failures)
        failures = tuple(self.failures.values())
        return Result(self.operation, done, failures, tuple(self.notes), self.remember)


def prepare(operation: Operation, tag: int, names: LinkNames) -> Update:
    """An update whose new legs cannot be made has failed already."""
    subject = operation.subject
    if isinstance(subject, Batch):
        new, keys = subject.template, subject.keys
    else:
        new, key = template_of(subject)
        keys = [key]
    target = target_of(operation, tag)
    old = target.shared
    if any(change.field == ROUTE.writer_field for change in operation.changes):
        old = replace(old, protocol=target.protocol)
    update = Update(operation, keys, old, new, target.protocol, names)
    legs = legs_of(new, names.indexes)
    if isinstance(legs, str):
        update.fail_all(legs)
        return update
    update.new_legs = _whole(new, legs)
    old_legs = legs_of(target.shared, names.indexes)
    if not isinstance(old_legs, str):
        update.old_legs = _whole(target.shared, old_legs)
    return update


def refusal(shared: RouteTemplate, error: NetlinkError, names: LinkNames) -> str:
    """Why the kernel does not take routes: in its own words, of which `Nexthop has invalid gateway`
    says not much."""
    if error.errno not in _UNREACHABLE:
        return error.text
    hops = shared.nexthops
    why = [
        f"{hop.dev} is down: say `adminUp: true`, and see to its cable"
        for hop in hops
        if hop.dev in names.down
    ] or [
        f"nothing on {hop.dev} leads to {hop.gateway}: give it an address in the network of the"
        " gateway, or say `onlink: true` where the gateway is there without one"
        for hop in hops
        if hop.gateway and not hop.onlink
    ]
    if len(hops) > 1:  # which of them it is, is not said
        return f"{error.text}; for one of its nexthops {' or '.join(dict.fromkeys(why))}"
    return "; ".join((error.text, *why))


def _whole(shared: RouteTemplate, legs: list[Leg]) -> list[Leg]:
    """In IPv6, a route that leads nowhere has a leg all the same."""
    if shared.family == 6 and not legs:
        return [Leg(Nexthop(dev="lo"), LOOPBACK)]
    return legs


def chunks(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]
