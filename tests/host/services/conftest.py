"""Stages for services: a root of their own in a network namespace of their own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lanes
from tests.host.services.service_passes import ServicePasses, stage
from tests.namespace import Namespace


@pytest.fixture
def services(netns: Namespace, root: Path) -> Iterator[ServicePasses]:  # noqa: ARG001 (entered)
    with stage(root) as made:
        yield made


@pytest.fixture
def machine() -> Iterator[ServicePasses]:
    """The whole machine, as the systemd lane has one to give away."""
    if lanes.current() != "systemd":
        lanes.covered_elsewhere("systemd", "PID 1 is not systemd here, or not ours to use")
    made = ServicePasses(Path("/"))
    try:
        yield made
    finally:
        made.work()
        shutil.rmtree("/var/lib/holdfast", ignore_errors=True)
