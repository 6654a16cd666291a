"""HealthCheck: what goes without saying, and what is said of one that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.resources.compile import compile_router
from holdfast.resources.facts import Facts, Verdict
from tests.resources.routers import load


@pytest.mark.parametrize(
    ("said", "timeout"),
    [
        ({}, 3.0),
        ({"interval": "1s"}, 1.0),  # and not an error about a field that nobody wrote
        ({"interval": "500ms"}, 0.5),
        ({"interval": "1s", "timeout": "200ms"}, 0.2),
        ({"timeout": "10s"}, 10.0),
    ],
)
def test_timeout(tmp_path: Path, said: dict[str, str], timeout: float) -> None:
    router = load(tmp_path, ("HealthCheck", "far", {"target": "192.0.2.1", **said}))
    assert router.resources[0].spec.timeout == timeout


def test_one_that_fails_is_not_well(tmp_path: Path) -> None:
    router = load(tmp_path, ("HealthCheck", "far", {"target": "192.0.2.1"}))
    assert compile_router(router).waiting == ()
    well = Facts(verdicts={"far": Verdict(True, "answered 2 times in a row")})
    assert compile_router(router, well).waiting == ()
    ill = Facts(verdicts={"far": Verdict(False, "no answer from 192.0.2.1")})
    (waiting,) = compile_router(router, ill).waiting
    assert waiting.reason == "next-hop unhealthy: no answer from 192.0.2.1"
    assert not waiting.keeps
