"""The model of `write terminal`, from text alone."""

from __future__ import annotations

import time

import pytest

from holdfast.frr.networks import see_networks
from holdfast.frr.running_config import Neighbour, networks, parse

_TEXT = """\
frr version 10.3
frr defaults traditional
!
hostname somewhere
! "log file /tmp/x.log" enabled by "--log" startup option
!
route-map HF-0123456789abcdef permit 10
 set metric 0
 set as-path prepend 65001
exit
!
router bgp 65001
 bgp router-id 192.0.2.1
 neighbor G peer-group
 neighbor 192.0.2.2 remote-as 65002
 neighbor 192.0.2.2 description router bgp 9 ! exit
 bgp listen range 198.51.100.0/24 peer-group G
 !
 address-family ipv4 unicast
  network 198.51.100.0/24 route-map HF-0123456789abcdef
  network 198.51.101.0/24
  aggregate-address 198.51.0.0/16 as-set summary-only
  redistribute connected
  no neighbor 192.0.2.2 activate
 exit-address-family
 !
 address-family l2vpn evpn
  advertise-all-vni
 exit-address-family
exit
!
router bgp 65001 vrf red
exit
!
ip prefix-list HF-in-0123456789abcdef-1 seq 5 permit 10.0.0.0/8
!
line vty
 exec-timeout 0 0

exit
!
!
"""


def test_what_is_known_and_what_is_kept() -> None:
    config = parse(_TEXT)
    default = config.bgp["default"]
    assert (default.local_as, default.header) == ("65001", "router bgp 65001")
    assert config.bgp["red"].header == "router bgp 65001 vrf red"
    assert default.lines == ("bgp router-id 192.0.2.1",)
    assert default.neighbours == {
        "G": Neighbour(("peer-group",), {}, ("198.51.100.0/24",)),
        "192.0.2.2": Neighbour(
            ("remote-as 65002", "description router bgp 9 ! exit"),
            {"ipv4 unicast": ("no activate",)},
        ),
    }
    family = default.families["ipv4 unicast"]
    assert list(networks(family)) == [
        ("198.51.100.0/24", "route-map HF-0123456789abcdef"),
        ("198.51.101.0/24", ""),
    ]
    assert family.aggregates == {"198.51.0.0/16": "as-set summary-only"}
    assert family.others == ("redistribute connected",)
    assert default.families["l2vpn evpn"].others == ("advertise-all-vni",)
    assert config.route_maps == {
        "HF-0123456789abcdef": (("permit 10", ("set as-path prepend 65001", "set metric 0")),)
    }
    assert list(config.lists) == ["HF-in-0123456789abcdef-1"]
    assert ("line vty", (" exec-timeout 0 0",)) in config.blocks
    assert ("hostname somewhere", ()) in config.blocks


@pytest.mark.parametrize("text", ["", "!\n", "router bgp\n", " indented\n", "router bgp 1\n x"])
def test_what_makes_no_sense_makes_no_harm(text: str) -> None:
    parse(text)


@pytest.mark.long
def test_a_large_one_takes_little_time() -> None:
    peers = [
        f" neighbor 192.0.{n >> 8}.{n & 255} {said}\n"
        for n in range(200)
        for said in ("remote-as 65002", "description a peer", "timers 3 9", "password secret")
    ]
    told = [f"  network 10.{n >> 8}.{n & 255}.0/24 route-map HF-0123456789abcdef\n"
            for n in range(10_000)]  # fmt: skip
    text = (
        "".join(["router bgp 65001\n", *peers, " address-family ipv4 unicast\n", *told])
        + " exit-address-family\nexit\n!\n"
    )
    taken = []
    for _ in range(5):
        started = time.process_time()
        seen = see_networks(parse(text), {})
        taken.append(time.process_time() - started)
    assert len(seen.own) == 10_000
    assert min(taken) <= 0.030, "s of processor time"
