"""The executor that writes down what it is asked, run as executors are."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

import holdfast.plugin
from holdfast.state.actions import FAILED, ROLLED_BACK, SUCCEEDED
from tests.runtime.actions.plans import part, plan
from tests.runtime.actions.scene import Scene

pytestmark = pytest.mark.programs


@pytest.fixture
def recorder(scene: Scene) -> Scene:
    """With copies of the modules, which the user that it runs as can read."""
    package = scene.root / "opt/lib/holdfast"
    shutil.copytree(Path(holdfast.plugin.__file__).parent, package / "plugin")
    (package / "__init__.py").touch()
    for folder in (package, package / "plugin", package.parent):
        folder.chmod(0o755)
    for file in package.rglob("*.py"):
        file.chmod(0o644)
    place = scene.root / "opt/executor"
    place.write_text(
        "#!/usr/bin/python3 -IS\nimport os, sys\n"
        f"sys.path.insert(0, {str(package.parent)!r})\nsys.dont_write_bytecode = True\n"
        "os.environ['RECORD'] = os.environ['LOG']\n"
        "from holdfast.plugin.record import main\nmain()\n"
    )
    return scene


def test_once_for_each_key(recorder: Scene) -> None:
    recorder.parts = [part(plan("k1"), plan("k2"))]
    dry = asyncio.run(recorder.engine.dry_run(recorder.view, "k1"))
    assert (dry.outcome, dry.reason) == (SUCCEEDED, "would assign-secondary-ip 10.0.1.123")
    assert recorder.asked == []
    assert [done.outcome for done in recorder.run()] == [SUCCEEDED, SUCCEEDED]
    done = asyncio.run(recorder.engine.rollback(recorder.view, "k2", "user 0"))
    assert done.outcome == SUCCEEDED, done.reason
    assert recorder.action("k2").state == ROLLED_BACK
    lines = recorder.asked
    assert [(line["key"], line["number"], line["observed"]) for line in lines] == [
        ("k1", 1, {}),
        ("k2", 2, {}),
        ("k2:undo", 3, {"number": 2}),
    ]
    # Asked again with a key that it knows, it says what it said.
    with recorder.ledger() as ledger:
        found = ledger.action("k1")
        assert found is not None
        ledger.write_actions([], ["k1"])
    (again,) = recorder.run()
    assert again.action.result == found.result
    assert len(recorder.asked) == 3


def test_a_line_that_was_cut_short_does_not_count(recorder: Scene) -> None:
    recorder.parts = [part(plan("k1"))]
    recorder.run()
    whole = recorder.log.read_text()
    for before, torn in ((whole, whole[:20].replace("k1", "k2")), ("", whole[:-1])):
        recorder.log.write_text(before + torn)
        recorder.parts = [part(plan("k2"))]
        with recorder.ledger() as ledger:
            ledger.write_actions([], ["k2"])
        (done,) = recorder.run()
        assert done.outcome == SUCCEEDED, done.reason
        assert [line["key"] for line in recorder.asked] == (["k1", "k2"] if before else ["k2"])


def test_it_says_what_it_lacks(recorder: Scene) -> None:
    recorder.log.unlink()
    recorder.parts = [part(plan())]
    (done,) = recorder.run()
    assert done.outcome == FAILED
    assert done.reason == f"{recorder.log}: No such file or directory"
    assert json.dumps(dict(recorder.action().result)).count("unknown") == 0
