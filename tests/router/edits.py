"""Edits of a Router document, as people make them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

_LINKS = ("ens18", "ens19", "ens20")
_MODES = ("strict", "loose", "disabled")


def edit(document: Any, base: Sequence[Any], chance: Random) -> str:
    """Makes one in the document, and says which. base: resources that may be put back."""
    resources = document["spec"]["resources"]
    index = chance.randrange(len(resources))
    resource = resources[index]
    name = _id(resource)
    turn = chance.random()
    if turn < 0.15 and len(resources) > 3:
        del resources[index]
        return f"{name} is taken out"
    if turn < 0.3:
        there = {_id(one) for one in resources}
        missing = [one for one in base if _id(one) not in there]
        if missing:
            again = deepcopy(chance.choice(missing))
            resources.append(again)
            return f"{_id(again)} is put back"
    places = list(_places(resource["spec"]))
    if not places:
        return "nothing"
    holder, key = chance.choice(places)
    before = holder[key]
    holder[key] = _other(before, chance)
    return f"{key} of {name}: {before} becomes {holder[key]}"


def _id(resource: Any) -> str:
    return f"{resource['kind']}/{resource['metadata']['name']}"


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in list(items):
        if isinstance(one, dict | list):
            yield from _places(one)
        else:
            yield value, key


def _other(value: Any, chance: Random) -> Any:
    match value:
        case str() if value in _LINKS:
            return chance.choice(_LINKS)
        case str() if value in _MODES:
            return chance.choice(_MODES)
        case bool():
            return not value
        case int():
            return max(1, value + chance.choice((-10, -1, 1, 10)))
        case "lan" | "wan" | "dmz":
            return chance.choice(("lan", "wan", "dmz"))
        case str():
            return _text(value, chance)
    return value


def _text(value: str, chance: Random) -> str:
    try:
        given = ipaddress.ip_interface(value)
    except ValueError:
        return chance.choice((value, "0", "1", "eth9")) if value.isdigit() else value
    step = chance.choice((1, 2, 256, 2048)) << (0 if given.version == 4 else 64)
    if "/" in value:
        length = chance.choice((given.network.prefixlen, given.network.prefixlen - 1))
        moved = ipaddress.ip_interface(f"{given.ip + step}/{length}")
        whole = given.ip == given.network.network_address
        return str(moved.network if whole else moved)
    return str(given.ip + step)
