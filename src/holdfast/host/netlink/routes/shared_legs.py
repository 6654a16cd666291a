"""IPv6 routes that several programs have legs in.

The kernel merges the legs of equal destination and metric into one route, whoever added them, and
dumps it under the protocol of the first leg alone. Which legs are ours only a guarded delete can
tell; what it told is remembered in a claim, in the field `foreign_nexthops`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.claim import Claim
from holdfast.engine.kinds.route import Nexthop, RouteTemplate, parse_nexthop, scope, template_of
from holdfast.host.netlink.routes.route_codec import created
from holdfast.host.netlink.routes.route_decode import Reader, protocol_of, select
from holdfast.host.netlink.routes.route_read import legs_of

FOREIGN_NEXTHOPS = "foreign_nexthops"
_ANY = RouteTemplate(6)


def same_leg(nexthop: Nexthop, other: Nexthop) -> bool:
    """Weight and onlink do not tell legs apart, gateway and link do."""
    return nexthop.gateway == other.gateway and (
        nexthop.dev == other.dev or not nexthop.dev or not other.dev
    )


@dataclass(frozen=True, slots=True)
class SharedRoutes:
    claims: Mapping[bytes, Claim]  # by identity; those that name foreign nexthops
    batches: Sequence[Batch]
    reader: Reader
    indexes: Mapping[str, int]
    tag: int
    former: frozenset[int] = frozenset()  # tags of before
    # By identity: what is to be said of others' legs that were seen in routes of ours.
    joined: dict[bytes, str] = field(default_factory=dict)

    def own_parts(self, bodies: list[bytes]) -> list[bytes]:
        """Routes that begin with our leg are dumped as ours, with others' legs behind it."""
        if not self.claims:
            return bodies
        keys = {identity[len(scope(_ANY)) :] for identity in self.claims}
        parts: dict[bytes, bytes] = {}
        for body in select(bodies, 6, keys):
            seen, key = self.reader.read(body)
            if scope(seen) + key in self.claims:
                parts[body] = self.own_part(body) or body
        return [parts.get(body, body) for body in bodies] if parts else bodies

    def own_part(self, body: bytes) -> bytes | None:
        """The body that our legs alone would be dumped as; None where none of them is there."""
        seen, key = self.reader.read(body)
        identity = scope(seen) + key
        claim = self.claims[identity]
        foreign = self._foreign(identity, claim)
        seen_legs = seen.nexthops
        mine = [leg for leg in seen_legs if not among(leg, foreign)]
        claimed, _ = template_of(Artifact(claim.key, claim.fields))
        carried = protocol_of(body)
        if carried != self.tag and carried not in self.former:
            carried = int(str(claim.fields.get("protocol", self.tag)))
            # Only the first leg's attributes are dumped, and that one is not ours.
            seen = claimed
            mine = [leg for leg in mine if among(leg, claimed.nexthops)]
        if not mine:
            return None
        others = [leg for leg in seen_legs if among(leg, foreign)]
        if others:
            self.joined[identity] = _joined(claim.key, others)
        seen = replace(seen, nexthops=tuple(mine))
        legs = legs_of(seen, self.indexes)
        return None if isinstance(legs, str) else created(seen, legs, carried).bodies([key])[0]

    def _foreign(self, identity: bytes, claim: Claim) -> list[Nexthop]:
        """What is declared by now is compared as it is, whoever added it."""
        names = claim.fields[FOREIGN_NEXTHOPS]
        legs = [parse_nexthop(name) for name in (names if isinstance(names, tuple) else ())]
        wanted = self._wanted(identity)
        return [leg for leg in legs if not among(leg, wanted)]

    def _wanted(self, identity: bytes) -> Iterable[Nexthop]:
        for batch in self.batches:
            if identity.startswith(batch.scope) and identity[len(batch.scope) :] in batch.keys:
                shared: RouteTemplate = batch.template
                return shared.nexthops
        return ()


def _joined(key: Key, legs: Sequence[Nexthop]) -> str:
    what = "a leg" if len(legs) == 1 else f"{len(legs)} legs"
    return (
        f"{key}: another program added {what} to it ({', '.join(map(str, legs))}), so that some of"
        " what it is for goes that way; remove that, or declare it"
    )


def among(leg: Nexthop, legs: Iterable[Nexthop]) -> bool:
    return any(same_leg(leg, other) for other in legs)
