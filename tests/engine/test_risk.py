"""What an operation may cost those who use the network meanwhile."""

from __future__ import annotations

import pytest

from holdfast.engine import risk
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.plan import Change, Risk, Verb

SERVICE = Artifact(Key("service", "dnsmasq"), {})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((Change("unit", "a", "b"),), Risk.MEDIUM),
        ((Change("reload", "a", "b"),), Risk.LOW),
        # It is down: nobody is served that could be interrupted.
        ((Change("active", False, True),), Risk.LOW),
        ((Change("unit", "a", "b"), Change("active", False, True)), Risk.LOW),
    ],
)
def test_a_service(changes: tuple[Change, ...], expected: Risk) -> None:
    assert risk.assess(Verb.UPDATE, SERVICE, changes)[0] is expected
