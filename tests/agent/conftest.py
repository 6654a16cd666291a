from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agent import startup
from tests.agent.street import Street, street
from tests.namespace import Namespace


@pytest.fixture
def files_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as they are written, within this process."""
    monkeypatch.setattr(startup, "QUIET_S", 0.0)


@pytest.fixture
def place(netns: Namespace, root: Path) -> Iterator[Street]:
    """The test, as the router, in `netns`."""
    root.mkdir()
    assert not netns.ip("route show")
    with street() as made:
        yield made
