from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lan.network import Scene, scene
from tests.namespace import Namespace


@pytest.fixture
def router(netns: Namespace, tmp_path: Path) -> Iterator[Scene]:
    with scene(netns, tmp_path) as made:
        yield made
