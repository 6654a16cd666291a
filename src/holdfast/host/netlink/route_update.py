"""One route on its way from what it is to what it shall be.

NLM_F_REPLACE is never used: it hits the first route of a destination and metric, whoever made it.
The new is put beside the old, and then the old is deleted under the guard of its protocol.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field

from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds.route import Nexthop, RouteTemplate, template_of
from holdfast.engine.plan import Operation
from holdfast.host.netlink.names import LinkNames
from holdfast.host.netlink.route_codec import LOOPBACK, Leg
from holdfast.host.netlink.route_delete import target_of
from holdfast.host.netlink.route_read import legs_of
from holdfast.host.netlink.socket import NetlinkError


@dataclass(slots=True)
class Update:
    operation: Operation
    name: Key
    key: bytes
    old: RouteTemplate
    new: RouteTemplate
    protocol: int  # of the old one; the new one carries our tag
    old_legs: list[Leg] = field(default_factory=list)
    new_legs: list[Leg] = field(default_factory=list)
    failure: Failure | None = None
    notes: list[str] = field(default_factory=list)
    remember: Fields | None = None

    def fail(self, error: NetlinkError) -> None:
        self.failure = Failure(self.name, error.text, error.errno == errno.EEXIST)

    def result(self) -> Result:
        failures = (self.failure,) if self.failure is not None else ()
        return Result(self.operation, 1 - len(failures), failures, tuple(self.notes), self.remember)


def prepare(operation: Operation, artifact: Artifact, tag: int, names: LinkNames) -> Update:
    new, key = template_of(artifact)
    target = target_of(operation, tag)
    update = Update(operation, artifact.key, key, target.shared, new, target.protocol)
    legs = legs_of(new, names.indexes)
    if isinstance(legs, str):
        update.failure = Failure(artifact.key, legs)
        return update
    update.new_legs = _whole(new, legs)
    old_legs = legs_of(target.shared, names.indexes)
    if not isinstance(old_legs, str):  # otherwise it went with its link
        update.old_legs = _whole(target.shared, old_legs)
    return update


def _whole(shared: RouteTemplate, legs: list[Leg]) -> list[Leg]:
    """In IPv6, a route that leads nowhere has a leg all the same."""
    if shared.family == 6 and not legs:
        return [Leg(Nexthop(dev="lo"), LOOPBACK)]
    return legs
