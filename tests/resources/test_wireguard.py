"""WireGuardInterface: keys, endpoints by name, routes; and what the files with keys must be."""

from __future__ import annotations

import subprocess
from base64 import b64encode
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.intent import BulkIntent, Desired, Intent
from holdfast.engine.kinds.wireguard import secrets_of
from holdfast.errors import ConfigError
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import Facts, Lookup
from holdfast.resources.links.wireguard_key import public_key
from holdfast.resources.questions import lookups
from tests.resources.routers import load


def _b64(raw: bytes) -> str:
    return b64encode(raw).decode()


_PEER = _b64(bytes([2]) * 32)
_PRIVATE = _b64(bytes([1]) * 32)


def _spec(folder: Path, *peers: dict[str, Any], **more: Any) -> dict[str, Any]:
    path = folder / "wg.key"
    path.write_text(f"{_PRIVATE}\n")
    path.chmod(0o600)
    return {"privateKeyFile": "wg.key", "peers": list(peers), **more}


def _peer(**more: Any) -> dict[str, Any]:
    return {"name": "far", "publicKey": _PEER, "allowedIPs": ["10.9.0.0/16"], **more}


def _desired(folder: Path, spec: dict[str, Any], facts: Facts | None = None) -> Desired:
    address = {"interface": "wg0", "address": "10.77.0.1/24"}
    router = load(
        folder, ("WireGuardInterface", "wg0", spec), ("IPv4StaticAddress", "wg0", address)
    )
    return compile_router(router, facts) if facts is not None else compile_router(router)


def _told(desired: Desired) -> Intent:
    (found,) = [
        one
        for one in desired.intents
        if isinstance(one, Intent) and one.artifact.key.kind == "wireguard"
    ]
    return found


def _routes(desired: Desired) -> list[str]:
    return [
        one.batch.artifact(key).key.name
        for one in desired.intents
        if isinstance(one, BulkIntent)
        for key in one.batch.keys
    ]


@pytest.mark.programs
def test_the_public_key_of_a_private_one_is_that_of_wg() -> None:
    # Bob's of RFC 7748, section 6.1; and one that is not clamped.
    bob = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
    theirs = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    assert public_key(_b64(bytes.fromhex(bob))) == _b64(bytes.fromhex(theirs))
    for private in (_PRIVATE, _b64(bytes([255]) * 32)):
        done = subprocess.run(["wg", "pubkey"], input=private, capture_output=True, text=True)
        assert public_key(private) == done.stdout.strip()


def test_what_is_told_holds_no_secret(tmp_path: Path) -> None:
    psk = _b64(bytes([9]) * 32)
    (tmp_path / "psk").write_text(f"{psk}\n")
    (tmp_path / "psk").chmod(0o600)
    peer = _peer(presharedKeyFile="psk", endpoint="192.0.2.1:51820", persistentKeepalive="25s")
    desired = _desired(tmp_path, _spec(tmp_path, peer, listenPort=51820, fwmark="0x10"))
    told = _told(desired)
    assert told.artifact.fields == {
        "public_key": public_key(_PRIVATE),
        "fwmark": 16,
        "listen_port": 51820,
        "peers": (
            f"{_PEER} endpoint=192.0.2.1:51820 allowed-ips=10.9.0.0/16 keepalive=25"
            " psk=1c486d83ba1641cb",
        ),
    }
    assert [str(key) for key in told.requires] == ["link wg0"]
    private, (found,) = secrets_of(told.artifact)
    assert (private, found.preshared_key) == (_PRIVATE, psk)
    assert psk not in repr(desired) and _PRIVATE not in repr(desired)


def test_routes_lead_to_the_peers_unless_an_address_does_already(tmp_path: Path) -> None:
    peer = _peer(allowedIPs=["10.77.0.2", "10.9.0.0/16", "2001:db8::/48"])
    assert _routes(_desired(tmp_path, _spec(tmp_path, peer))) == ["10.9.0.0/16", "2001:db8::/48"]
    assert _routes(_desired(tmp_path, _spec(tmp_path, peer, routes=False))) == []
    assert _routes(_desired(tmp_path, _spec(tmp_path, peer, adminUp=False))) == []
    tabled = _spec(tmp_path, peer, routeTable=100, routeMetric=7)
    assert _routes(_desired(tmp_path, tabled)) == [
        "10.9.0.0/16 table 100 metric 7",
        "10.77.0.2/32 table 100 metric 7",
        "2001:db8::/48 table 100 metric 7",
    ]


_FOUR, _SIX = Lookup("vpn.example.net", 4), Lookup("vpn.example.net", 6)


@pytest.mark.parametrize(
    ("answers", "where"),
    [
        ({}, ""),
        ({_FOUR: (IPv4Address("192.0.2.9"), IPv4Address("192.0.2.1"))}, "192.0.2.1:7"),
        ({_FOUR: (), _SIX: (IPv6Address("2001:db8::1"),)}, "[2001:db8::1]:7"),
        ({_SIX: (IPv6Address("2001:db8::1"),)}, ""),
        ({_FOUR: (), _SIX: ()}, ""),
    ],
    ids=["unknown", "lowest", "only IPv6", "IPv4 unknown", "none"],
)
def test_a_name_is_waited_for_and_stops_nothing_else(
    tmp_path: Path, answers: dict[Lookup, Any], where: str
) -> None:
    spec = _spec(tmp_path, _peer(endpoint="vpn.example.net:7"))
    desired = _desired(tmp_path, spec, Facts(answers=answers))
    (peer,) = secrets_of(_told(desired).artifact)[1]
    assert peer.endpoint == where
    waits = [] if where else ["waits for the DNS to say where peer far is"]
    assert [one.reason for one in desired.waiting] == waits
    assert _routes(desired) == ["10.9.0.0/16"]


def test_names_are_asked_for_once_in_the_families_wanted(tmp_path: Path) -> None:
    other = _b64(bytes([3]) * 32)
    router = load(
        tmp_path,
        ("WireGuardInterface", "wg0", _spec(
            tmp_path,
            _peer(endpoint="vpn.example.net:7"),
            _peer(name="b", publicKey=other, allowedIPs=["10.8.0.0/16"],
                  endpoint="vpn.example.net:8", endpointFamily="ipv6"),
        )),
    )  # fmt: skip
    assert lookups(router) == (_FOUR, _SIX)


def _error(folder: Path, spec: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, ("WireGuardInterface", "wg0", spec))
    return str(caught.value)


def test_a_key_file_that_will_not_do_is_named_without_its_content(tmp_path: Path) -> None:
    spec = _spec(tmp_path)
    (tmp_path / "wg.key").chmod(0o640)
    assert "wg.key: others can read it (mode 0640): chmod 600 it" in _error(tmp_path, spec)
    (tmp_path / "wg.key").chmod(0o600)
    for content in ("secretsecret", _PRIVATE[:-4], "A" * 43 + "=", ""):
        (tmp_path / "wg.key").write_text(f"{content}\n")
        said = _error(tmp_path, spec)
        assert "spec.privateKeyFile" in said and "wg.key: its first line is" in said
        assert not content or content not in said


def test_an_interface_is_not_its_own_peer(tmp_path: Path) -> None:
    said = _error(tmp_path, _spec(tmp_path, _peer(publicKey=public_key(_PRIVATE))))
    assert "spec.peers[0].publicKey: is the public key of this interface" in said


def _default_by(folder: Path, tunnel: dict[str, Any], **policy: Any) -> tuple[str, ...]:
    """Warnings of a file in which a tunnel is one of two candidates."""
    ways = {"gatewaySource": "static", "gateway": "192.0.2.254"}
    router = load(
        folder,
        ("Interface", "wan", {"ifname": "eth0"}),
        ("WireGuardInterface", "wg0", tunnel),
        (
            "IPv4DefaultRoutePolicy",
            "out",
            {
                "candidates": [
                    {"interface": "wg0", "priority": 10, "table": 111, "mark": 0x111},
                    {"interface": "wan", "priority": 20, "table": 112, "mark": 0x112, **ways},
                ],
                **policy,
            },
        ),
    )
    return tuple(str(warning) for warning in router.warnings)


@pytest.mark.parametrize("fwmark", [0, 0x111])
@pytest.mark.parametrize("endpoint", ["192.0.2.9:51820", "vpn.example.net:51820", None])
def test_a_tunnel_as_default_would_take_its_own_packets(
    tmp_path: Path, fwmark: int, endpoint: str | None
) -> None:
    peer = _peer(allowedIPs=["0.0.0.0/0"], **({"endpoint": endpoint} if endpoint else {}))
    tunnel = _spec(tmp_path, peer, fwmark=fwmark, routes=False)
    (warning,) = _default_by(tmp_path, tunnel)
    assert "candidates[0].interface: while this is the default, the packets around" in warning
    # Not those that the router sends itself.
    assert _default_by(tmp_path, tunnel, routerTraffic=False) == ()


def test_a_tunnel_whose_packets_leave_by_another_way(tmp_path: Path) -> None:
    peer = _peer(allowedIPs=["0.0.0.0/0"], endpoint="192.0.2.9:51820")
    assert _default_by(tmp_path, _spec(tmp_path, peer, fwmark=0x112, routes=False)) == ()
    over_ipv6 = _peer(allowedIPs=["0.0.0.0/0"], endpoint="[2001:db8::9]:51820")
    assert _default_by(tmp_path, _spec(tmp_path, over_ipv6, routes=False)) == ()
    named = {"endpoint": "vpn.example.net:51820", "endpointFamily": "ipv6"}
    assert _default_by(tmp_path, _spec(tmp_path, _peer(**named), routes=False)) == ()
