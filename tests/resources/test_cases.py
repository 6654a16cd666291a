"""Good files, each a folder: router.yaml and what it compiles to, an intent a line.

A new case is a new folder with a router.yaml; `python -m tests.resources.test_cases` writes what
is missing beside it, for somebody to read before it is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.intent import BulkIntent, Desired, Intent
from holdfast.resources.compile import compile_router
from holdfast.resources.router import Router, load_router

CASES = sorted(path for path in Path(__file__).with_name("cases").iterdir() if path.is_dir())


def shown(router: Router, desired: Desired) -> str:
    return "".join(f"{line}\n" for line in _lines(router, desired))


def _lines(router: Router, desired: Desired) -> Iterator[str]:
    for warning in router.warnings:
        yield f"warning {warning}"
    for intent in desired.intents:
        if isinstance(intent, BulkIntent):
            for key in intent.batch.keys:
                yield from _intent(intent, intent.batch.artifact(key), "ensure")
        else:
            words = intent.action.value + ("" if intent.creates else " what exists")
            yield from _intent(intent, intent.artifact, words)
    for waiting in desired.waiting:
        words = "" if waiting.keeps else "; what it made goes"
        yield f"{waiting.origin} {waiting}{words}"


def _intent(intent: Intent | BulkIntent, artifact: Artifact, action: str) -> Iterator[str]:
    yield f"{intent.origin} {intent.owner}: {action} {artifact.key}"
    if artifact.fields:
        yield "    " + ", ".join(f"{name}={value!r}" for name, value in artifact.fields.items())
    if artifact.payload:
        yield f"    payload {artifact.payload!r}"
    if isinstance(intent, BulkIntent) and intent.lacks:
        yield f"    {intent.lacks}"
    if intent.requires:
        yield "    requires " + ", ".join(map(str, intent.requires))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case)
    router = load_router(Path("router.yaml"))
    desired = compile_router(router)
    assert shown(router, desired) == (case / "intents.txt").read_text()
    required = {key for intent in desired.intents for key in intent.requires}
    declared = {
        intent.artifact.key for intent in desired.intents if not isinstance(intent, BulkIntent)
    }
    # A link that a line of a RouteList names need not be declared; everything else is.
    assert {key.kind for key in required - declared} <= {"link"}


def main() -> None:
    for case in CASES:
        if not (case / "intents.txt").exists():
            os.chdir(case)
            router = load_router(Path("router.yaml"))
            Path("intents.txt").write_text(shown(router, compile_router(router)))


if __name__ == "__main__":
    main()
