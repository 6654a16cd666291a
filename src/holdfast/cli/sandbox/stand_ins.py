"""Files that a configuration names by absolute paths: lists are copied into the trial's root,
secrets are stood in for."""

from __future__ import annotations

import base64
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.config.document import parse, read_file
from holdfast.errors import ConfigError

_LISTS = ("file",)
_SECRETS = ("passwordFile", "privateKeyFile", "presharedKeyFile")


def place(file: Path, root: Path) -> list[str]:
    """Answers the secrets that were stood in for."""
    try:
        document = parse(read_file(file, handed=True))
    except ConfigError:
        return []  # whoever loads it says what is wrong
    made = []
    for field, named in _named(document.data):
        target = root / named.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if field in _SECRETS:
            # Fit for a password and for a key.
            target.write_bytes(base64.b64encode(secrets.token_bytes(32)) + b"\n")
            target.chmod(0o600)
            made.append(named)
        elif Path(named).is_file():
            shutil.copyfile(named, target)
    return made


def _named(data: Any) -> Iterator[tuple[str, str]]:
    """Fields that name files by absolute paths, and the paths."""
    if isinstance(data, list):
        for item in data:
            yield from _named(item)
    elif isinstance(data, dict):
        for field, value in data.items():
            if field in (*_LISTS, *_SECRETS) and isinstance(value, str) and value.startswith("/"):
                if ".." not in value.split("/"):
                    yield field, value
            else:
                yield from _named(value)
