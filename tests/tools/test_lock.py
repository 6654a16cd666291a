"""The locked requirements: complete, hashed, and free of addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

_PROJECT = Path(__file__).parents[2]
_PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==\S+( ; .*)? \\$")
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")
_NOTE = re.compile(r"^ *#")


def _pins(file: str) -> dict[str, int]:
    """The number of hashes of each requirement; every line is one of the three known forms."""
    found: dict[str, int] = {}
    name = ""
    for line in (_PROJECT / file).read_text().splitlines():
        if pin := _PIN.match(line):
            name = pin[1]
            found[name] = 0
        elif _HASH.match(line):
            found[name] += 1
        else:
            assert _NOTE.match(line), line
    return found


def _declared() -> tuple[set[str], set[str]]:
    document: dict[str, Any] = tomllib.loads((_PROJECT / "pyproject.toml").read_text())
    project = document["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=~! ;\[]", entry)[0].lower() for entry in requirements}

    return names(project["dependencies"]), names(project["optional-dependencies"]["dev"])


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_every_requirement_is_pinned_and_hashed(file: str) -> None:
    pins = _pins(file)
    assert pins
    assert not [name for name, hashes in pins.items() if hashes == 0]


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_no_address_is_named(file: str) -> None:
    text = (_PROJECT / file).read_text()
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


def test_what_pyproject_declares_is_locked() -> None:
    runtime, development = _declared()
    assert runtime <= _pins("requirements.txt").keys()
    assert runtime | development <= _pins("requirements-dev.txt").keys()
