"""A route from an IPv6 address that the same pass has made, and the kernel still checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.paths import Paths
from tests.namespace import Namespace
from tests.safety.router_scene import Scene

BASE = {
    "Interface/lan": "{ifname: lan}",
    "IPv6StaticAddress/a": "{interface: lan, address: 'fd00::1/64'}",
}
RESOURCES = BASE | {
    "IPv6Route/one": "{destination: 'fd01::/48', gateway: 'fd00::fe', preferredSource: 'fd00::1'}",
}


def test_one_pass_makes_both(netns: Namespace, root: Path) -> None:
    netns.veth("lan", "far")
    report = Scene(Paths(root)).apply(RESOURCES)
    assert report.converged and not report.failures
    (shown,) = netns.ip_json("-6 route show fd01::/48")
    assert (shown["protocol"], shown["prefsrc"]) == ("72", "fd00::1")


def test_a_check_that_does_not_end_is_no_reason_to_wait_for_ever(
    netns: Namespace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netns.run("sysctl", "-qw", "net.ipv6.conf.default.dad_transmits=1000")
    netns.veth("lan", "far")
    spec = "{{destination: 'fd0{0}::/48', gateway: 'fd00::f{0}', preferredSource: 'fd00::1'}}"
    many = {f"IPv6Route/r{number}": spec.format(number) for number in range(1, 6)}
    slept = 0.0

    def sleep(seconds: float) -> None:
        nonlocal slept
        slept += seconds

    monkeypatch.setattr("holdfast.host.netlink.addresses.tentative.time.sleep", sleep)
    report = Scene(Paths(root)).apply(BASE | many)
    failed = {str(failure.key) for _, failure in report.failures}
    assert failed == {f"route fd0{number}::/48" for number in range(1, 6)}
    assert all("Invalid source address" in failure.error for _, failure in report.failures)
    assert 0 < slept < 4  # once, not for each route and round
