"""The reference pages are what the code says, and their examples are true."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from holdfast.engine.intent import BulkIntent, Intent
from holdfast.engine.kinds import KINDS
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.router import load_router
from holdfast.resources.spec.reference import artifact_kind, coverage, render
from tests.resources.surroundings import everything_known, surrounded
from tests.resources.test_cases import CASES

PAGES = Path(__file__).parents[3] / "docs" / "reference"
# The files that examples name.
SECRETS = {"secret": "secret\n", "wg0.key": f"{b64encode(bytes(range(32))).decode()}\n"}
# Specs that lead to other artifacts or actions than the example does.
OTHERWISE: dict[str, tuple[dict[str, Any], ...]] = {
    "Interface": (
        {"ifname": "eth9", "managed": False},
        {"ifname": "br0", "type": "bridge", "state": "absent"},
        {"ifname": "tun9", "type": "ip6tnl", "ip6tnl": {"remote": "2001:db8::9"}},
    ),
    "NTPClient": ({"provider": "systemd-timesyncd", "servers": ["192.0.2.123"]},),
    "PathMTUPolicy": (
        {
            "fromInterface": "lan",
            "toInterfaces": ["wan"],
            "ipv6RA": {"enabled": True, "scope": "example"},
        },
    ),
    "Hostname": ({"hostname": "router03", "managed": False},),
}


def written(folder: Path) -> dict[str, str]:
    """Every page, by the name of its file."""
    asked = {name: list(_asked(name, folder)) for name in registry.names()}
    return {"resources.md": render(), "coverage.md": coverage(asked)}


def _asked(name: str, folder: Path) -> Iterator[Intent | BulkIntent]:
    """What the example of a kind asks for; what it refers to is made of the examples of others."""
    path = folder / "router.yaml"
    for secret, content in SECRETS.items():
        (folder / secret).write_text(content)
        (folder / secret).chmod(0o600)
    for spec in (None, *OTHERWISE.get(name, ())):
        path.write_text(json.dumps(surrounded(name, spec)) + "\n")
        router = load_router(path)
        for intent in compile_router(router, everything_known(router)).intents:
            if intent.owner == f"{name}/example":
                yield intent


@pytest.mark.parametrize("page", ["resources.md", "coverage.md"])
def test_page_is_up_to_date(page: str, tmp_path: Path) -> None:
    again = f"write it again: python -m {__name__}"
    assert (PAGES / page).read_text() == written(tmp_path)[page], again


@pytest.mark.parametrize("name", list(registry.names()))
def test_example(name: str, tmp_path: Path) -> None:
    emitted = {artifact_kind(intent) for intent in _asked(name, tmp_path)}
    assert emitted == set(registry.kind(name).emits)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_resource_leads_to_more_than_its_kind_says(case: Path) -> None:
    """Which artifacts a resource has a part in may depend on what else there is in the file."""
    router = load_router(case / "router.yaml")
    for intent in compile_router(router, everything_known(router)).intents:
        kind = intent.owner.partition("/")[0]
        assert artifact_kind(intent) in registry.kind(kind).emits, intent.owner


def test_every_artifact_kind_is_made_by_some_resource() -> None:
    emitted = {artifact for name in registry.names() for artifact in registry.kind(name).emits}
    assert emitted == {name for name, kind in KINDS.items() if not kind.imported}


def test_every_kind_says_what_becomes_of_its_artifacts() -> None:
    for name in registry.names():
        kind = registry.kind(name)
        assert kind.name == name
        assert kind.emits or kind.effect
        assert all(KINDS[artifact].cleanup for artifact in kind.emits)


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        for file, content in written(Path(scratch)).items():
            (PAGES / file).write_text(content)
