"""FRR of both releases of Debian, each test on its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.frr.ground import VERSIONS, Ground, ground, needs_frr
from tests.namespace import Namespace


@pytest.fixture(params=VERSIONS)
def frr(request: pytest.FixtureRequest, netns: Namespace) -> Iterator[Ground]:  # noqa: ARG001
    needs_frr(request.param)
    # Not pytest's folder: a socket's path holds 107 bytes at most.
    with TemporaryDirectory(prefix="hf-frr-") as folder, ground(request.param, Path(folder)) as it:
        Path(folder).chmod(0o755)  # the daemons run as frr
        yield it
