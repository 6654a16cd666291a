"""What differs in the content of what a plan changes, read from this machine once somebody asks."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.engine import difference
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.difference import NONE, Difference, Differences
from holdfast.engine.drivers import Drivers
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import shown
from holdfast.host.steps import words


def read(drivers: Drivers, operations: Iterable[Operation], *, full: bool = False) -> Differences:
    """By artifact, of kinds whose fields stand for a content, as it is now. full: all of it; else
    its first lines, and of what comes or goes as a whole how much it is."""
    found: dict[Key, Difference] = {}
    for operation in operations:
        subject = operation.subject
        if not (KINDS[operation.kind].digests and operation.verb.changes_host):
            continue
        if not isinstance(subject, Artifact):
            continue
        try:
            whole = drivers.difference(operation)
        except (DriverError, OSError, ValueError) as error:
            whole = Difference(note=f"what differs cannot be shown: {words(error)}")
        if not full:
            changed = operation.verb in (Verb.UPDATE, Verb.REPLACE)
            whole = difference.summary(whole) if changed else difference.counted(whole)
        if whole != NONE:
            found[subject.key] = shown.cleaned(whole)
    return found
