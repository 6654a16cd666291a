"""A route from an IPv6 address that the same pass has made, and the kernel still checks."""

from __future__ import annotations

from pathlib import Path

from holdfast.paths import Paths
from tests.namespace import Namespace
from tests.safety.router import Scene

RESOURCES = {
    "Interface/lan": "{ifname: lan}",
    "IPv6StaticAddress/a": "{interface: lan, address: 'fd00::1/64'}",
    "IPv6Route/one": "{destination: 'fd01::/48', gateway: 'fd00::fe', preferredSource: 'fd00::1'}",
}


def test_one_pass_makes_both(netns: Namespace, root: Path) -> None:
    netns.veth("lan", "far")
    report = Scene(Paths(root)).apply(RESOURCES)
    assert report.converged and not report.failures
    (shown,) = netns.ip_json("-6 route show fd01::/48")
    assert (shown["protocol"], shown["prefsrc"]) == ("72", "fd00::1")


def test_a_check_that_does_not_end_is_no_reason_to_wait_for_ever(
    netns: Namespace, root: Path
) -> None:
    netns.run("sysctl", "-qw", "net.ipv6.conf.default.dad_transmits=1000")
    netns.veth("lan", "far")
    report = Scene(Paths(root)).apply(RESOURCES)
    assert {str(failure.key) for _, failure in report.failures} == {"route fd01::/48"}
    assert all("Invalid source address" in failure.error for _, failure in report.failures)
