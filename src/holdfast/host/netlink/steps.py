"""Operations carried out one after the other, each with its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.engine.artifact import Artifact, Fields
from holdfast.engine.driver import Failure, Result
from holdfast.engine.plan import Operation
from holdfast.errors import DriverError
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request


def carry_out(
    operations: Sequence[Operation],
    progress: Callable[[int], None],
    step: Callable[[Operation, Artifact], Result],
) -> list[Result]:
    """One step an operation. What could not be read fails the operation that needed it."""
    results = []
    for operation in operations:
        try:
            results.append(step(operation, single(operation)))
        except DriverError as error:
            results.append(failed(operation, str(error)))
        progress(1)
    return results


def single(operation: Operation) -> Artifact:
    """The one artifact of an operation; only routes come in batches."""
    if isinstance(operation.subject, Artifact):
        return operation.subject
    raise TypeError(f"a batch of {operation.kind} came to a driver of single artifacts")


def before(operation: Operation) -> Artifact:
    """What an operation was planned for."""
    return operation.observed or single(operation)


def done(operation: Operation, *notes: str) -> Result:
    return Result(operation, 1, notes=notes)


def failed(operation: Operation, error: str, *, exists: bool = False) -> Result:
    return Result(operation, 0, (Failure(single(operation).key, error, exists),))


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
