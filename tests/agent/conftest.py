from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.two_providers import TwoProviders, two_providers
from tests.namespace import Namespace


@pytest.fixture
def place(netns: Namespace, root: Path) -> Iterator[TwoProviders]:
    """The test, as the router, in `netns`."""
    root.mkdir()
    assert not netns.ip("route show")
    with two_providers() as made:
        yield made
