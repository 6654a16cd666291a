from __future__ import annotations

import pytest

from tests.agent.two_providers import until
from tests.namespace import Namespace


@pytest.fixture
def lan(netns: Namespace) -> Namespace:
    # No address comes by itself, or changes by itself, later on.
    for setting in ("accept_dad=0", "addr_gen_mode=1"):
        netns.run("sysctl", "-qw", f"net.ipv6.conf.default.{setting}")
    netns.veth("lan0", "far0", "192.0.2.1/24", "2001:db8::1/64")
    # The kernel is done with the address, and has told of it, when it has a route to it.
    until(lambda: "2001:db8::1" in netns.ip("-6 route show table local"), "the IPv6 address")
    return netns
