"""WireGuard links. What is told to them is in tests/host/test_wireguard_pass.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine.kinds.link import link
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import create, delete, look, run, see, succeed, update
from tests.host.netlink.link_cases import NONCE
from tests.lanes import covered_elsewhere, current, needs_link_type
from tests.namespace import Namespace


@pytest.fixture
def driver(netns: Namespace) -> Iterator[LinkDriver]:
    netns.veth("lan", "lanp")
    sock = NetlinkSocket()
    yield LinkDriver(sock)
    sock.close()


@pytest.mark.qemu
def test_made_changed_and_deleted(driver: LinkDriver, netns: Namespace) -> None:
    needs_link_type(netns, "wireguard")
    wanted = link("wg0", {"type": "wireguard", "up": True, "mtu": 1380})
    succeed(driver, create(wanted, NONCE))
    seen = look(driver, wanted)
    assert {name: seen.artifact.fields[name] for name in wanted.fields} == wanted.fields
    assert (seen.nonce, seen.artifact.fields["mac"]) == (NONCE, "")
    succeed(driver, update(link("wg0", {"mtu": 1420, "up": False}), seen.artifact))
    after = look(driver, wanted).artifact
    assert after.fields == {**seen.artifact.fields, "mtu": 1420, "up": False}
    succeed(driver, delete(after))
    assert see(driver, wanted) == {}


@pytest.fixture
def no_module(driver: LinkDriver) -> Iterator[None]:
    """In the uml lane, where the kernel is nobody else's: under QEMU it would load the module."""
    del driver  # whose links need modules too
    loader = Path("/proc/sys/kernel/modprobe")
    if current() != "uml":
        yield
        return
    before = loader.read_text()
    loader.write_text("/bin/false")
    yield
    loader.write_text(before)


@pytest.mark.uml
@pytest.mark.usefixtures("no_module")
def test_a_kernel_without_them_is_quoted(driver: LinkDriver) -> None:
    wanted = link("wg0", {"type": "wireguard", "up": True})
    (result,) = run(driver, create(wanted, NONCE))
    if result.ok:
        covered_elsewhere("uml", "this kernel has WireGuard links")
    assert "Unknown device type" in result.failures[0].error
    assert see(driver, wanted) == {}
