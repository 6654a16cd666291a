"""A home for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.firewall import home as homes


@pytest.fixture
def home() -> Iterator[homes.Home]:
    with homes.home() as made:
        yield made
