"""What others would lose with a link of ours, told with the observation, and in the plan."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.artifact import Value
from holdfast.engine.claim import ClaimState
from holdfast.engine.driver import Scope
from holdfast.engine.intent import Action, Desired, Intent
from holdfast.engine.kinds.link import link
from holdfast.engine.reconcile import scope
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.state.ledger import Ledger
from tests.host.netlink.drive import claims, create, succeed
from tests.namespace import Namespace
from tests.safety import router_scene

pytestmark = pytest.mark.programs

VXLAN: dict[str, Value] = {"type": "vxlan", "vni": 7, "port": 4789, "up": True}


class CountingSocket(NetlinkSocket):
    dumps = 0

    def dump(self, kind: int, body: bytes, what: str) -> list[bytes]:
        self.dumps += 1
        return super().dump(kind, body, what)


@pytest.fixture
def sock(netns: Namespace) -> Iterator[CountingSocket]:
    netns.veth("lan", "lanp")
    sock = CountingSocket()
    yield sock
    sock.close()


@pytest.fixture
def driver(sock: CountingSocket, netns: Namespace) -> LinkDriver:
    """A vxlan of ours with an address of somebody else's on it."""
    driver = LinkDriver(sock, tag=72)
    succeed(driver, create(link("vx0", VXLAN)))
    netns.ip("addr add 192.0.2.9/24 dev vx0")
    return driver


def _asking(action: Action = Action.ENSURE, **more: Value) -> Scope:
    wanted = link("vx0", {**VXLAN, **more})
    return scope(Desired((Intent("Interface/vx", wanted, "", action),)), claims(wanted))


def _losses(driver: LinkDriver, asked: Scope) -> list[str]:
    found = driver.observe(asked).losses
    return [loss.what for lost in found.values() for loss in lost]


@pytest.mark.parametrize("asked", [_asking(Action.DELETE), _asking(vni=8), _asking(type="bridge")])
def test_of_what_would_end(driver: LinkDriver, netns: Namespace, asked: Scope) -> None:
    (lost,) = _losses(driver, asked)
    assert lost.startswith("address 192.0.2.9/24 dev vx0 (protocol 0")
    netns.ip("addr del 192.0.2.9/24 dev vx0")
    assert _losses(driver, asked) == []


@pytest.mark.parametrize(
    "asked", [_asking(), _asking(alias="a"), _asking(learning=False), _asking(Action.OBSERVE)]
)
def test_nobody_is_asked_about_what_stays(
    driver: LinkDriver, sock: CountingSocket, asked: Scope
) -> None:
    before = sock.dumps
    assert _losses(driver, asked) == []
    assert sock.dumps == before + 1, "the links, and nothing else"


def test_nor_about_what_is_not_ours(driver: LinkDriver, sock: CountingSocket) -> None:
    asked = _asking(Action.DELETE)
    before = sock.dumps
    assert _losses(driver, Scope(asked.keys, coming=asked.coming)) == []
    assert sock.dumps == before + 1


def test_what_came_after_the_plan_stops_the_delete_and_leaves_the_claim_whole() -> None:
    """The plan was made before; the driver looks again."""
    with router_scene.scene() as scene:
        spec = "{ifname: vx0, type: vxlan, vxlan: {id: 7}, adminUp: true}"
        scene.apply({"Interface/vx": spec})
        gone = {"Interface/vx": "{ifname: vx0, state: absent}"}
        late = router_scene.Watched(before=lambda: router_scene.ip("addr add 192.0.2.9/24 dev vx0"))
        report = scene.apply(gone, late)
        ((_, failure),) = report.failures
        assert failure.error.startswith("would take what others made: address 192.0.2.9/24")
        (held,) = report.after.blocked
        assert "others would lose address 192.0.2.9/24 dev vx0" in held.reason
        with Ledger.read(scene.paths) as ledger:
            (claim,) = ledger.claims().values()
        assert claim.state is ClaimState.OWNED
        router_scene.ip("addr del 192.0.2.9/24 dev vx0")
        assert scene.apply(gone).converged
        with Ledger.read(scene.paths) as ledger:
            assert ledger.claims() == {}
