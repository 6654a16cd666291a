"""NTPClient by what a lease says."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest

from holdfast.engine.intent import Desired
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import GONE, Facts, Lease
from holdfast.resources.router import load_router

_CASE = Path(__file__).parent / "cases" / "ntp-dhcp" / "router.yaml"
_GIVEN = Lease(ntp=(ip_address("192.0.2.5"), ip_address("192.0.2.6")))


def _compiled(facts: Facts) -> Desired:
    return compile_router(load_router(_CASE), facts)


def test_servers_come_from_the_lease_of_the_link() -> None:
    desired = _compiled(Facts(leases4={"eth0": _GIVEN}))
    (payload,) = [
        intent.artifact.payload
        for intent in desired.intents
        if hasattr(intent, "artifact") and intent.artifact.key.kind == "dropin"
    ]
    assert b"NTP=192.0.2.5 192.0.2.6\n" in payload
    assert desired.waiting == ()


@pytest.mark.parametrize(
    ("facts", "reason", "keeps"),
    [
        (Facts(), "waits for a DHCP lease on wan", True),
        (Facts(leases4={"eth1": _GIVEN}), "waits for a DHCP lease on wan", True),
        (Facts(leases4={"eth0": GONE}), "waits for a DHCP lease on wan", False),
        (Facts(leases4={"eth0": Lease()}), "waits for time servers in a lease on wan", False),
    ],
)
def test_without_them_it_waits(facts: Facts, reason: str, keeps: bool) -> None:
    (waiting,) = _compiled(facts).waiting
    assert (waiting.reason, waiting.keeps) == (reason, keeps)
