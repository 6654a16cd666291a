from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.street import Street, street
from tests.namespace import Namespace


@pytest.fixture
def place(netns: Namespace, root: Path) -> Iterator[Street]:
    """The test, as the router, in `netns`."""
    root.mkdir()
    assert not netns.ip("route show")
    with street() as made:
        yield made
