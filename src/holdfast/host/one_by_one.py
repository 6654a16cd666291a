"""Operations on files and settings: one after the other, each with its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.engine.artifact import Artifact
from holdfast.engine.driver import Failure, Result
from holdfast.engine.plan import Operation, Verb


def carry_out(
    operations: Sequence[Operation],
    progress: Callable[[int], None],
    step: Callable[[Operation, Artifact], None],
) -> list[Result]:
    """step: does what an operation says of its artifact, or raises OSError or ValueError."""
    results: list[Result] = []
    for operation in operations:
        subject = operation.subject
        if not isinstance(subject, Artifact):
            raise TypeError(f"a batch of {operation.kind} came to a driver of single artifacts")
        try:
            step(operation, subject)
        except (OSError, ValueError) as error:
            met = isinstance(error, FileExistsError) and operation.verb is Verb.CREATE
            results.append(Result(operation, 0, (Failure(subject.key, words(error), met),)))
        else:
            results.append(Result(operation, 1))
        progress(1)
    return results


def words(error: OSError | ValueError) -> str:
    """The system's own words, without the errno and path that Python puts around them."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
