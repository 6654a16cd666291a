"""Overlap of addresses, against the obvious comparison of all pairs."""

from __future__ import annotations

from ipaddress import IPv4Interface

from hypothesis import given
from hypothesis import strategies as st

from holdfast.resources.checks import overlaps
from holdfast.resources.links.static_address import IPv4StaticAddress
from holdfast.resources.resource import Resource
from holdfast.resources.site import site_of


def resource(index: int, interface: str, address: IPv4Interface, allow: bool) -> Resource:
    spec = IPv4StaticAddress(interface=interface, address=address, allow_overlap=allow)
    return Resource("IPv4StaticAddress", f"a{index}", spec, f"r.yaml:{index + 1}:1", index)


ADDRESSES = st.builds(
    lambda value, length: IPv4Interface(((10 << 24) + value, length)),
    st.integers(1, 255).map(lambda value: value << 4),
    st.integers(18, 32),
)
RESOURCES = st.lists(st.tuples(st.sampled_from("abc"), ADDRESSES, st.booleans()), max_size=8)


@given(RESOURCES)
def test_against_all_pairs(specs: list[tuple[str, IPv4Interface, bool]]) -> None:
    resources = [resource(i, *spec) for i, spec in enumerate(specs)]
    found = [
        (where.index, fault.warning)
        for where, fault in overlaps.check(site_of(resources))
        if "overlaps" in fault.message
    ]
    pairs = [
        (one, other)
        for one in resources
        for other in resources
        if one.index < other.index
        and one.spec.interface != other.spec.interface
        and one.spec.address.network.overlaps(other.spec.address.network)
    ]
    strict = [
        pair for pair in pairs if not (pair[0].spec.allow_overlap or pair[1].spec.allow_overlap)
    ]
    assert bool(found) == bool(pairs)
    assert any(not warning for _, warning in found) == bool(strict)
    named = {other.index for _, other in pairs}
    assert {index for index, _ in found} <= named


def test_many_addresses_of_one_prefix() -> None:
    resources = [
        resource(i, f"if{i % 2}", IPv4Interface(((10 << 24) + i + 1, 8)), True) for i in range(2000)
    ]
    assert len(list(overlaps.check(site_of(resources)))) == 1999
