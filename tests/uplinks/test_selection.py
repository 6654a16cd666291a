"""Selections of any size, as the kernel takes them."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from holdfast.resources.spec.values import Network
from holdfast.resources.uplinks.selection import Selection
from tests.namespace import Namespace


def _prefixes(family: int, count: int) -> tuple[Network, ...]:
    text = "2001:db8:{:x}::/47" if family == 6 else "10.{}.0.0/15"
    return tuple(ip_network(text.format(2 * number)) for number in range(count))


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("count", [1, 2, 4, 15, 16, 17, 100])
def test_the_kernel_takes_it(netns: Namespace, family: int, count: int) -> None:
    found = _prefixes(family, count)
    for chosen in (
        Selection(family, found, ()),
        Selection(family, (), found),
        Selection(family, found, found),
    ):
        rules = [
            *chosen.rules("x", "goto chosen"),
            f'iifname "wan0" ct mark 0 {chosen.outside("x")}ct mark set 0x1',
        ]
        word = "ip" if family == 4 else "ip6"
        parts = (*chosen.sets("x"), "chain chosen { accept; }", "chain c {", *rules, "}")
        netns.run("nft", "\n".join((f"table {word} t {{", *parts, "}")))
        netns.run("nft", f"delete table {word} t")
