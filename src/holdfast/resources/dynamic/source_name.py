"""Names of sources: who contributes a part."""

from __future__ import annotations

import re

from holdfast.resources.spec.document import parse_name
from holdfast.resources.spec.shape import Shape, parsed

PLUGIN, OWNER, MANAGER = "Plugin", "Owner", "Manager"
CLASSES = (PLUGIN, OWNER, MANAGER)
# What the file may let a manager do on the API besides.
GRANTS = ("plan", "config", "trials")
_REF = re.compile(rf"((?:{'|'.join(CLASSES)})/[A-Za-z0-9._-]+)#\d+")


def parse_source(text: str) -> str:
    kind, slash, name = text.partition("/")
    if kind not in CLASSES or not slash:
        raise ValueError(
            f"{text!r} is not a source such as Plugin/inventory, Owner/ci, Manager/main"
        )
    parse_name(name)
    return text


def plugin_source(name: str) -> str:
    return f"{PLUGIN}/{name}"


def plugin_of(source: str) -> str:
    """The name of the plugin that a source is; empty where it is something else."""
    kind, _, name = source.partition("/")
    return name if kind == PLUGIN else ""


def parse_caller(text: str) -> str:
    if plugin_of(parse_source(text)):
        raise ValueError(f"{text!r} is a plugin, which `pluginRef` names")
    return text


def caller() -> Shape:
    """A source that hands parts in, rather than being run for them."""
    pattern = rf"^({OWNER}|{MANAGER})/[A-Za-z0-9]"
    return parsed(parse_caller, "Owner/NAME or Manager/NAME", {"pattern": pattern})


def unnumbered(text: str) -> str:
    """A line that names parts, without their generations: what a source says again, in a new one,
    is no news."""
    return _REF.sub(r"\1", text)


def source() -> Shape:
    pattern = rf"^({'|'.join(CLASSES)})/[A-Za-z0-9]"
    return parsed(parse_source, "Plugin/NAME, Owner/NAME or Manager/NAME", {"pattern": pattern})
