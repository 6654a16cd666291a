"""What an owner may declare, and who holds what."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from random import Random

import pytest

from holdfast.resources.routing.owner_policy import (
    Claimed,
    Held,
    Overlap,
    OwnerPolicy,
    PrefixHolders,
    PrefixType,
    Ranges,
    decide,
    refused_as,
    refused_count,
    refused_instance,
    refused_interface,
    refused_peer,
    refused_prefix,
)
from holdfast.resources.spec.values import Network

_HOST, _SUBNET, _ANY = PrefixType


@pytest.mark.parametrize(
    ("kind", "prefix", "allowed"),
    [
        (_HOST, "192.0.2.1/32", True),
        (_HOST, "192.0.2.0/31", False),
        (_HOST, "2001:db8::1/128", True),
        (_HOST, "2001:db8::/127", False),
        (_SUBNET, "10.0.0.0/8", True),
        (_SUBNET, "10.0.0.0/7", False),
        (_SUBNET, "0.0.0.0/0", False),
        (_SUBNET, "10.0.0.0/28", True),
        (_SUBNET, "10.0.0.0/29", False),
        (_SUBNET, "10.0.0.1/32", False),
        (_SUBNET, "2001:db8::/127", True),
        (_SUBNET, "2001:db8::/32", True),
        (_SUBNET, "2001:db8::1/128", False),
        (_ANY, "0.0.0.0/0", True),
        (_ANY, "10.0.0.1/32", True),
        (_ANY, "::/0", True),
    ],
)
def test_types(kind: PrefixType, prefix: str, allowed: bool) -> None:
    policy = OwnerPolicy(prefix_type=kind)
    assert (refused_prefix(policy, ip_network(prefix, strict=False)) == "") is allowed


@pytest.mark.parametrize(
    ("cidrs", "prefix", "allowed"),
    [
        (None, "192.0.2.0/24", True),
        ((), "192.0.2.0/24", False),
        (("192.0.2.0/24",), "192.0.2.0/24", True),
        (("192.0.2.0/24",), "192.0.2.128/25", True),
        (("192.0.2.0/24",), "192.0.2.0/23", False),
        (("192.0.2.0/24",), "192.0.3.0/24", False),
        (("192.0.2.0/24", "2001:db8::/32"), "2001:db8:1::/48", True),
        (("0.0.0.0/0",), "::/0", False),
        (("0.0.0.0/0",), "::ffff:192.0.2.0/120", False),
        (("::/0",), "::ffff:192.0.2.0/120", True),
    ],
)
def test_networks(cidrs: tuple[str, ...] | None, prefix: str, allowed: bool) -> None:
    within = None if cidrs is None else tuple(map(ip_network, cidrs))
    policy = OwnerPolicy(PrefixType.ANY, within)
    assert (refused_prefix(policy, ip_network(prefix)) == "") is allowed


def test_peers_as_numbers_interfaces_and_the_instance() -> None:
    policy = OwnerPolicy(
        peers=(ip_network("192.0.2.0/24"),),
        as_numbers=Ranges(((65000, 65010), (4200000000, 4200000000))),
        interfaces=("eth0", "br-*"),
        max_prefixes=2,
    )
    assert refused_peer(policy, ip_address("192.0.2.1"), 65005) == ""
    assert "192.0.3.1" in refused_peer(policy, ip_address("192.0.3.1"), 65005)
    assert "2001:db8::1" in refused_peer(policy, ip_address("2001:db8::1"), 65005)
    assert refused_peer(policy, ip_address("192.0.2.1"), 65011) == (
        "AS 65011 is not among those allowed: 65000-65010, 4200000000"
    )
    assert "not said by number" in refused_as(policy, None)
    assert refused_interface(policy, "br-a") == refused_interface(policy, "eth0") == ""
    assert "eth01" in refused_interface(policy, "eth01")
    assert refused_count(policy, 2) == ""
    assert "3 prefixes" in refused_count(policy, 3)
    assert refused_instance(policy)
    everything = OwnerPolicy(instance=True)
    assert not refused_instance(everything)
    assert not refused_peer(everything, ip_address("203.0.113.1"), None)
    assert not refused_interface(everything, "any")
    assert not refused_count(everything, 10**6)


def _holders(**owners: str) -> PrefixHolders:
    found = PrefixHolders()
    for owner, prefixes in owners.items():
        for prefix in prefixes.split():
            found.add(ip_network(prefix), owner)
    return found


@pytest.mark.parametrize(
    ("prefix", "owner", "held"),
    [
        ("10.0.0.0/24", "b", Held("10.0.0.0/24", "a", exact=True)),
        ("10.0.0.0/24", "a", None),
        ("10.0.0.5/32", "b", Held("10.0.0.0/24", "a", exact=False)),
        ("10.0.0.0/16", "b", Held("a prefix within 10.0.0.0/16", "a", exact=False)),
        ("10.0.0.0/25", "a", None),
        ("10.0.1.0/24", "b", None),
        ("::/0", "b", Held("a prefix within ::/0", "c", exact=False)),
        ("2001:db9::/32", "b", None),
        ("2001:db8::/48", "b", Held("2001:db8::/32", "c", exact=False)),
    ],
)
def test_who_is_in_the_way(prefix: str, owner: str, held: Held | None) -> None:
    holders = _holders(a="10.0.0.0/24", c="2001:db8::/32")
    assert holders.in_the_way(ip_network(prefix), owner, Overlap.REFUSED) == held
    exact = held if held is not None and held.exact else None
    assert holders.in_the_way(ip_network(prefix), owner, Overlap.ALLOWED) == exact


def test_what_is_given_up_is_in_nobodys_way() -> None:
    holders = _holders(a="10.0.0.0/24 10.0.0.0/25", b="10.1.0.0/16")
    holders.remove(ip_network("10.0.0.0/24"))
    holders.remove(ip_network("10.9.0.0/24"))
    assert holders.owner(ip_network("10.0.0.0/25")) == "a"
    held = holders.in_the_way(ip_network("10.0.0.0/24"), "b", Overlap.REFUSED)
    assert held == Held("a prefix within 10.0.0.0/24", "a", exact=False)
    holders.remove(ip_network("10.0.0.0/25"))
    assert holders.in_the_way(ip_network("10.0.0.0/24"), "b", Overlap.REFUSED) is None
    holders.add(ip_network("10.1.0.0/16"), "c")
    assert holders.in_the_way(ip_network("10.1.0.0/16"), "c", Overlap.REFUSED) is None


def test_against_all_pairs() -> None:
    chance = Random("overlaps")  # noqa: S311 - the same again is what is wanted
    for _ in range(50):
        holders = PrefixHolders()
        held: dict[Network, str] = {}
        for _ in range(20):
            length = chance.randrange(25, 33)
            number = chance.randrange(256) >> (32 - length) << (32 - length)
            network = ip_network((0x0A000000 | number, length))
            owner = chance.choice("ab")
            if chance.random() < 0.3:
                holders.remove(network)
                held.pop(network, None)
            else:
                holders.add(network, owner)
                held[network] = owner
            others = [one for one, by in held.items() if by != "a" and one.overlaps(network)]
            assert (holders.in_the_way(network, "a", Overlap.REFUSED) is None) == (not others)


def test_who_overrides_wins_and_gives_back() -> None:
    first = Claimed(("peer", "192.0.2.1"), "peer 192.0.2.1", "first", 1)
    second = Claimed(("peer", "192.0.2.1"), "peer 192.0.2.1", "second", 2)
    admin = Claimed(("peer", "192.0.2.1"), "peer 192.0.2.1", "admin", 3)
    other = Claimed(("peer", "192.0.2.2"), "peer 192.0.2.2", "second", 4)

    def overrides(owner: str) -> bool:
        return owner == "admin"

    found = decide([second, first, admin, other], overrides)
    assert found[first.key].winner is admin
    assert found[first.key].losers == (first, second)
    assert found[other.key].winner is other
    assert found[other.key].losers == ()
    back = decide([second, first, other], overrides)
    assert back[first.key].winner is first
