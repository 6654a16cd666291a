"""What an operation may cost whoever uses the network meanwhile."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Change, Risk, Verb


def assess(
    verb: Verb, subject: Artifact | Batch, changes: tuple[Change, ...] = ()
) -> tuple[Risk, str]:
    """The risk of an operation, and a few words on what would be noticed."""
    kind = subject.kind if isinstance(subject, Batch) else KINDS[subject.key.kind]
    if [change.field for change in changes] == [kind.writer_field]:
        return Risk.LOW, "its tag changes, and nothing else"
    return kind.risk(verb, subject, changes) if kind.risk is not None else (Risk.LOW, "")
