"""Ownership: by what right an object may be changed or deleted. No proof, no touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.engine.artifact import Artifact, ArtifactKind
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.observed import Sighting


def proof(kind: ArtifactKind, sighting: Sighting, claim: Claim | None, epoch: str) -> str:
    """Why this object is ours, in words for people; empty where it is not.

    | tag | claim            | what was claimed      | ours |
    |-----|------------------|-----------------------|------|
    | yes | any              | any                   | yes: the kernel says so |
    | no  | any              | the kernel's cache entry now | no: nobody declared that |
    | no  | none             |                       | no |
    | no  | of another boot  |                       | no: it died with its boot |
    | no  | of this boot, another namespace |        | no: it is there, if anywhere |
    | no  | pending          | carries the nonce     | yes: we were killed after making it |
    | no  | pending          | does not              | no: somebody else was first |
    | no  | owned            | pinned fields differ  | no: same name, another object |
    | no  | owned            | another writer's now  | no: somebody put theirs in its place |
    | no  | owned            | both agree            | yes |
    | no  | deleting         | other fields now      | no: ours may be gone already |
    | no  | deleting         | as it was claimed     | yes |
    """
    if sighting.tag:
        return by_tag(sighting.tag)
    if claim is None or not in_force(claim, epoch) or sighting.transient:
        return ""
    if claim.nonce and claim.nonce == sighting.nonce:
        return f"mark of the interrupted write in generation {claim.generation}"
    if claim.state is ClaimState.PENDING and claim.provenance is not Provenance.SET:
        return ""
    seen = sighting.artifact.fields
    telling = (*kind.pins, kind.writer_field)
    if any(claim.fields[name] != seen.get(name) for name in telling if name in claim.fields):
        return ""
    if claim.state is ClaimState.DELETING and not untouched(kind, sighting, claim):
        return ""
    return _claimed(claim)


def by_tag(tag: str) -> str:
    return f"kernel tag: {tag}"


def in_force(claim: Claim, epoch: str) -> bool:
    return not claim.epoch or claim.epoch == epoch


def elsewhere(claims: Iterable[Claim], epoch: str) -> list[Claim]:
    """The claims of this boot and of another network namespace. Their objects may well be there,
    and cannot be seen from here: such a claim proves nothing, and is not touched."""
    boot = epoch.partition("/")[0]
    return [
        claim
        for claim in claims
        if not in_force(claim, epoch) and claim.epoch.partition("/")[0] == boot
    ]


def _claimed(claim: Claim) -> str:
    return f"claim: {claim.provenance} {claim.since}"


def untouched(kind: ArtifactKind, sighting: Sighting, claim: Claim | None) -> bool:
    """Is it still what was claimed? A delete by claim alone asks for more than an update does.

    A tag is atomic with the object, and a pinned object cannot be another one; without either,
    only the fingerprint tells that nobody put something else in its place.
    """
    if sighting.tag or kind.pins or claim is None:
        return True
    if claim.nonce and claim.nonce == sighting.nonce:
        return True
    seen = sighting.artifact.fields
    return all(
        kind.matches(field, claim.fields.get(field), seen.get(field))
        for field in kind.fields
        if field in claim.fields or field in kind.surplus
    )


def may_replace(kind: ArtifactKind, sighting: Sighting, claim: Claim | None) -> bool:
    """Replacing ends the object there is: having set a NIC's MTU once is no right to that."""
    if sighting.tag or claim is None or claim.provenance is Provenance.CREATED:
        return True
    return claim.provenance is Provenance.ADOPTED and kind.deletes_orphans


def may_delete_orphan(
    kind: ArtifactKind, sighting: Sighting, claim: Claim | None
) -> tuple[bool, str]:
    """The cleanup rule of a kind applied to one orphan: whether, and why (not)."""
    if not kind.deletes_orphans and not goes_with_its_declaration(kind, sighting.artifact, claim):
        return False, f"kept: {kind.cleanup}"
    if claim is not None and not sighting.tag and not (claim.epoch or kind.survives_reboot):
        # Other programs' ledgers hold what they declared, whoever made it.
        return False, "kept: only a ledger that was imported says that it is ours"
    if not untouched(kind, sighting, claim):
        return False, "kept: it is no longer what was claimed, so somebody else changed it"
    return True, "nothing declares it any more"


def goes_with_its_declaration(kind: ArtifactKind, seen: Artifact, claim: Claim | None) -> bool:
    """Whether an object of a kind whose orphans stay goes all the same: only one of our making."""
    created = claim is not None and claim.provenance is Provenance.CREATED
    return created and kind.deletes_created(seen.fields)


def split(
    kind: ArtifactKind, sightings: Sequence[Sighting], claim: Claim | None, epoch: str
) -> tuple[list[tuple[Sighting, str]], list[Sighting]]:
    """The sightings of one identity that are ours, each with its proof, and the others."""
    ours: list[tuple[Sighting, str]] = []
    foreign: list[Sighting] = []
    for sighting in sightings:
        why = proof(kind, sighting, claim, epoch)
        if why:
            ours.append((sighting, why))
        else:
            foreign.append(sighting)
    return ours, foreign
