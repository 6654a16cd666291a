"""What a plugin is shown of a resource: its fields without those that hold or lead to secrets."""

from __future__ import annotations

import re
from typing import Any

from holdfast.config.redaction import ENVIRONMENT, speaks_of_secret

_LEADS_TO_ONE = re.compile(r"(key|secret|password)file$", re.I)
_SOURCES = {"file", "env", "base64"}


def redacted(value: Any) -> Any:
    """Plain values without secrets: fields named so are blank, and gone where they hold more than
    text; names of files and places that hold one are gone."""
    if isinstance(value, list | tuple):
        return [redacted(one) for one in value]
    if not isinstance(value, dict):
        return value
    shown: dict[str, Any] = {}
    for name, one in value.items():
        if _LEADS_TO_ONE.search(name) or _is_source(name, one):
            continue
        if name == ENVIRONMENT and isinstance(one, dict):
            shown[name] = dict.fromkeys(one, "")
            continue
        # By name, whatever stands in it: an unknown field is better blank than told.
        if speaks_of_secret(name):
            if not isinstance(one, dict | list | tuple):
                shown[name] = ""
            continue
        shown[name] = redacted(one)
    return shown


def _is_source(name: str, value: Any) -> bool:
    """`passwordFrom: {file: …}`"""
    return name.endswith("From") and isinstance(value, dict) and not _SOURCES.isdisjoint(value)
