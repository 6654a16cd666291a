"""Artifacts and fields in words: the language of `ip` where it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.engine.artifact import Value
from holdfast.engine.document import Entry
from holdfast.engine.kinds import KINDS

GLYPHS = {"create": "+", "update": "~", "replace": "-/+", "delete": "-", "forget": "·", "keep": "="}
_OWNERS = 5
LOOKS = {
    "create": ("green",),
    "update": ("yellow",),
    "replace": ("magenta",),
    "delete": ("red",),
    "forget": ("cyan",),
    "keep": ("dim",),
}


def artifact(entry: Entry, fields: Mapping[str, Value] | None = None) -> str:
    """`route 10.0.0.0/24 via 192.0.2.1 dev wan0`; without fields, its identity alone."""
    kind, name = KINDS.get(entry["kind"]), entry["name"]
    if kind is None:  # a plan that another version saved
        return f"{entry['kind']} {name}"
    if fields is None or kind.shown is None:
        return kind.name if kind.naming.sole else f"{kind.name} {name}"
    return " ".join(word for word in kind.shown(name, fields) if word)


def owners(given: Sequence[str]) -> str:
    """The first few of them: a table of a firewall may be made of a thousand resources."""
    shown = ", ".join(given[:_OWNERS])
    return f"{shown} and {len(given) - _OWNERS} more" if len(given) > _OWNERS else shown
