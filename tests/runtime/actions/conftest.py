from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.actions.scene import Scene


@pytest.fixture
def scene(open_folder: Path) -> Scene:
    made = Scene(open_folder / "root")
    made.prepare()
    return made
