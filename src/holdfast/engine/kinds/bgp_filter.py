"""Filters of what BGP takes and gives: a route-map and the lists that it asks."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.engine.artifact import Artifact, ArtifactKind, Key
from holdfast.engine.kinds.bgp_attributes import name_of
from holdfast.engine.plan import Risk, Verb

# What stands in lines for the name, before it is known: lists are called `NAME-1`, `NAME-2`.
SELF = "@"

BGP_FILTER = ArtifactKind(
    name="bgp_filter",
    identity="name of the route-map: `HF-`, what people call it, and a digest of its lines",
    fields=("lines",),
    proof="its name with the digest of just these lines, which only Holdfast gives; once somebody"
    " changed it, a claim",
    cleanup="deleted when it is ours, once no peer names it: the map first, then its lists",
    deletes_orphans=True,
    risk=lambda verb, _subject, _changes: (
        (Risk.LOW, "")
        if verb is not Verb.UPDATE
        else (Risk.MEDIUM, "what peers use it for changes")
    ),
    urgent=lambda found, _operation: f"what peers may tell through {found.key.name}",
    survives_reboot=True,
    tells_its_maker=True,
    tagged=True,
    needs_program=True,
    shown=lambda name, _fields: ["route-map", name],
)


def bgp_filter(readable: str, lines: Iterable[str]) -> Artifact:
    """readable: what people call it, of `A-Za-z0-9_.-`. lines: as FRR writes them, without leading
    spaces, in the order in which they are given to it, with `@` for the name of the map:

        ip prefix-list @-1 seq 5 permit 10.0.0.0/8 le 24
        bgp as-path access-list @-2 seq 5 permit ^65001_
        bgp community-list standard @-3 seq 5 permit 65001:100
        bgp large-community-list standard @-4 seq 5 permit 65001:1:100
        route-map @ permit 10
        match ip address prefix-list @-1
        match as-path @-2
        set local-preference 200
        route-map @ permit 20
        match community @-3

    Lists first, then the map; lines behind a `route-map` line belong to that entry. The name is
    `HF-READABLE-DIGEST`, of the lines with `@`; `lines` of the artifact holds them with the name in
    its place. A driver reads a map of ours and all lists whose names begin with its name and a
    hyphen, in the order lists by number of the list and `seq`, map by number of the entry; within
    an entry `match` before `set`, each in the order of the alphabet. `canonical` brings lines into
    that order.
    """
    given = canonical(lines)
    name = name_of(enumerated(given), readable)
    return Artifact(
        Key(BGP_FILTER.name, name), {"lines": tuple(line.replace(SELF, name) for line in given)}
    )


def enumerated(lines: Iterable[str]) -> list[str]:
    """With their places, as in a filter the order counts."""
    return [f"{number} {line}" for number, line in enumerate(lines)]


def is_what_its_name_says(name: str, lines: Iterable[str]) -> bool:
    """Whether a map that is there has just the lines that its name was made of."""
    readable = name.removeprefix("HF-").rpartition("-")[0]
    plain = [line.replace(name, SELF) for line in lines]
    return name_of(enumerated(plain), readable) == name


def canonical(lines: Iterable[str]) -> tuple[str, ...]:
    """The order in which lines are compared and given."""
    entries: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("route-map "):
            entries.append([])
        entries[-1].append(line)
    lists, *found = entries
    in_order = [*lists]
    for entry in found:
        in_order += [entry[0], *sorted(entry[1:])]
    return tuple(in_order)


def filter_key(name: str) -> Key:
    return Key(BGP_FILTER.name, name)
