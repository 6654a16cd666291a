"""Whole passes over a WireGuardInterface, with a far end that somebody else runs."""

from __future__ import annotations

import shutil
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.engine.driver import Result
from holdfast.engine.plan import Operation
from holdfast.host.wireguard import WireGuardDriver
from tests.host.wireguard_scene import (
    FAR_ENDPOINT,
    Tunnel,
    new_pair,
    shown,
    tunnel,
    verbs,
    wait_for_handshake,
    wg,
)
from tests.namespace import Namespace

pytestmark = [pytest.mark.qemu, pytest.mark.programs]


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Tunnel]:
    with tunnel(tmp_path) as made:
        yield made


def test_the_far_end_is_reached_and_nothing_is_left_to_do(wire: Tunnel) -> None:
    wire.far_link()
    report = wire.converge(wire.declared())
    assert sorted(verbs(report)) == [
        "create address", "create link", "create route", "create wireguard",
    ]  # fmt: skip
    wire.near.ping("10.77.0.2")
    wire.near.ping("10.78.0.1")
    assert wg("show", "wg0", "listen-port") == "51821"
    assert Namespace().ip_json("-4 route show 10.78.0.0/16")[0]["protocol"] == "72"
    # 10.77.0.2/32 is in the subnet of the address on the link.
    assert Namespace().ip_json("-4 route show 10.77.0.2/32") == []
    kept = b"".join(path.read_bytes() for path in wire.scene.paths.state_dir.rglob("*"))
    assert wire.ours.public.encode() in kept
    for secret in (wire.ours.private, wire.preshared):
        assert secret.encode() not in kept
        assert secret not in repr(report)


def _remove_peer(wire: Tunnel) -> None:
    wg("set", "wg0", "peer", wire.theirs.public, "remove")


def _other_key(wire: Tunnel) -> None:
    wg("set", "wg0", "private-key", str(wire.secret("other", new_pair().private)))


def _foreign_peer(_wire: Tunnel) -> None:
    wg("set", "wg0", "peer", new_pair().public, "allowed-ips", "10.78.0.0/16")


def _no_preshared_key(wire: Tunnel) -> None:
    wg("set", "wg0", "peer", wire.theirs.public, "preshared-key", "/dev/null")


def _other_endpoint(wire: Tunnel) -> None:
    wg("set", "wg0", "peer", wire.theirs.public, "endpoint", "10.99.0.3:1")


def _blank(wire: Tunnel) -> None:
    wg("set", "wg0", "private-key", "/dev/null", "peer", wire.theirs.public, "remove")


_DRIFTS: dict[str, Callable[[Tunnel], object]] = {
    "peer removed": _remove_peer,
    "another key": _other_key,
    "another port": lambda _wire: wg("set", "wg0", "listen-port", "1234"),
    "a mark": lambda _wire: wg("set", "wg0", "fwmark", "7"),
    "foreign peer": _foreign_peer,
    "no preshared key": _no_preshared_key,
    "more prefixes": lambda w: wg("set", "wg0", "peer", w.theirs.public, "allowed-ips", "::/0"),
    "keepalive": lambda w: wg("set", "wg0", "peer", w.theirs.public, "persistent-keepalive", "9"),
    "endpoint of a peer never heard from": _other_endpoint,
    "everything taken off": _blank,
}


def _told() -> list[list[str]]:
    """Without times and counters."""
    lines = [line.split("\t") for line in wg("show", "wg0", "dump").splitlines()]
    return [line[:4] + line[7:] for line in lines]


def test_drift_is_repaired(wire: Tunnel) -> None:
    resources = wire.declared()
    wire.converge(resources)
    before = _told()
    for name, drift in _DRIFTS.items():
        drift(wire)
        assert _told() != before, name
        done = verbs(wire.converge(resources))
        assert done == [f"{'create' if drift is _blank else 'update'} wireguard"], name
        assert _told() == before, name


def test_a_session_goes_on_while_other_peers_change(wire: Tunnel) -> None:
    wire.far_link()
    other, third = new_pair(), new_pair()

    def beside(pair_key: str, name: str, allowed: str) -> str:
        return f'{{name: {name}, publicKey: "{pair_key}", allowedIPs: ["{allowed}"]}}'

    wire.converge(wire.declared(wire.peer(), beside(other.public, "other", "10.79.0.0/16")))
    wire.near.ping("10.77.0.2")
    handshake = wait_for_handshake(wire.theirs.public)
    received = shown("transfer")[wire.theirs.public]
    after = wire.declared(wire.peer(), beside(third.public, "third", "10.79.0.0/16"), fwmark=5)
    assert verbs(wire.converge(after)) == ["update wireguard"]
    assert shown("allowed-ips")[third.public] == "10.79.0.0/16"
    assert other.public not in shown("allowed-ips")
    assert shown("latest-handshakes")[wire.theirs.public] == handshake
    # One prefix less, and a keepalive: the session still goes on.
    less = wire.peer(allowedIPs="[10.77.0.2/32]", persistentKeepalive="25s")
    wire.converge(wire.declared(less))
    assert shown("allowed-ips") == {wire.theirs.public: "10.77.0.2/32"}
    assert shown("latest-handshakes")[wire.theirs.public] == handshake
    assert shown("transfer")[wire.theirs.public] >= received
    wire.near.ping("10.77.0.2")


def test_a_peer_may_move_once_it_was_heard_from(wire: Tunnel) -> None:
    wire.far_link()
    resources = wire.declared()
    wire.converge(resources)
    wire.near.ping("10.77.0.2")
    with wire.far.inside():
        wg("set", "wg0", "listen-port", "4000")
    wire.far.ping("10.77.0.1")
    assert shown("endpoints")[wire.theirs.public] == "10.99.0.2:4000"
    assert verbs(wire.apply(resources)) == []
    # What is declared anew is told, and a declaration that only goes leaves the peer where it is.
    wire.converge(wire.declared(wire.peer(endpoint="10.99.0.2:4001")))
    assert shown("endpoints")[wire.theirs.public] == "10.99.0.2:4001"
    assert verbs(wire.apply(wire.declared(wire.peer(endpoint="10.99.0.2:4001")))) == []


_NOTHING = {"Sysctl/x": "{key: net.ipv4.ip_forward, value: '1'}"}


def test_a_removed_resource_takes_its_link_along(wire: Tunnel) -> None:
    wire.converge(wire.declared())
    report = wire.apply(_NOTHING)
    assert report.failures == () and {"delete wireguard", "delete link"} <= {*verbs(report)}
    assert "wg0" not in {one["ifname"] for one in Namespace().ip_json("link show")}
    assert verbs(wire.apply(_NOTHING)) == []


def test_a_link_that_others_built_on_stays_without_keys_and_peers(wire: Tunnel) -> None:
    wire.converge(wire.declared())
    Namespace().ip("route add 10.80.0.0/16 dev wg0 proto static")
    report = wire.apply(_NOTHING)
    assert report.failures == ()
    assert "delete wireguard" in verbs(report) and "delete link" not in verbs(report)
    assert wg("show", "wg0", "dump").split("\t")[:2] == ["(none)", "(none)"]
    assert Namespace().ip_json("-4 route show 10.80.0.0/16") != []
    assert "create wireguard" in verbs(wire.converge(wire.declared()))
    assert shown("endpoints") == {wire.theirs.public: FAR_ENDPOINT}


@pytest.mark.parametrize("configured", [False, True], ids=["blank", "configured"])
def test_a_link_of_others_is_left_alone(wire: Tunnel, configured: bool) -> None:
    Namespace().ip("link add wg0 mtu 1420 type wireguard")
    Namespace().ip("link set wg0 up")
    if configured:
        key = wire.secret("others", new_pair().private)
        wg("set", "wg0", "private-key", str(key), "listen-port", "51821")
    before = wg("show", "wg0", "dump")
    report = wire.apply(wire.declared())
    assert wg("show", "wg0", "dump") == before
    assert [str(one.desired.key) for one in report.after.conflicts] == ["wireguard wg0"]
    assert not report.converged


def test_what_is_as_declared_is_adopted_and_kept_from_then_on(wire: Tunnel) -> None:
    resources = wire.declared()
    wire.converge(resources)
    shutil.rmtree(wire.scene.paths.state_dir)  # as if others had made it all
    report = wire.apply(resources)
    found = {str(one.desired.key) for one in report.after.candidates}
    assert found >= {"link wg0", "wireguard wg0"} and report.after.conflicts == ()
    wire.adopt(resources)
    assert verbs(wire.apply(resources)) == []
    wg("set", "wg0", "fwmark", "7")
    assert verbs(wire.converge(resources)) == ["update wireguard"]


def test_a_port_that_is_taken_is_named(wire: Tunnel) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("0.0.0.0", 51821))  # noqa: S104 (in the test's own namespace)
        report = wire.apply(wire.declared())
        said = {failure.error for _, failure in report.failures if failure.key.kind == "wireguard"}
        assert said == {"listen port 51821: Address already in use (EADDRINUSE)"}
    wire.converge(wire.declared())


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("died", ["claimed", "key written", "all written"])
def test_a_pass_that_dies_is_taken_up_by_the_next(
    wire: Tunnel, died: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = WireGuardDriver._send

    def dies(
        self: WireGuardDriver, operation: Operation, messages: list[tuple[str, bytes]]
    ) -> Result:
        real(self, operation, messages[: {"claimed": 0, "key written": 1}.get(died)])
        raise _Killed

    monkeypatch.setattr(WireGuardDriver, "_send", dies)
    with pytest.raises(_Killed):
        wire.apply(wire.declared())
    assert (wg("show", "wg0", "public-key") == wire.ours.public) == (died != "claimed")
    monkeypatch.undo()
    wire.converge(wire.declared())
    assert shown("endpoints") == {wire.theirs.public: FAR_ENDPOINT}


def test_many_peers(wire: Tunnel) -> None:
    """More than one message holds, and a peer with more prefixes than one message holds."""

    def peer(number: int, keepalive: int) -> str:
        key = number.to_bytes(2, "big") * 16
        prefixes = [f"10.{64 + number // 256}.{number % 256}.0/24"]
        if number == 7:
            prefixes += [f"2001:db8:{one:x}::/48" for one in range(1000)]
        allowed = ", ".join(f'"{one}"' for one in prefixes)
        return (
            f'{{name: p{number}, publicKey: "{_b64(key)}", persistentKeepalive: {keepalive}s,'
            f" allowedIPs: [{allowed}]}}"
        )

    many = [peer(number, 0) for number in range(1, 601)]
    wire.converge(wire.declared(*many, routes="false"))
    assert len(shown("allowed-ips")) == 600
    assert len(shown("allowed-ips")[_b64(b"\x00\x07" * 16)].split()) == 1001
    wire.converge(wire.declared(*many[:500], peer(501, 9), *many[501:599], routes="false"))
    assert len(shown("allowed-ips")) == 599
    assert set(shown("persistent-keepalive").values()) == {"off", "9"}


def _b64(key: bytes) -> str:
    return b64encode(key).decode()
