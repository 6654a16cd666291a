"""A router with FRR of both releases of Debian, and BIRD as its neighbour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Holdfast
from tests.frr.conftest import frr
from tests.frr.ground import Ground
from tests.routing.scene import Scene

__all__ = ["frr", "scene"]


@pytest.fixture
def scene(frr: Ground, tmp_path: Path, root: Path) -> Scene:
    folder = tmp_path / "work"
    folder.mkdir()
    return Scene(frr, Holdfast(folder, root))
