"""Every example, cut after each of its lines: what is valid and smaller is weighed by the guard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine import guard
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.intent import Desired, Intent
from holdfast.engine.plan import Operation, Verb
from holdfast.engine.policy import Policy
from holdfast.errors import ConfigError
from holdfast.resources.compile import compile_router
from holdfast.resources.router import load_router

EXAMPLES = sorted(Path(__file__, "../../../docs/examples").resolve().glob("*.yaml"))
UNATTENDED = Policy(unattended=True)


def compiled(path: Path, root: Path) -> Desired:
    return compile_router(load_router(path, root))


def artifacts(desired: Desired) -> Iterator[tuple[Key, Artifact]]:
    for intent in desired.intents:
        if isinstance(intent, Intent):
            yield intent.artifact.key, intent.artifact
        else:
            for key in intent.batch.keys:
                one = intent.batch.artifact(key)
                yield one.key, one


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_half_of_an_example(example: Path, tmp_path: Path) -> None:
    secret = tmp_path / "etc/holdfast/pppoe.secret"
    secret.parent.mkdir(parents=True)
    secret.write_text("secret\n")
    secret.chmod(0o600)
    whole = dict(artifacts(compiled(example, tmp_path)))
    had = set(map(guard.vital_name, whole.values())) - {""}
    assert {"the firewall", "NAT"} & had
    lines = example.read_text().splitlines(keepends=True)
    cut, refused = tmp_path / "router.yaml", 0
    for count in range(1, len(lines)):
        cut.write_text("".join(lines[:count]))
        try:
            desired = compiled(cut, tmp_path)
        except ConfigError:
            continue
        half = dict(artifacts(desired))
        operations = [
            Operation(Verb.KEEP if key in half else Verb.DELETE, one, (), "")
            for key, one in whole.items()
        ]
        has_now = set(map(guard.vital_name, half.values()))
        said = guard.refusal(operations, desired, (), UNATTENDED)
        refused += bool(said)
        assert had <= has_now or said, (count, had - has_now)
    assert refused
