"""Claims written ahead of a change, and settled after it was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.dataclass import dataclass, replace
from holdfast.engine import ownership
from holdfast.engine.artifact import Artifact, ArtifactKind, Fields, Key
from holdfast.engine.claim import Claim, ClaimState, Lasting, Provenance
from holdfast.engine.driver import Result
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Plan, Verb


def claim_ahead(
    operations: Sequence[Operation],
    claims: Mapping[Key, Claim],
    generation: int,
    epoch: str,
    nonce: Callable[[], str],
) -> tuple[list[Operation], list[Claim]]:
    """The operations, creates marked with a nonce, and the claims to write before them.

    Bulk objects need none: the kernel puts their tag on in the same instant as it makes them.
    """
    marked: list[Operation] = []
    ahead: list[Claim] = []
    for operation in operations:
        subject = operation.subject
        if isinstance(subject, Artifact) and not KINDS[subject.key.kind].bulk:
            kind = KINDS[subject.key.kind]
            if operation.verb in (Verb.CREATE, Verb.REPLACE):
                operation = replace(operation, nonce=_nonce(kind, subject, nonce))
            known = claims.get(subject.key)
            claim = _ahead(operation, subject, known, generation, epoch)
            if claim is not None and claim != known:
                ahead.append(claim)
        marked.append(operation)
    return marked, ahead


def _nonce(kind: ArtifactKind, subject: Artifact, nonce: Callable[[], str]) -> str:
    return str(subject.fields[kind.nonce_field]) if kind.nonce_field else nonce()


def _ahead(
    operation: Operation, subject: Artifact, known: Claim | None, generation: int, epoch: str
) -> Claim | None:
    kind = KINDS[subject.key.kind]
    is_setting = operation.by_declaration
    # A setting has that proof only where its claim proves nothing: it is of another boot, or of
    # another NIC of the same name, and so are the values it remembers.
    if known is not None and not is_setting:
        if operation.verb is Verb.DELETE:
            return replace(known, state=ClaimState.DELETING)
        if operation.verb is Verb.REPLACE:
            # Until the old object is gone the claim on it must hold, so it is not yet pending.
            return replace(known, nonce=operation.nonce)
        if operation.verb is Verb.UPDATE:
            mark = str(subject.fields[kind.nonce_field]) if kind.nonce_field else known.nonce
            return replace(known, nonce=mark)
    elif operation.verb is Verb.DELETE:
        return None
    return Claim(
        subject.key,
        operation.owners,
        Provenance.SET if is_setting else Provenance.CREATED,
        ClaimState.PENDING,
        subject.fields,
        operation.origin,
        generation,
        epoch="" if kind.survives_reboot else epoch,
        nonce=operation.nonce,
        original={c.field: c.before for c in operation.changes} if is_setting else None,
        revert=operation.revert,
    )


# What is there is gone with a boot.
_PASSING = ("/run/", "/tmp/", "/dev/shm/")  # noqa: S108 (names, not used as places)


def needs_claim(operation: Operation, known: Claim | None, lasting: Lasting) -> bool:
    """Whether, were the claim lost that goes with it, nobody could tell that what it makes is ours.

    | what is made                     | claims last until a boot | until the process ends |
    |----------------------------------|--------------------------|------------------------|
    | tells its maker (tag, mark)      | no                       | no                     |
    | a file that is claimed already   | no: the old claim holds  | no                     |
    | another file                     | yes, unless it goes too  | yes                    |
    | a setting that is to be set back | yes, if it outlives it   | yes                    |
    | a link, a tunnel's keys          | no: it goes too          | yes                    |
    | an update, a delete              | no                       | no                     |
    """
    subject = operation.subject
    if lasting is Lasting.FOR_GOOD or not isinstance(subject, Artifact):
        return False
    kind = KINDS[subject.key.kind]
    if kind.tells_its_maker or (kind.survives_reboot and known is not None):
        return False
    stays = kind.survives_reboot and not subject.key.name.startswith(_PASSING)
    if lasting is Lasting.THIS_BOOT and not stays:
        return False
    if operation.by_declaration:
        return operation.revert and known is None
    return operation.verb in (Verb.CREATE, Verb.REPLACE)


def settle(
    plan: Plan,
    observed: Observed,
    claims: Mapping[Key, Claim],
    results: Iterable[Result],
    generation: int,
    epoch: str,
) -> tuple[list[Claim], list[Key]]:
    """The claims that what was just observed makes good, and those it makes void.

    `plan` is the plan made from that observation, so whatever it keeps is there as declared.
    Nothing is written for what did not change, and nothing about what could not be observed.

    | claim    | the plan says     | is there | then |
    |----------|-------------------|----------|------|
    | any      | forget            |          | void |
    | any      | keep, or a change | yes      | owned, as it was seen |
    | owned    | anything else     |          | as it is |
    | pending  | anything else     | yes      | owned, as it was seen |
    | pending  | anything else     | changed since this pass made it | owned, as it was claimed |
    | pending  | anything else     | no       | void: the create did not happen |
    | deleting | delete            | yes      | as it is: the delete is still to be done |
    | deleting | nothing           | yes      | owned, as it was seen: its cleanup rule keeps it |
    | deleting | anything else     | no       | void: the delete did happen |
    """
    elsewhere = {claim.key for claim in ownership.elsewhere(claims.values(), epoch)}
    put = _remembered(results, claims, generation, epoch)
    remove: set[Key] = set()
    leaving: set[Key] = set()
    for operation in plan.operations:
        if not isinstance(operation.subject, Artifact) or operation.subject.key in elsewhere:
            continue
        key = operation.subject.key
        if operation.verb is Verb.FORGET:
            remove.add(key)
            put.pop(key, None)
        elif operation.verb is Verb.DELETE:
            leaving.add(key)
        elif not KINDS[key.kind].bulk:
            claim = _good(operation, key, claims.get(key), observed, generation, epoch)
            if claim is not None and claim != claims.get(key):
                put[key] = claim
    made = _made(results)
    for key, claim in claims.items():
        if claim.state is ClaimState.OWNED or key in put or key in remove or key in elsewhere:
            continue
        kind = KINDS[key.kind]
        if kind.bulk or observed.why_unknown(key):
            continue
        ours, foreign = ownership.split(kind, observed.sightings.get(key, ()), claim, epoch)
        proven = [sighting for sighting, _ in ours]
        there = _There(kind, proven, foreign if key in made else ())
        if claim.state is ClaimState.PENDING:
            settled = _settle_pending(claim, there)
        else:
            settled = _settle_deleting(claim, there, leaves=key in leaving)
        if settled is None:
            remove.add(key)
        elif settled != claim:
            put[key] = settled
    return list(put.values()), sorted(remove)


def _made(results: Iterable[Result]) -> set[Key]:
    """What exclusive creates of this pass have made."""
    return {
        result.operation.subject.key
        for result in results
        if result.ok
        and isinstance(result.operation.subject, Artifact)
        and result.operation.verb in (Verb.CREATE, Verb.REPLACE)
    }


@dataclass(frozen=True, slots=True)
class _There:
    """What is in the place of a claim that was written ahead."""

    kind: ArtifactKind
    proven: Sequence[Sighting]
    made: Sequence[Sighting]  # carries no proof, and this pass has just made it exclusively

    @property
    def found(self) -> Sequence[Sighting]:
        if self.proven:
            return self.proven
        return [sighting for sighting in self.made if sighting.unproven] or _untagged(
            self.kind, self.made
        )


def _settle_pending(claim: Claim, there: _There) -> Claim | None:
    """None: it is void."""
    found = there.found
    if found:
        fields = claimed_fields(there.kind, found[0].artifact.fields)
        nonce = "" if there.kind.nonce_field else claim.nonce
        return replace(claim, state=ClaimState.OWNED, fields=fields, nonce=nonce)
    if there.made and there.kind.nonce_field:
        # Made exclusively a moment ago, and changed by somebody since: a claim holds on that.
        return replace(claim, state=ClaimState.OWNED, nonce="")
    return None


def _settle_deleting(claim: Claim, there: _There, *, leaves: bool) -> Claim | None:
    """None: it is void. What does not leave is owned, as what was about to be made."""
    return claim if leaves and there.found else _settle_pending(claim, there)


def _remembered(
    results: Iterable[Result], claims: Mapping[Key, Claim], generation: int, epoch: str
) -> dict[Key, Claim]:
    """Claims that drivers asked for, where the tag alone does not tell all of ours."""
    found: dict[Key, Claim] = {}
    for result in results:
        operation = result.operation
        for key, fields in result.remember.items():
            claim = Claim(
                key,
                operation.owners,
                Provenance.CREATED,
                ClaimState.OWNED,
                fields,
                operation.origin,
                generation,
                epoch=epoch,
            )
            known = claims.get(key)
            if known is None or replace(claim, generation=known.generation) != known:
                found[key] = claim
    return found


def _untagged(kind: ArtifactKind, foreign: Sequence[Sighting]) -> Sequence[Sighting]:
    """What an exclusive create of this very pass must have made, on a kernel without the tag."""
    if not kind.writer_field or kind.coexists or len(foreign) != 1:
        return ()
    return () if foreign[0].artifact.fields.get(kind.writer_field) else foreign


def _good(
    operation: Operation,
    key: Key,
    known: Claim | None,
    observed: Observed,
    generation: int,
    epoch: str,
) -> Claim | None:
    """The claim on something seen to be ours; None where nothing proves that it is."""
    kind = KINDS[key.kind]
    ours, foreign = ownership.split(kind, observed.sightings.get(key, ()), known, epoch)
    is_setting = operation.by_declaration
    if not ours and not (known is not None and is_setting and foreign):
        return None
    seen = ours[0][0] if ours else foreign[0]
    if known is not None and not ownership.in_force(known, epoch):
        known = None
    made_by = Provenance.SET if is_setting else Provenance.CREATED
    marked = known is not None and known.nonce == seen.nonce and not kind.nonce_field
    claim = Claim(
        key,
        operation.owners,
        known.provenance if known is not None else made_by,
        ClaimState.OWNED,
        claimed_fields(kind, seen.artifact.fields),
        operation.origin,
        generation,
        epoch="" if kind.survives_reboot else epoch,
        nonce=seen.nonce if marked else "",
        original=known.original if known is not None else None,
        revert=operation.revert,
    )
    # A later generation that declares the same is no news.
    return (
        known
        if known is not None and replace(claim, generation=known.generation) == known
        else claim
    )


def claimed_fields(kind: ArtifactKind, seen: Fields) -> Fields:
    wanted = {*kind.fields, *kind.pins, kind.writer_field}
    return {name: value for name, value in seen.items() if name in wanted}


def is_half_done(claim: Claim) -> bool:
    """Was its object about to be written or deleted when it was last recorded?"""
    return claim.state is not ClaimState.OWNED or bool(claim.nonce)


def is_marked(claim: Claim, epoch: str) -> bool:
    """Does its object still carry a random mark that is no longer needed?"""
    return (
        claim.state is ClaimState.OWNED
        and ownership.in_force(claim, epoch)
        and bool(claim.nonce)
        and not KINDS[claim.key.kind].nonce_field
    )
