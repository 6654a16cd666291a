"""What a table is made of, part by part, in a form in which two tables can be compared.

A listing tells whether a table is still what it was. This form is the same whoever made a table and
in how many transactions: the order of sets and chains does not count, and a set that one rule alone
uses counts as part of that rule, since the kernel numbers such sets as they come.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from holdfast.host.netlink import attributes
from holdfast.host.nft import nft_rules
from holdfast.host.nft.nft_ruleset import (
    ANONYMOUS,
    CHAIN_DECLARED,
    FLOWTABLE_DECLARED,
    HEADER,
    OBJECT_TYPE,
    SET_DECLARED,
    SET_NAME,
    Ruleset,
    Table,
    add,
    declared,
    object_settings,
    set_flags,
)

# "chain input" -> a digest of all that is declared of it.
Contents = Mapping[str, bytes]

_CHAIN_NAME, _CHAIN_HOOK = 3, 4
_OBJECT_NAME, _FLOWTABLE_NAME = 2, 2
_MAP = 0x8
# What each element of a set gets, such as a limit; with each set it is told in one of two ways.
_SET_STATEMENTS = {17, 18}
_OBJECTS = {1: "counter", 2: "quota", 3: "ct helper", 4: "limit", 7: "ct timeout", 8: "secmark"}
_FLAGS = "flags of the table"
_SHOWN = 3


def read(ruleset: Ruleset, table: Table) -> Contents:
    """Whether it is all of one generation, the caller knows."""
    parts = {_FLAGS: table.flags}
    nameless = _sets(ruleset, table, parts)
    rules: dict[bytes, list[bytes]] = defaultdict(list)
    for body in ruleset.rules(table).bodies():
        rules[nft_rules.chain(body)].append(_digest(list(nft_rules.pieces(body, nameless))))
    hooks: dict[bytes, list[bytes]] = defaultdict(list)
    for body in ruleset.chains(table):
        found = attributes.parse(body, HEADER)
        name = found[_CHAIN_NAME]
        own = rules.pop(name, [])
        parts[f"chain {attributes.to_text(name)}"] = _digest(
            [*declared(body, CHAIN_DECLARED), b"".join(own)]
        )
        if _CHAIN_HOOK in found:
            hooks[found[_CHAIN_HOOK]].append(name)
    for names in hooks.values():
        if len(names) > 1:  # at one hook and priority, the order in which they came decides
            parts[f"order of {_joined(names)}"] = _digest(names)
    for body in ruleset.objects(table):
        found = attributes.parse(body, HEADER)
        kind = int.from_bytes(found[OBJECT_TYPE], "big")
        name = found[_OBJECT_NAME]
        called = _OBJECTS.get(kind, f"object of type {kind}")
        parts[f"{called} {attributes.to_text(name)}"] = _digest(object_settings(body))
    for body in ruleset.flowtables(table):
        name = attributes.parse(body, HEADER)[_FLOWTABLE_NAME]
        parts[f"flowtable {attributes.to_text(name)}"] = _digest(declared(body, FLOWTABLE_DECLARED))
    return parts


def difference(seen: Contents, wanted: Contents) -> str:
    """Which parts differ, in a few words; empty where none does."""
    both = {**seen, **wanted}
    names = sorted(name for name in both if seen.get(name) != wanted.get(name))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _sets(ruleset: Ruleset, table: Table, parts: dict[str, bytes]) -> dict[bytes, bytes]:
    """Adds the sets and maps that have names; of the others, what stands for the name of each."""
    nameless: dict[bytes, bytes] = {}
    for body in ruleset.sets(table):
        found = attributes.parse(body, HEADER)
        name, flags = found[SET_NAME], set_flags(found)
        elements = b"".join(ruleset.elements(table, found))
        if flags & ANONYMOUS:
            nameless[name] = _digest([*declared(body, SET_DECLARED - {SET_NAME}), elements])
        else:
            called = "map" if flags & _MAP else "set"
            settings = declared(body, SET_DECLARED | _SET_STATEMENTS)
            parts[f"{called} {attributes.to_text(name)}"] = _digest([*settings, elements])
    return nameless


def _joined(names: Sequence[bytes]) -> str:
    return " and ".join(sorted(map(attributes.to_text, names)))


def _digest(parts: list[bytes]) -> bytes:
    made = hashlib.sha256()
    add(made.update, parts)
    return made.digest()
