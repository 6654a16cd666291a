"""Configuration as it may be shown to others: without the secrets that stand in it.

A secret is known by the field that holds it, as its kind declares it or as it is called; and in
what is no field (a line that was commented out, a file of another program) by what the line says.
Whoever shows too little of a comment annoys; whoever shows too much of it gives a password away.
"""

from __future__ import annotations

import re

from yaml.nodes import MappingNode, SequenceNode

from holdfast.config import secret_spans, yaml12
from holdfast.config.said_secrets import SHOWN, Holds
from holdfast.config.secret_lines import Comments, Lines
from holdfast.config.secret_names import ENVIRONMENT, holds_secrets, is_secret, speaks_of_secret
from holdfast.config.secret_spans import Fields
from holdfast.config.yaml12 import UnreadableError

__all__ = [
    "ENVIRONMENT",
    "SHOWN",
    "is_secret",
    "redact",
    "redact_lines",
    "speaks_of_secret",
]

_LINE = re.compile(r"[^\n]+")
# How a document begins: with a field, an item, or in brackets.
_DECLARES = re.compile(r"---|%|[{\[]|-(?:\s|$)|[\"']?[\w./-]+[\"']?\s*:(?:\s|$)")


def redact(text: str, fields: Fields = lambda _kind: ()) -> str:
    """A text with its secrets struck out: by their fields where it is YAML or JSON that declares
    something, by what its lines say elsewhere."""
    shown = text.removeprefix("\ufeff")
    # A list of 100 000 routes, say: to read that as YAML takes long.
    if not _DECLARES.match(_first_line(shown)):
        return redact_lines(shown, holds_secrets)
    try:
        root = yaml12.compose(shown)
    except UnreadableError:
        return redact_lines(shown, holds_secrets)
    if not isinstance(root, MappingNode | SequenceNode):  # a list of routes, say, or nothing
        return redact_lines(shown, holds_secrets)
    shown = secret_spans.without(shown, root, fields)
    return Comments(holds_secrets).all(shown)


def redact_lines(text: str, holds: Holds = is_secret) -> str:
    """The same of what declares nothing, as a log: by what its lines say alone. `env:` is a program
    there that complains."""
    return Lines(holds).all(text)


def _first_line(text: str) -> str:
    """That says something: neither blank nor a comment."""
    said = (found[0].strip() for found in _LINE.finditer(text))
    return next((line for line in said if line and not line.startswith("#")), "")
