"""Operations carried out one after the other, each with its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from itertools import groupby

from holdfast.engine.artifact import Artifact, Fields
from holdfast.engine.driver import Failure, Result
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request

# Deleted after one reading: few enough for that reading to be of just before, and enough for a
# thousand deletes not to read everything a thousand times.
_TOGETHER = 32


def carry_out(
    operations: Sequence[Operation],
    progress: Callable[[int], None],
    step: Callable[[Operation, Artifact], Result | None],
    delete_together: Callable[[Sequence[Operation]], list[Result] | None] | None = None,
) -> list[Result]:
    """step: does what an operation says of its artifact, and answers nothing where all of it was
    done. What it raises (OSError, ValueError, DriverError) fails that operation alone.

    delete_together: carries out several deletes as if one by one, or answers None, having touched
    nothing, where only one by one will do.
    """
    results: list[Result] = []
    for group in _groups(operations, delete_together is not None):
        together = None
        if delete_together is not None and len(group) > 1:
            # A reading that fails fails again, one by one, and each says so.
            with suppress(DriverError):
                together = delete_together(group)
        if together is not None:
            results += together
            progress(len(group))
            continue
        for operation in group:
            subject = single(operation)
            try:
                results.append(step(operation, subject) or done(operation))
            except (OSError, ValueError, DriverError) as error:
                met = isinstance(error, FileExistsError) and operation.verb is Verb.CREATE
                results.append(failed(operation, words(error), exists=met))
            progress(1)
    return results


def _groups(operations: Sequence[Operation], together: bool) -> Iterator[Sequence[Operation]]:
    """Runs of deletes, as many as may go together; everything else alone."""
    for is_delete, run in groupby(operations, key=lambda operation: operation.verb is Verb.DELETE):
        members = list(run)
        size = _TOGETHER if is_delete and together else 1
        for start in range(0, len(members), size):
            yield members[start : start + size]


def single(operation: Operation) -> Artifact:
    """The one artifact of an operation; only routes come in batches."""
    if isinstance(operation.subject, Artifact):
        return operation.subject
    raise TypeError(f"a batch of {operation.kind} came to a driver of single artifacts")


def before(operation: Operation) -> Artifact:
    """What an operation was planned for."""
    return operation.observed if isinstance(operation.observed, Artifact) else single(operation)


def done(operation: Operation, *notes: str) -> Result:
    return Result(operation, 1, notes=notes)


def failed(
    operation: Operation, error: str, *, exists: bool = False, obstructed: bool = False
) -> Result:
    return Result(operation, 0, (Failure(single(operation).key, error, exists, obstructed),))


def words(error: Exception) -> str:
    """The system's own words, without the errno and path that Python puts around them."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def agreed(operations: Iterable[Operation]) -> frozenset[str]:
    """What others may lose by operations that are carried out together: which of them takes it
    depends on which comes last."""
    return frozenset(lost for operation in operations for lost in operation.losses)


def takes_more(agreed: Set[str], lost: Sequence[str]) -> str:
    """Why something is not done by which others would lose this; "" where all was agreed to."""
    unsaid = [one for one in lost if one not in agreed]
    return f"would take what others made: {'; '.join(unsaid)}" if unsaid else ""


def send(sock: NetlinkSocket, kind: int, flags: int, body: bytes) -> NetlinkError | None:
    return sock.transact([Request(kind, flags, body)]).get(0)


def planned_for(operation: Operation, tag: int) -> Fields:
    """The fields an object must still have before it is changed or deleted. Its writer is one of
    them: the observed one, or else us."""
    return {"protocol": tag, **before(operation).fields}


def departures(expected: Fields, seen: Fields) -> list[str]:
    """How an object differs from the one planned for, in the fields both speak of."""
    return [
        f"{name} is {seen[name]!r}, was {value!r}"
        for name, value in expected.items()
        if name in seen and seen[name] != value
    ]


def changed(operation: Operation, differences: Sequence[str]) -> Result:
    return failed(operation, f"no longer what was planned for: {', '.join(differences)}")
