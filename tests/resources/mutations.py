"""Router documents with mistakes in them: each a good one that was changed in one place or more.

The same document and the same seed lead to the same mistakes: what is found once is found again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from holdfast.resources import registry

Location = tuple[str | int, ...]

# Of another type, or none at all.
_TYPES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.5, "", "text", [], [None], [[]], ["text", "text"], [1, "text"],
    {}, {"name": "lan"}, {"text": {"text": [{}]}}, [{}],
)  # fmt: skip
_NUMBERS: tuple[Any, ...] = (
    -1, 2, 7, 255, 256, 4096, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63,
    -(2**63) - 1, 2**64, 10**30, 10**400, float("nan"), float("inf"), float("-inf"), 1e300,
)  # fmt: skip
# What JSON has no words for, by what stands in their place until it is written.
_YAML = {
    '"%hex%"': "0x" + "f" * 5000, '"%octal%"': "0o17", '"%time%"': "2001-12-14t21:59:43Z",
    '"%tagged%"': "!!binary aGk=", '"%itself%"': "&a [*a]", '"%old%"': "yes", '"%seconds%"': "1:30",
    '"%nowhere%"': "*nowhere", '"%block%"': "!!str {}", "Infinity": ".inf", "NaN": ".nan",
}  # fmt: skip
_TEXTS = (
    " ", "eth 0", "a\nb", "a\rb", "\x00", "eth\x000", "\x1b[31m", "\x7f", "\x85", "\u2028",
    "\u202e0hte", "é", "\uff45th0", "\u0661\u0662", "😀", "\ufeff", "\ufffd", "\ud800", "a\udfffb",
    "e\u0301", "\u00b2", "x" * 70_000, "a" * 16, "a" * 64, "a." * 130, "/", "..", "../../etc/x",
    "/etc/\x00", "/dev/null", "%s", "{}", "$(id)", "`id`", "a;b", "a,b", 'a"b', "a'b", "a\\b", "#",
    "-a", "-", ".", ":", "::", "::/0", "0.0.0.0/0", "255.255.255.255", "224.0.0.1",
    "127.0.0.1", "::1", "fe80::1%eth0", "ff02::1", "::ffff:192.0.2.1", "2001:db8::/129",
    "192.0.2.1/33", "192.0.2.1/", "01.02.03.04", "1/1", "1-0", "65536", "-1", "0", "0x",
    "0xffffffffffffffffff", "1e3", "1s", "9" * 30 + "h", "9" * 5000, "-1s", "nan", "all", "lo",
    "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "main", "lan", "wan", "example", "absent", "auto",
    "none", "http://[", "tcp://a:b", "a:99999", "Kind/name", "2026-02-30T25:61:61Z",
)  # fmt: skip
_SCRATCHES = (
    b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\t", b"\r", b"\n", b"{", b"}",
    b"]", b'"', b"'", b"&a ", b"*a ", b"!!int ", b"!!binary ", b"<<: ", b"? ", b"--- ", b"...\n",
    b"# ", b"%", b"|\n", b": ", b", ",
)  # fmt: skip


class Mutant(NamedTuple):
    what: str  # "spec.ifname of Interface/wan is removed; …"
    content: bytes


def mutants(document: Any, seed: str, count: int) -> Iterator[Mutant]:
    """So many documents with mistakes in them, no two alike: the plainest ones first."""
    chance = Random(seed)  # noqa: S311 - the same again is what is wanted
    known: set[bytes] = set()
    for what, changed in islice(_plain(document), count):
        content = written(changed)
        if content not in known:
            known.add(content)
            yield Mutant(what, content)
    while len(known) < count:
        changed = deepcopy(document)
        said = list(mistakes(changed, chance))
        content = written(changed)
        if chance.random() < 0.06:
            what, content = _scratched(content, chance)
            said.append(what)
        if content not in known:
            known.add(content)
            yield Mutant("; ".join(said), content)


def _plain(document: Any) -> Iterator[tuple[str, Any]]:
    """Every resource removed, and broken; of the last one, every field removed and emptied."""
    last = len(document["spec"]["resources"]) - 1
    for index in range(last + 1):
        changed = deepcopy(document)
        changed["spec"]["resources"][index]["spec"] = {"unknown": True}
        yield f"resource {index} is broken", changed
        changed = deepcopy(document)
        del changed["spec"]["resources"][index]
        yield f"resource {index} is removed", changed
    for *around, step in _inside(document["spec"]["resources"][last]["spec"]):
        for emptied in (False, True):
            changed = deepcopy(document)
            holder = changed["spec"]["resources"][last]["spec"]
            for one in around:
                holder = holder[one]
            if emptied:
                holder[step] = type(holder[step])()
            else:
                del holder[step]
            yield f"{around} {step} is {'emptied' if emptied else 'removed'}", changed


def mistakes(document: Any, chance: Random) -> Iterator[str]:
    """Makes them in the document, and says which. The last resource is the one it is about."""
    if chance.random() < 0.04:
        yield _value(document, chance.choice(_outer(document)), chance)
        return
    resources = document["spec"]["resources"]
    last = len(resources) - 1
    first = last if chance.random() < 0.4 else chance.randint(0, last)
    others = _led_to(resources, first) or [chance.randint(0, last)]
    yield _mistake(document, first, chance)
    while chance.random() < 0.4:
        yield _mistake(document, chance.choice(others), chance)


def mistake_anywhere(value: Any, chance: Random) -> str:
    """Makes one in any mapping, and says which."""
    return _value(value, chance.choice(_inside(value)), chance)


def written(document: Any) -> bytes:
    """As YAML, which JSON is too, but for a few words."""
    text = json.dumps(document, ensure_ascii=False)
    for word, meant in _YAML.items():
        text = text.replace(word, meant)
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _outer(document: Any) -> list[Location]:
    """Places around the list of resources."""
    return [("metadata",), ("metadata", "name"), ("apiVersion",), ("kind",), ("spec",)] + [
        ("spec", *location) for location in _inside({**document["spec"], "resources": []})
    ]


def _led_to(resources: list[Any], start: int) -> list[int]:
    """Those that a resource refers to, and those that refer to it, up to two references away."""
    names = [one["metadata"]["name"] for one in resources]
    said = [set(_texts(one["spec"])) for one in resources]
    found = {start}
    for _ in range(2):
        found |= {
            index
            for index, name in enumerate(names)
            if any(name in said[one] or names[one] in said[index] for one in found)
        }
    return sorted(found - {start})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
    elif isinstance(value, str):
        yield value


def _mistake(document: Any, index: int, chance: Random) -> str:
    resources = document["spec"]["resources"]
    index = min(index, len(resources) - 1)
    if index < 0 or not isinstance(resources[index], dict) or chance.random() < 0.2:
        return _whole(resources, index, chance)
    here: Location = ("spec", "resources", index)
    inside = [(*here, "spec", *one) for one in _inside(resources[index].get("spec"))]
    frame = [(*here, step) for step in resources[index]] + [(*here, "metadata", "name")]
    return _value(document, chance.choice(inside * 4 + frame), chance)


def _whole(resources: list[Any], index: int, chance: Random) -> str:
    """A mistake with one resource of a list."""
    if index < 0 or not isinstance(resources[index], dict):
        resources.append(chance.choice(_TYPES))
        return "what is no resource is added"
    one, what = resources[index], f"resource {index}"
    match chance.randrange(8):
        case 0 | 1:
            del resources[index]
            return f"{what} is removed"
        case 2:
            resources.insert(chance.randint(0, len(resources)), deepcopy(one))
            return f"{what} is doubled"
        case 3:
            resources.append({**deepcopy(one), "metadata": {"name": "other"}})
            return f"{what} is doubled under another name"
        case 4:
            one["metadata"] = {"name": chance.choice(("other", "lan", "wan", "a" * 63))}
            return f"{what} has another name"
        case 5:
            kind = chance.choice(list(registry.names()))
            one.update(kind=kind, apiVersion=registry.api_versions(kind)[0])
            return f"{what} is a {kind}"
        case 6:
            one["apiVersion"] = chance.choice(registry.api_versions(_kind(one))).replace(
                *chance.choice((("holdfast.dev", "routerd.net"), ("v1alpha1", "v1"), ("", "")))
            )
            return f"{what} is of {one['apiVersion']}"
        case _:
            resources.insert(0, resources.pop(index))
            return f"{what} stands first"


def _kind(resource: Any) -> str:
    kind = resource.get("kind")
    return kind if isinstance(kind, str) and kind in registry.names() else "Interface"


def _inside(value: Any) -> list[Location]:
    """Every place in a value, itself left out."""
    steps: Any = ()
    if isinstance(value, dict):
        steps = value.items()
    elif isinstance(value, list):
        steps = enumerate(value)
    found: list[Location] = []
    for step, one in steps:
        found += [(step,), *((step, *rest) for rest in _inside(one))]
    return found


def _value(document: Any, location: Location, chance: Random) -> str:
    """A mistake with one value, or with the field that holds it."""
    where, step = ".".join(map(str, location)), location[-1]
    try:
        holder = document
        for one in location[:-1]:
            holder = holder[one]
        value = holder[step]
    except (LookupError, TypeError):
        return f"{where} is gone already"
    choice = chance.choice((0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 6, 6, 7, 7))
    if choice == 0:
        holder.pop(step)
        return f"{where} is removed"
    if choice == 1 and isinstance(holder, dict):
        holder[chance.choice(("unknown", "name\x00", "", "\ud800", "x" * 3000))] = value
        return f"{where} stands under another name, too"
    if choice == 2:
        holder[step] = _nested(value, chance.choice((3, 30, 90, 400)))
        return f"{where} is nested"
    if choice == 3:
        holder[step] = deepcopy(chance.choice(_TYPES))
    elif choice == 4:
        holder[step] = chance.choice((*_NUMBERS, *(one.strip('"') for one in _YAML)))
    elif choice == 5:
        holder[step] = _altered(value, chance)
    elif choice == 6:
        holder[step] = chance.choice([*_names(document), "nobody"])
    else:
        holder[step] = chance.choice(_TEXTS)
    return f"{where} is {holder[step]!r:.60}"


def _names(document: Any) -> list[str]:
    resources = document["spec"].get("resources") if isinstance(document.get("spec"), dict) else ()
    given = [one.get("metadata") for one in resources or () if isinstance(one, dict)]
    return [one["name"] for one in given if isinstance(one, dict) and one.get("name")]


def _nested(value: Any, depth: int) -> Any:
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


def _altered(value: Any, chance: Random) -> Any:
    """Near what it was."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return chance.choice((value + 1, value - 1, -value, value * 1000, f"{value}", [value]))
    if isinstance(value, str):
        middle = len(value) // 2
        return chance.choice(
            (
                value[:middle] + chance.choice(_TEXTS) + value[middle:],
                value[:middle], value[middle:], value * 2, value.upper(), f" {value} ", [value],
                value + "\x00", value.replace("0", "\u0660"),
            )
        )  # fmt: skip
    if isinstance(value, list):
        return chance.choice(([], value * 2, value[::-1], [*value, None], value * 200))
    return chance.choice(({}, {**value, "unknown": 1}, [value], list(value)))


def _scratched(content: bytes, chance: Random) -> tuple[str, bytes]:
    """A mistake in the text itself."""
    at = chance.randint(0, len(content))
    if chance.random() < 0.2:
        return f"cut at byte {at}", content[:at]
    scratch = chance.choice(_SCRATCHES)
    past = at + chance.choice((0, 0, 1, 5))
    return f"{scratch!r} at byte {at}", content[:at] + scratch + content[past:]
