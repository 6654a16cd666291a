"""What resources make of a delegated prefix."""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.intent import BulkIntent, Desired, Intent, Waiting
from holdfast.engine.kinds import route as routes
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import GONE, NOTHING_KNOWN, Facts, Gone, Lease
from holdfast.resources.router import load_router
from holdfast.resources.wan.delegated_address import Missing, within
from tests.safety.router_scene import document

RESOURCES = {
    "Interface/wan": "{ifname: wan0, managed: false}",
    "Interface/lan": "{ifname: lan0, managed: false}",
    "IPv4DHCPAddress/wan": "{interface: wan, required: true}",
    "IPv6DHCPAddress/wan": "{interface: wan}",
    "IPv6PrefixDelegation/wan": "{interface: wan, required: true}",
    "IPv6DelegatedAddress/lan": "{prefixDelegation: wan, interface: lan, subnetID: 10,"
    " addressSuffix: '::1'}",
}


def compiled(tmp_path: Path, facts: Facts, text: str = "") -> Desired:
    path = tmp_path / "router.yaml"
    path.write_text(text or document(RESOURCES))
    return compile_router(load_router(path), facts)


def prefixes(*texts: str) -> Facts:
    return Facts(delegations={"wan0": tuple(map(IPv6Network, texts))})


def waits(desired: Desired) -> dict[str, Waiting]:
    return {one.owner: one for one in desired.waiting}


def addresses(desired: Desired) -> list[str]:
    return [
        intent.artifact.key.name
        for intent in desired.intents
        if isinstance(intent, Intent) and intent.artifact.key.kind == "address"
    ]


def unreachable(desired: Desired) -> list[str]:
    return [
        routes.destination(key)
        for intent in desired.intents
        if isinstance(intent, BulkIntent)
        for key in intent.batch.keys
    ]


def test_of_several_prefixes_the_first_has_the_address(tmp_path: Path) -> None:
    desired = compiled(tmp_path, prefixes("2001:db8:1000::/56", "2001:db8:2000::/64"))
    assert addresses(desired) == ["2001:db8:1000:a::1 dev lan0"]
    assert unreachable(desired) == ["2001:db8:1000::/57", "2001:db8:1000:80::/57"]
    assert "IPv6PrefixDelegation/wan" not in waits(desired)


def test_subnets_are_hexadecimal_in_files_of_the_alias(tmp_path: Path) -> None:
    text = document(RESOURCES).replace("holdfast.dev", "routerd.net")
    desired = compiled(tmp_path, prefixes("2001:db8:1000::/56"), text)
    assert addresses(desired) == ["2001:db8:1000:10::1 dev lan0"]


@pytest.mark.parametrize(("known", "keeps"), [(None, True), (GONE, False)])
def test_without_a_prefix(tmp_path: Path, known: Gone | None, keeps: bool) -> None:
    facts = NOTHING_KNOWN if known is None else Facts(delegations={"wan0": known})
    found = waits(compiled(tmp_path, facts))
    for owner in ("IPv6PrefixDelegation/wan", "IPv6DelegatedAddress/lan"):
        assert found[owner].keeps is keeps
        assert found[owner].reason.startswith("waits for a delegated prefix on wan0")
    delegation = found["IPv6PrefixDelegation/wan"]
    assert delegation.required
    assert delegation.groups == {routes.in_table(routes.MAIN_TABLE)}


def test_leases_end_the_waiting(tmp_path: Path) -> None:
    found = waits(compiled(tmp_path, NOTHING_KNOWN))
    assert found["IPv4DHCPAddress/wan"].required
    assert not found["IPv6DHCPAddress/wan"].required
    facts = Facts(
        leases4={"wan0": Lease((IPv4Interface("192.0.2.7/24"),))},
        leases6={"wan0": Lease((IPv6Interface("2001:db8::7/128"),))},
    )
    found = waits(compiled(tmp_path, facts))
    assert "IPv4DHCPAddress/wan" not in found
    assert "IPv6DHCPAddress/wan" not in found


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [
        ("2001:db8::/61", "subnet 0xa is outside of the delegated prefix 2001:db8::/61, which has"
         " subnets 0 to 0x7"),
        ("2001:db8::/64", "subnet 0xa is outside of the delegated prefix 2001:db8::/64, which has"
         " subnet 0 only"),
        ("2001:db8::/72", "the delegated prefix 2001:db8::/72 is smaller than a /64"),
    ],
)  # fmt: skip
def test_a_prefix_without_this_subnet(tmp_path: Path, prefix: str, reason: str) -> None:
    desired = compiled(tmp_path, prefixes(prefix))
    waiting = waits(desired)["IPv6DelegatedAddress/lan"]
    assert (waiting.reason, waiting.keeps) == (reason, False)
    assert addresses(desired) == []


@given(
    st.integers(0, 2**128 - 1),
    st.integers(16, 64),
    st.integers(0, 2**49 - 1),
    st.integers(1, 2**64 - 1),
)
def test_the_address_is_in_its_subnet(number: int, length: int, subnet: int, suffix: int) -> None:
    prefix = IPv6Network((number, length), strict=False)
    found = within(prefix, subnet, IPv6Address(suffix))
    if subnet >= 2 ** (64 - length):
        assert isinstance(found, Missing)
        return
    assert isinstance(found, IPv6Interface)
    assert found.ip in prefix
    assert int(found.ip) & 2**64 - 1 == suffix
    assert (int(found.ip) - int(prefix.network_address)) >> 64 == subnet


def test_the_hardware_address_of_the_link_makes_the_duid(tmp_path: Path) -> None:
    text = document(
        {**RESOURCES, "IPv6PrefixDelegation/wan": "{interface: wan, profile: ntt-hgw-lan-pd}"}
    ).replace("holdfast.dev", "routerd.net")
    found = waits(compiled(tmp_path, NOTHING_KNOWN, text))
    # Asking with another DUID first could cost the lease: the client is not even started.
    assert found["IPv6DHCPAddress/wan"].reason.startswith("waits for the hardware address of wan0")
    macs = {"wan0": "02:00:5e:10:00:07"}
    desired = compiled(tmp_path, Facts(macs=macs), text)
    assert "IPv6DHCPAddress/wan" in waits(desired)
    (config,) = {
        intent.artifact.payload
        for intent in desired.intents
        if isinstance(intent, Intent) and intent.artifact.key.name.endswith("dhcpcd6-wan0.conf")
    }
    assert b"\nduid 00:03:00:01:02:00:5e:10:00:07\n" in config
    assert b"ia_pd 2/::/60 -\n" in config
    assert b"rapid_commit" not in config
    # Nor is an address asked for: one that was advertised is as good.
    assert b"ia_na" not in config
    advertised = {"wan0": (IPv6Interface("fe80::7/64"), IPv6Interface("2001:db8::7/64"))}
    facts = Facts(macs=macs, addresses=advertised)
    assert "IPv6DHCPAddress/wan" not in waits(compiled(tmp_path, facts, text))
