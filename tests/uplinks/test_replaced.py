"""Traffic while the tables of policy routing are replaced all the while: each packet leaves by the
link of its flow, and a new flow gets a way."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.child import in_child, kill
from tests.firewall.hosts import Host
from tests.namespace import Namespace
from tests.uplinks.test_default_route import ROUTER
from tests.uplinks.test_policy_routes import BALANCED, SERVERS
from tests.uplinks.uplink_network import PORT, SERVER, UplinkNetwork, facts

# With the flows dealt out by a map, or selected by a set, of some 600 000 first packets between 13
# and 190 got no mark in this many.
REPLACED = 300
WAIT_S = 30.0
CLIENT = ("10.1.0.2", 5000)
# Before and after all tables of the router; what comes in and goes nowhere is missing in the sum.
COUNTERS = f"""
table ip counted {{
    counter came {{ }}
    counter first {{ }}
    counter second {{ }}
    chain before {{
        type filter hook prerouting priority -300;
        iifname "lan0" udp dport {PORT} counter name came
    }}
    chain after {{
        type filter hook postrouting priority 300;
        udp dport {PORT} oifname "wan0" counter name first
        udp dport {PORT} oifname "wan1" counter name second
    }}
}}
"""


def _counted(netns: Namespace) -> dict[str, int]:
    found = re.findall(r"counter (\w+) \{\s+packets (\d+)", netns.run("nft", "list", "counters"))
    return {name: int(count) for name, count in found}


def _settled(netns: Namespace) -> dict[str, int]:
    """When nobody sends any more, and what was in queues has passed."""
    deadline = time.monotonic() + WAIT_S
    seen = _counted(netns)
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = _counted(netns)
        if now == seen:
            return now
        seen = now
    raise AssertionError(f"packets keep coming: {seen}")


@contextmanager
def _working(work: Callable[[], None]) -> Iterator[None]:
    pid = in_child(work)
    try:
        yield
    finally:
        kill(pid)


def _replace(place: UplinkNetwork, netns: Namespace, router: Mapping[str, str], table: str) -> None:
    """Between the two tables that stand for one of the providers being up and down."""
    scripts = []
    for healthy in (False, True):
        assert place.apply(router, facts(wan=True, lte=healthy)).converged
        listed = netns.run("nft", "list", "table", "ip", table)
        scripts.append(f"delete table ip {table}\n{listed}")
    assert scripts[0] != scripts[1]
    for number in range(REPLACED):
        netns.run("nft", scripts[number % 2])


def _answered_flow(place: UplinkNetwork, server: str) -> socket.socket:
    sender = place.client.datagrams(*CLIENT)
    with place.providers["first"].datagrams(server, PORT) as far:
        sender.sendto(b"hello", (server, PORT))
        far.sendto(b"hello", far.recvfrom(64)[1])
        assert sender.recv(64) == b"hello"
    return sender


def _running_flow(
    place: UplinkNetwork, netns: Namespace, router: Mapping[str, str], table: str, server: str
) -> None:
    def send() -> None:
        while True:
            sender.sendto(b"x", (server, PORT))

    with _answered_flow(place, server) as sender:
        netns.run("nft", COUNTERS)
        # It is never read, and there so that nobody answers that there is none.
        with place.providers["first"].datagrams(server, PORT), _working(send):
            _replace(place, netns, router, table)
    counted = _settled(netns)
    assert counted["came"] > 10 * REPLACED
    assert counted == {"came": counted["came"], "first": counted["came"], "second": 0}


def test_a_running_flow_of_a_default_route(place: UplinkNetwork, netns: Namespace) -> None:
    place.apply(ROUTER)
    _running_flow(place, netns, ROUTER, "holdfast_default_route", SERVER)


def test_a_running_flow_of_a_route_set(place: UplinkNetwork, netns: Namespace) -> None:
    place.apply(BALANCED)
    server = next(server for server in SERVERS if place.way(server) == "first")
    _running_flow(place, netns, BALANCED, "holdfast_policy", server)


def test_new_flows_of_a_route_set(place: UplinkNetwork, netns: Namespace) -> None:
    def send() -> None:
        while True:
            with _unbound(place.client) as sender:
                for server in SERVERS:
                    sender.sendto(b"x", (server, PORT))

    place.apply(BALANCED)
    netns.run("nft", COUNTERS)
    with _working(send):
        _replace(place, netns, BALANCED, "holdfast_policy")
    counted = _settled(netns)
    assert min(counted["first"], counted["second"]) > 10 * REPLACED
    assert counted["came"] == counted["first"] + counted["second"]


def _unbound(host: Host) -> socket.socket:
    with host.inside():
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
