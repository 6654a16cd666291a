"""What the tests of netlink drivers share."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from holdfast.host.netlink.addresses.driver import AddressDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import TAG
from tests.namespace import Namespace


@pytest.fixture(scope="session", autouse=True)
def ipv6() -> None:
    """Where IPv6 is a module, as in user-mode Linux, the first socket loads it; netlink alone
    would be told that there is no such family."""
    socket.socket(socket.AF_INET6).close()


@pytest.fixture
def between_two_links(netns: Namespace) -> Iterator[AddressDriver]:
    """An address driver where `lan` has no addresses and `wan` has a foreign one per family."""
    netns.veth("lan", "lanp")
    netns.veth("wan", "wanp", "10.1.0.1/24", "fd01::1/64")
    netns.run("sysctl", "-qw", "net.ipv4.conf.all.promote_secondaries=0")
    netns.run("sysctl", "-qw", "net.ipv4.conf.lan.promote_secondaries=0")
    sock = NetlinkSocket()
    yield AddressDriver(sock, TAG)
    sock.close()
