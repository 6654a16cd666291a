"""Text as `nft` reads it: names in quotes, sets, maps, chains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

INDENT = "\t"


def ifname_trouble(ifname: str) -> str:
    """Why nft cannot be told a kernel name, "" where it can.

    Its strings have no way to hold a quotation mark, and it takes a final asterisk for a pattern
    that other interfaces match too.
    """
    wrong = next((char for char in '"*' if char in ifname), "")
    return f"nftables cannot be told an interface name with {wrong!r}: {ifname}" if wrong else ""


def quoted(ifname: str) -> str:
    trouble = ifname_trouble(ifname)
    if trouble or not ifname.isprintable():
        raise ValueError(trouble or f"{ifname!r} cannot name an interface")
    return f'"{ifname}"'


def one_of(items: Iterable[str]) -> str:
    """An anonymous set."""
    return f"{{ {', '.join(items)} }}"


def interfaces(ifnames: Iterable[str]) -> str:
    return one_of(quoted(ifname) for ifname in sorted(set(ifnames)))


def named_set(name: str, types: str, elements: Iterable[str], *, interval: bool = False) -> str:
    """`elements` may come in any order and more than once."""
    return _collection("set", name, types, sorted(set(elements)), interval)


def named_map(name: str, types: str, elements: Mapping[str, str], *, interval: bool = False) -> str:
    lines = [f"{key} : {value}" for key, value in sorted(elements.items())]
    return _collection("map", name, types, lines, interval)


def _collection(word: str, name: str, types: str, lines: Sequence[str], interval: bool) -> str:
    inside = [f"type {types}"]
    if interval:
        inside.append("flags interval")
    inside += ["elements = {", *(f"{INDENT}{line}," for line in lines), "}"]
    return _braces(f"{word} {name}", inside)


def chain(name: str, hook: str, rules: Iterable[str]) -> str:
    """hook: "filter hook input priority filter". What drops the rest is a last rule: a policy does
    not hold while the table is replaced."""
    return _braces(f"chain {name}", (f"type {hook}; policy accept;", *rules))


def branch(name: str, rules: Iterable[str]) -> str:
    """A chain that packets come to from others."""
    return _braces(f"chain {name}", rules)


def body(parts: Iterable[str]) -> str:
    """What stands between the braces of a table."""
    return "\n\n".join(parts) + "\n"


def _braces(head: str, inside: Iterable[str]) -> str:
    return "\n".join(_lines(head, inside))


def _lines(head: str, inside: Iterable[str]) -> Iterator[str]:
    yield f"{INDENT}{head} {{"
    for line in inside:
        yield f"{INDENT}{INDENT}{line}"
    yield f"{INDENT}}}"
