"""Batches that want different artifacts at one identity.

Configurations are checked for this when they are loaded. Intents that come together in any other
way are checked here: one of two such artifacts would be made, and changed into the other by the
next pass, and so on for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from holdfast.engine.intent import BulkIntent

Parts = Sequence[tuple[BulkIntent, Sequence[bytes]]]
Contested = Mapping[bytes, Set[bytes]]  # scope -> keys


def contested(intents: Sequence[BulkIntent], missing: Parts) -> Contested:
    """The identities that are wanted differently. Of two such artifacts one is missing at least,
    so that nothing is compared where all are there."""
    if len(intents) < 2 or not missing:
        return {}
    sharing: dict[bytes, list[BulkIntent]] = defaultdict(list)
    for intent in intents:
        sharing[intent.batch.scope].append(intent)
    varied = {scope for scope, several in sharing.items() if _differ(several)}
    lacking: dict[bytes, set[bytes]] = defaultdict(set)
    for intent, keys in missing:
        if intent.batch.scope in varied:
            lacking[intent.batch.scope].update(keys)
    found = {scope: _wanted_differently(sharing[scope], keys) for scope, keys in lacking.items()}
    return {scope: keys for scope, keys in found.items() if keys}


def _differ(intents: Sequence[BulkIntent]) -> bool:
    first = intents[0].batch.template
    return any(other.batch.template != first for other in intents)


def _wanted_differently(intents: Sequence[BulkIntent], among: set[bytes]) -> set[bytes]:
    first: dict[bytes, BulkIntent] = {}
    found: set[bytes] = set()
    for intent in intents:
        here = among.intersection(intent.batch.keys)
        again = here & first.keys()
        found |= {key for key in again if first[key].batch.template != intent.batch.template}
        first.update(dict.fromkeys(here - again, intent))
    return found


def without(parts: Parts, away: Contested) -> Parts:
    if not away:
        return parts
    none: Set[bytes] = frozenset()
    left = [
        (intent, [key for key in keys if key not in away.get(intent.batch.scope, none)])
        for intent, keys in parts
    ]
    return [(intent, keys) for intent, keys in left if keys]


def reasons(intents: Sequence[BulkIntent], away: Contested) -> list[tuple[BulkIntent, str]]:
    """Why each of the intents concerned is blocked, with an example and the others' names."""
    told: list[tuple[BulkIntent, str]] = []
    for intent in intents:
        keys = away.get(intent.batch.scope, frozenset()) & set(intent.batch.keys)
        if not keys:
            continue
        example = intent.batch.artifact(min(keys)).key
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        others = dict.fromkeys(
            f"{other.owner} ({other.origin})"
            for other in intents
            if other.batch.scope == intent.batch.scope
            and other.batch.template != intent.batch.template
            and not keys.isdisjoint(other.batch.keys)
        )
        told.append(
            (intent, f"{example}{more}: contradicts {', '.join(others)}, so neither is made")
        )
    return told
