"""BFD and OSPF in real daemons of both versions: every form becomes every other, and goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.kinds.bfd import Timing, bfd_peer, bfd_profile
from holdfast.engine.kinds.ospf import OspfInterface, ospf_instance, ospf_interface
from holdfast.frr.interior import BfdDriver, OspfDriver
from tests.frr.drive import Drive
from tests.frr.ground import Frr, Ground

_FAST = Timing(detect_multiplier=5, receive_interval=100, transmit_interval=150, passive_mode=True)


@pytest.fixture
def instance(frr: Ground) -> Frr:
    frr.elsewhere().veth("core", "far", ("192.0.2.1/24", "192.0.2.2/24"))
    return frr.frr("bfdd", "ospfd", "ospf6d")


@pytest.fixture
def bfd(instance: Frr) -> Iterator[Drive]:
    driver = BfdDriver(instance.folder, settles=0.0)
    yield Drive(driver)
    driver.close()


@pytest.fixture
def ospf(instance: Frr) -> Iterator[Drive]:
    driver = OspfDriver(instance.folder, settles=0.0)
    yield Drive(driver)
    driver.close()


def test_bfd_profiles_and_peers(bfd: Drive, instance: Frr) -> None:
    profile, slow = bfd_profile("HF-fast", _FAST), bfd_profile("HF-fast", Timing())
    forms = [
        bfd_peer("192.0.2.2"),
        bfd_peer("192.0.2.2", profile="HF-fast"),
        bfd_peer("192.0.2.2", timing=_FAST),
        bfd_peer("192.0.2.2", shutdown=True),
    ]
    for before in forms:
        for after in forms:
            bfd.settle(profile, before)
            bfd.settle(slow, after)
    bfd.settle()
    assert "192.0.2.2" not in instance.vtysh("show running-config")


@pytest.mark.parametrize("version", [2, 3])
def test_ospf_interfaces(ospf: Drive, instance: Frr, version: int) -> None:
    router = ospf_instance(version, router_id="192.0.2.1")
    forms = [
        OspfInterface("0.0.0.0"),  # noqa: S104 (an area)
        OspfInterface("0.0.0.1", cost=7, hello_interval=3, dead_interval=12, priority=0),
        OspfInterface("1", passive=True, network="point-to-point", mtu_ignore=True),
    ]
    for before in forms:
        for after in forms:
            ospf.settle(router, ospf_interface(version, "core", before))
            ospf.settle(router, ospf_interface(version, "core", after))
    ospf.settle()
    assert "ospf" not in instance.vtysh("show running-config")


def test_a_daemon_that_does_not_answer_is_unknown(bfd: Drive, instance: Frr) -> None:
    bfd.settle(profile := bfd_profile("HF-fast", _FAST))
    instance.kill("bfdd")
    observed, planned = bfd.look(profile)
    assert "is FRR running" in observed.unknown[profile.key]
    assert not planned.changes
