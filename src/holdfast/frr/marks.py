"""What Holdfast was about to make when it was interrupted, told by what is there.

FRR has no place for a mark, and takes an artifact line by line. So a claim that is pending holds on
what is there if that is the artifact, or as much of it as had been told: every field is as it was
to be, or as nobody has said anything of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.engine.artifact import Artifact, Fields, Key, Value
from holdfast.engine.claim import Claim, ClaimState
from holdfast.engine.kinds import KINDS


def nonce_of(seen: Artifact, claims: Mapping[Key, Claim], fresh: Fields) -> str:
    """For its sighting; empty where no claim is pending, or somebody else made it.

    fresh: the fields of one of which nothing has been said but its name.
    """
    claim = claims.get(seen.key)
    if claim is None or claim.state is not ClaimState.PENDING:
        return ""
    fields = KINDS[seen.key.kind].fields
    on_its_way = all(
        _is_part(seen.fields.get(name), claim.fields.get(name), fresh.get(name)) for name in fields
    )
    return claim.nonce if on_its_way else ""


def _is_part(seen: Value, claimed: Value, fresh: Value) -> bool:
    if isinstance(seen, tuple):
        said = {*_lines(claimed), *_lines(fresh)}
        return said.issuperset(seen)
    return seen in (claimed, fresh)


def _lines(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
