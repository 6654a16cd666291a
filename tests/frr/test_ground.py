"""The daemons start side by side, in namespaces of their own, and leave nothing behind."""

from __future__ import annotations

from tests.frr.ground import Ground, bird_bgp, bird_config, wait_until

ALL = ("zebra", "bgpd", "bfdd", "ospfd", "ospf6d", "staticd")


def test_every_daemon_answers_its_own_vtysh(frr: Ground) -> None:
    ours = frr.frr(*ALL)
    theirs = frr.frr("bgpd", where=frr.elsewhere())
    ours.configure("router bgp 65001\n")
    assert frr.version in ours.vtysh("show version")
    assert "router bgp 65001" in ours.vtysh("show running-config")
    assert "router bgp" not in theirs.vtysh("show running-config")


def test_bird_learns_a_network(frr: Ground) -> None:
    beside = frr.elsewhere()
    beside.veth("core", "far", ("192.0.2.1/24", "192.0.2.2/24"))
    local = "local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001;"
    bird = frr.bird(beside, bird_config([bird_bgp("upper", local)]))
    ours = frr.frr("bgpd")
    ours.configure(
        "router bgp 65001\n no bgp ebgp-requires-policy\n no bgp network import-check\n"
        " neighbor 192.0.2.2 remote-as 65002\n"
        " address-family ipv4 unicast\n  network 198.51.100.0/24\n exit-address-family\nexit\n"
    )
    wait_until("BIRD has learnt it", lambda: bird.count("upper") == 1)
