"""A link that can only be replaced, by one that the kernel refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.artifact import Value
from holdfast.engine.kinds.link import link
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import error, look, replace
from tests.host.netlink.link_cases import NONCE, make
from tests.namespace import Namespace


@pytest.fixture
def driver(netns: Namespace) -> Iterator[LinkDriver]:
    netns.veth("lan", "lanp")
    sock = NetlinkSocket()
    yield LinkDriver(sock)
    sock.close()


@pytest.mark.parametrize(
    ("field", "value", "said"), [("vni", 20, "already exists"), ("parent", "none0", "not exist")]
)
def test_a_link_that_cannot_be_made_otherwise_is_put_back(
    driver: LinkDriver, netns: Namespace, field: str, value: Value, said: str
) -> None:
    netns.ip("link add theirs type vxlan id 20 dstport 4789")
    fields: dict[str, Value] = {"type": "vxlan", "vni": 10, "port": 4789, "up": True, "mtu": 1300}
    old = link("made0", fields)
    make(driver, old)
    seen = look(driver, old).artifact
    words = error(driver, replace(link("made0", {**fields, field: value}), seen, NONCE))
    assert said in words and "the old one was put back" in words
    back = look(driver, old)
    assert {**back.artifact.fields, "ifindex": 0} == {**seen.fields, "ifindex": 0}
    assert back.nonce == NONCE  # by which the claim finds it
