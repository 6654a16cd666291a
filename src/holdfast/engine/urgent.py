"""What is put back at once, whoever undoes it and however often. Pure.

`vital` asks another question: what a plan must not take away unasked. A link is never taken away
so, and a setting cannot be; while either is not as declared, the way out may be gone all the same.
"""

from __future__ import annotations

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Operation


def named(artifact: Artifact, operation: Operation) -> str:
    """What suffers while this operation on it is not carried out; empty for what can wait."""
    return KINDS[artifact.key.kind].urgent(artifact, operation)
