from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger


@pytest.fixture
def paths(root: Path) -> Paths:
    return Paths(root)


@pytest.fixture
def ledger(paths: Paths) -> Iterator[Ledger]:
    """Open for writing; the time is always 1000.5."""
    with Ledger.open(paths, command="holdfast apply", clock=lambda: 1000.5) as opened:
        yield opened
