"""Leases of real servers, by a real dhcpcd, as facts."""

from __future__ import annotations

import signal
import subprocess
import time
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, IPv6Network
from subprocess import PIPE

from holdfast.host.facts import clock
from holdfast.resources.facts import GONE, Lease
from tests.namespace import Namespace
from tests.wan.conftest import Router, tell
from tests.wan.isp import Provider, wait_for

DHCP4 = {"IPv4DHCPAddress/wan": "{interface: wan}"}
DHCP6 = {"IPv6DHCPAddress/wan": "{interface: wan}"}
DELEGATED = {"IPv6PrefixDelegation/wan": "{interface: wan, prefixLength: 60}"}


def test_an_ipv4_lease(isp: Provider, router: Router) -> None:
    isp.serve4()
    with router.clients(DHCP4):
        wait_for(lambda: router.facts().leases4, "an IPv4 lease")
        facts = router.facts()
        assert facts.leases4 == {
            "wan0": Lease(
                (IPv4Interface("203.0.113.100/24"),),
                IPv4Address("203.0.113.1"),
                (IPv4Address("203.0.113.53"), IPv4Address("203.0.113.54")),
                (IPv4Address("203.0.113.123"),),
                "isp.example",
            )
        }
        assert facts.leases6 == {}
        wait_for(lambda: router.facts().gateways, "a default route")
        assert router.facts().gateways == {("wan0", 4): IPv4Address("203.0.113.1")}
        assert IPv4Interface("203.0.113.100/24") in router.facts().addresses["wan0"]
    # Stopped: the client has taken its address away, and the lease is not known any more.
    assert {one.version for one in router.facts().addresses["wan0"]} == {6}
    assert router.facts().leases4 == {}
    assert router.facts().gateways == {}


def test_address_and_prefix_in_one_lease(isp: Provider, router: Router) -> None:
    isp.serve6()
    isp.advertise()
    with router.clients({**DHCP6, **DELEGATED}):
        wait_for(lambda: router.facts().delegations, "a delegated prefix")
        facts = router.facts()
        assert facts.delegations == {"wan0": (IPv6Network("2001:db8:1000::/60"),)}
        assert facts.leases6 == {
            "wan0": Lease(
                (IPv6Interface("2001:db8:ffff::100/128"),),
                None,
                (IPv6Address("2001:db8:ffff::53"),),
                (IPv6Address("2001:db8:ffff::123"),),
                "isp.example",
            )
        }
        wait_for(lambda: ("wan0", 6) in router.facts().gateways, "a default route")
        assert router.facts().gateways["wan0", 6].is_link_local
    # Stopped: the address is gone with the client, while the prefix is ours until it runs out.
    assert router.facts().leases6 == {}
    assert router.facts().delegations == {"wan0": (IPv6Network("2001:db8:1000::/60"),)}


def test_a_lease_that_runs_out_is_gone(isp: Provider, router: Router) -> None:
    isp.serve4(lifetime=9)
    isp.serve6(lifetime=9)
    with router.clients({**DHCP4, **DELEGATED}):
        wait_for(lambda: router.facts().leases4 and router.facts().delegations, "both leases")
        isp.stop("kea-dhcp4")
        isp.stop("kea-dhcp6")
        wait_for(lambda: router.facts().leases4 == {"wan0": GONE}, "the end of the IPv4 lease")
        wait_for(lambda: router.facts().delegations == {"wan0": GONE}, "the end of the prefix")
        assert router.facts().leases6 == {"wan0": GONE}


def test_a_lease_is_renewed(isp: Provider, router: Router) -> None:
    isp.serve4(lifetime=10)
    isp.serve6(lifetime=10)
    with router.clients({**DHCP4, **DELEGATED}):
        wait_for(lambda: router.facts().leases4 and router.facts().delegations, "both leases")
        began = clock.uptime()
        while clock.uptime() < began + 12:
            facts = router.facts()
            assert isinstance(facts.leases4["wan0"], Lease)
            assert facts.delegations["wan0"] == (IPv6Network("2001:db8:1000::/60"),)
            time.sleep(0.2)


def test_a_pulled_cable(isp: Provider, router: Router) -> None:
    isp.serve4()
    isp.serve6()
    with router.clients({**DHCP4, **DHCP6, **DELEGATED}):
        wait_for(lambda: router.facts().leases4 and router.facts().leases6, "both leases")
        isp.run("ip", "link", "set", "isp0", "down")
        wait_for(lambda: router.facts().leases4 == {"wan0": GONE}, "the end of the IPv4 lease")
        wait_for(lambda: router.facts().leases6 == {"wan0": GONE}, "the end of the address")
        # The networks inside keep their addresses.
        assert router.facts().delegations == {"wan0": (IPv6Network("2001:db8:1000::/60"),)}
        isp.run("ip", "link", "set", "isp0", "up")
        wait_for(lambda: isinstance(router.facts().leases4.get("wan0"), Lease), "IPv4 again")


def test_a_released_prefix_is_gone(isp: Provider, router: Router) -> None:
    isp.serve6()
    with router.clients(DELEGATED) as (client,):
        wait_for(lambda: router.facts().delegations, "a prefix")
        # SIGALRM is what `dhcpcd --release` sends.
        given_back = {"wan0": GONE}
        tell(client, signal.SIGALRM, lambda: router.facts().delegations == given_back, "release")


def test_asking_for_more_does_not_cut_ipv4(isp: Provider, router: Router) -> None:
    isp.serve4()
    isp.serve6()
    with router.clients({**DHCP4, **DHCP6}) as (_four, six):
        wait_for(lambda: router.facts().leases4 and router.facts().leases6, "both leases")
        wait_for(lambda: ("wan0", 4) in router.facts().gateways, "a default route")
        watch = subprocess.Popen(["ip", "-4", "monitor", "address", "route"], stdout=PIPE)
        router.write_files({**DHCP4, **DHCP6, **DELEGATED})

        def delegated() -> bool:
            return isinstance(router.facts().delegations.get("wan0"), tuple)

        tell(six, signal.SIGHUP, delegated, "a prefix")
        watch.terminate()
        assert watch.communicate()[0] == b""


def test_the_duid_of_the_ntt_profiles(isp: Provider, router: Router, netns: Namespace) -> None:
    isp.serve6()
    ntt = {"IPv6PrefixDelegation/wan": "{interface: wan, profile: ntt-hgw-lan-pd}"}
    mac = netns.ip_json("link show wan0")[0]["address"]
    with router.clients(ntt):
        wait_for(lambda: router.facts().delegations, "a prefix")
        assert f"DUID 00:03:00:01:{mac}" in router.log()
