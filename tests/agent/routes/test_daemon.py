"""Routing control as a daemon serves it: owners of the startup file, stored by increments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from holdfast.api import route_control_pb2 as rc
from holdfast.api import sockets
from holdfast.api.calls import CALLS
from holdfast.api.tokens import digest_of
from holdfast.paths import Paths
from holdfast.resources.dynamic.tokens import as_declared
from holdfast.runtime import sources
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.routes.test_route_control import requests, signed
from tests.namespace import Namespace
from tests.resources.parts import admitting
from tests.resources.routers import load
from tests.runtime.routes.memory import TOKENS

ALLOW = {
    "kinds": ["BGPInstance", "BGPPeer", "BGPPrefix", "BFDSession"],
    "names": ["*"],
    "maxResources": 100,
    "prefixes": ["10.0.0.0/8", "192.0.2.254/32"],
    "peers": ["192.0.2.0/24"],
    "autonomousSystems": ["65000", "65001"],
    "prefixLength": "subnet",
    "mayConfigureInstance": True,
    "mayLearnRoutes": True,
}


class Caller:
    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def code(self, name: str, request: Any) -> str:
        try:
            self.ask(name, request)
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"
        return "OK"

    def ask(self, name: str, request: Any) -> Any:
        call = CALLS[f"RouteControl.{name}"]
        function = self.channel.unary_unary(
            call.path,
            request_serializer=call.request.SerializeToString,
            response_deserializer=call.reply.FromString,
        )
        return function(request, timeout=60)


@pytest.fixture
def daemon(netns: Namespace, tmp_path: Path) -> Iterator[tuple[Path, Any]]:
    assert netns
    owners = [
        admitting(f"Owner/{name}", allow=ALLOW, tokens=[as_declared(digest_of(TOKENS[name]))])
        for name in ("edge", "net")
    ]
    load(tmp_path, *owners)
    with serve(tmp_path, tmp_path / "router.yaml") as found:
        found.wait_for("read: 2 resources")
        yield tmp_path, found


@pytest.fixture
def caller(daemon: tuple[Path, Any]) -> Iterator[Caller]:
    with sockets.folder(Paths(daemon[0])) as folder:
        target = f"unix:{folder}/{sockets.ROUTES.name}"
        with grpc.insecure_channel(target) as channel:
            yield Caller(channel)


def test_owners_declare_by_their_policies(caller: Caller) -> None:
    for name in ("ConfigureBGP", "ApplyPeer", "AdvertisePrefix", "EnableBFD"):
        assert caller.code(name, requests()[name]) == "OK"
        if name != "ConfigureBGP":
            assert caller.code(name, requests("net")[name]).startswith("ALREADY_EXISTS"), name
    status = caller.ask("GetStatus", rc.GetStatusRequest())
    assert [(one.prefix, one.owner) for one in status.prefixes] == [("10.0.0.0/24", "edge")]
    for prefix in ("10.0.0.1/32", "172.16.0.0/16"):
        request = signed(rc.AdvertisePrefixRequest, prefix=prefix, protocol=rc.PROTOCOL_BGP)
        assert caller.code("AdvertisePrefix", request).startswith("PERMISSION_DENIED"), prefix
    for address, number in (("10.0.0.9", 65001), ("192.0.2.9", 65002)):
        peer = rc.BGPPeer(neighbor_address=address, remote_as=number)
        request = signed(rc.ApplyPeerRequest, peer=peer)
        assert caller.code("ApplyPeer", request).startswith("PERMISSION_DENIED"), address
    ospf = requests()["EnableOSPF"]
    # No resource stands for the link.
    assert caller.code("EnableOSPF", ospf).startswith("INVALID_ARGUMENT")
    assert caller.code("RemovePeer", requests()["RemovePeer"]) == "OK"
    assert not caller.ask("GetStatus", rc.GetStatusRequest()).peers


def test_what_was_answered_outlasts_a_kill(daemon: tuple[Path, Any]) -> None:
    root, first = daemon
    with sockets.folder(Paths(root)) as folder:
        target = f"unix:{folder}/{sockets.ROUTES.name}"
        with grpc.insecure_channel(target) as channel:
            caller = Caller(channel)
            for name in ("ConfigureBGP", "AdvertisePrefix"):
                assert caller.code(name, requests()[name]) == "OK"
        first.process.kill()
        first.process.wait()
    with Ledger.read(Paths(root)) as ledger:
        kept = {one.source: one.resources for one in sources.stored(ledger).parts}
    assert [raw["kind"] for raw in kept["Owner/edge"]] == ["BGPInstance", "BGPPrefix"]
