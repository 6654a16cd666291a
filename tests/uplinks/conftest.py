from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.paths import Paths
from tests.namespace import Namespace
from tests.uplinks.uplink_network import UplinkNetwork, uplink_network


@pytest.fixture
def place(netns: Namespace, root: Path) -> Iterator[UplinkNetwork]:
    """The test, as the router, in `netns`."""
    root.mkdir()
    assert not netns.ip("route show")
    with uplink_network(Paths(root)) as made:
        yield made
