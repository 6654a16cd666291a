"""A link that is declared and not there, while what hangs on it is to leave one that is.

Who mistypes the name of an interface does not mean that. A NIC that was unplugged took its
addresses along, and one that was renamed keeps them: nothing is deleted then, and by what was
declared before nothing was elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.intent import Action, Desired, Intent
from holdfast.engine.kinds.link import LINK
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Operation, Verb
from holdfast.engine.policy import Moved

_NEAR = 3


def refusal(
    operations: Sequence[Operation],
    desired: Desired,
    observed: Observed,
    made: Collection[Key],
    moved: Sequence[Moved],
) -> str:
    """Why this is asked for twice; empty where it need not be. made: what this plan creates."""
    leaving = [op for op in operations if op.verb is Verb.DELETE and op.owners]
    leaves = [one for one in moved if one.former in observed.links]
    absent = _absent(desired, observed, made) if leaving or leaves else {}
    why = _deleted(leaving, desired, absent) or _left(leaves, absent)
    if not why:
        return ""
    key, harm = why
    link = absent[key]
    return (
        f"{key} is declared ({link.owner}, {link.origin}) and is not there, while {harm}"
        f"{_near(key.name, observed.links)}; if that is meant, say --allow-mass-delete"
    )


def _deleted(
    leaving: Sequence[Operation], desired: Desired, absent: Mapping[Key, Intent]
) -> tuple[Key, str] | None:
    """What waits for an absent link has something that is deleted."""
    if not absent:
        return None
    waiting = {
        intent.owner: key for intent in desired.intents for key in intent.requires if key in absent
    }
    lost = [op for op in leaving if not waiting.keys().isdisjoint(op.owners)]
    if not lost:
        return None
    owner = next(owner for owner in lost[0].owners if owner in waiting)
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return waiting[owner], f"{_shown(lost[0])} of {owner}{more} would be deleted"


def _left(leaves: Sequence[Moved], absent: Mapping[Key, Intent]) -> tuple[Key, str] | None:
    """What is changed or only stays behind counts, too: a firewall that speaks of the absent link
    alone lets nobody in on the other one."""
    lost = [leaf for leaf in leaves if Key(LINK.name, leaf.link) in absent]
    if not lost:
        return None
    first = lost[0]
    alike = {
        moved.owner for moved in lost if (moved.link, moved.former) == (first.link, first.former)
    }
    more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
    return Key(LINK.name, first.link), f"{first.owner}{more} would leave {first.former} for it"


def _absent(desired: Desired, observed: Observed, made: Collection[Key]) -> Mapping[Key, Intent]:
    """Not those that come about by this very plan, nor those that a program makes in its time: the
    resource that declares it declares that program, too."""
    single = [intent for intent in desired.intents if isinstance(intent, Intent)]
    makers = {
        intent.owner
        for intent in single
        if intent.artifact.key.kind != LINK.name and intent.action is Action.ENSURE
    }
    return {
        intent.artifact.key: intent
        for intent in single
        if intent.artifact.key.kind == LINK.name
        and intent.action is not Action.DELETE
        and intent.owner not in makers
        and not observed.sightings.get(intent.artifact.key)
        and not observed.why_unknown(intent.artifact.key)
        and intent.artifact.key not in observed.standing
        and not {intent.artifact.key, *intent.requires}.intersection(made)
    }


def _shown(operation: Operation) -> str:
    subject = operation.subject
    first = subject if isinstance(subject, Artifact) else subject.artifact(subject.keys[0])
    return str(first.key)


def _near(name: str, links: Collection[str]) -> str:
    import difflib  # only mistakes need it

    found = difflib.get_close_matches(name, sorted(links), n=_NEAR, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""
