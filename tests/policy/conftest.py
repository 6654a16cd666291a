from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.paths import Paths
from tests.namespace import Namespace
from tests.policy.town import Town, town


@pytest.fixture
def place(netns: Namespace, root: Path) -> Iterator[Town]:
    """The test, as the router, in `netns`."""
    root.mkdir()
    assert not netns.ip("route show")
    with town(Paths(root)) as made:
        yield made
