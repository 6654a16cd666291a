"""The guard against removing much by accident."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.intent import Desired
from holdfast.engine.plan import Operation, Verb
from holdfast.engine.policy import FREE_DELETES, Policy


def refusal(operations: Sequence[Operation], desired: Desired, policy: Policy) -> str:
    """Why this must be asked for twice; empty where it need not be."""
    deletes = sum(op.count for op in operations if op.verb is Verb.DELETE)
    if policy.allow_mass_delete or not deletes:
        return ""
    held = (Verb.KEEP, Verb.UPDATE, Verb.REPLACE)
    owned = deletes + sum(op.count for op in operations if op.verb in held)
    if not desired.intents and not desired.waiting:
        return (
            f"the configuration declares nothing, so all {deletes} owned artifacts would be"
            " deleted; if that is meant, say --allow-mass-delete"
        )
    if policy.doubt:
        return (
            f"{policy.doubt}, and {deletes} owned artifacts would be deleted; end the file with a"
            " newline if it is whole, or say --allow-mass-delete"
        )
    share = deletes * 100 // owned
    if deletes > FREE_DELETES and share > policy.max_delete_share:
        return (
            f"{deletes} of {owned} owned artifacts ({share} %) would be deleted, more than the"
            f" {policy.max_delete_share} % allowed; if that is meant, say --allow-mass-delete"
        )
    return ""
