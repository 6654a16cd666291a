"""A home for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.firewall import home_network as homes


@pytest.fixture
def home() -> Iterator[homes.HomeNetwork]:
    with homes.home() as made:
        yield made
