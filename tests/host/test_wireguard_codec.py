"""WireGuard devices in the bytes of a kernel (Linux 6.1, of a link that `wg set` configured)."""

from __future__ import annotations

from base64 import b64encode

import pytest

from holdfast.engine.kinds.wireguard import Peer
from holdfast.host.netlink import wireguard_codec
from holdfast.host.netlink.wireguard_codec import Device, SeenPeer

_DUMPED = bytes.fromhex(
    "00010000060006006cca0000080007001000000008000100020000000800020077673000240003000001010101"
    "01010101010101010101010101010101010101010101010101014124000400a4e09292b651c278b9772c569f5f"
    "a9bb13d906b46ab68c9df9dc2b4409f8a209b0010880e400008024000100020202020202020202020202020202"
    "020202020202020202020202020202020224000200090909090909090909090909090909090909090909090909"
    "0909090909090909140006000000000000000000000000000000000006000500190000000c0008000000000000"
    "0000000c000700000000000000000008000a0001000000140004000200ca6cc000020100000000000000004800"
    "09801c00008005000300100000000600010002000000080002000a010000280000800500030020000000060001"
    "000a0000001400020020010db8000000000000000000000000c800008024000100030303030303030303030303"
    "030303030303030303030303030303030303030324000200000000000000000000000000000000000000000000"
    "0000000000000000000000140006000000000000000000000000000000000006000500000000000c0008000000"
    "0000000000000c000700000000000000000008000a0001000000200004000a000fa00000000020010db8000000"
    "00000000000000000500000000200009801c000080050003000000000006000100020000000800020000000000"
)


def key(number: int) -> str:
    return b64encode(bytes([number]) * 32).decode()


PEERS = (
    Peer(key(2), ("10.1.0.0/16", "2001:db8::/32"), "192.0.2.1:51820", 25, key(9)),
    Peer(key(3), ("0.0.0.0/0",), "[2001:db8::5]:4000"),
)


def test_a_dump_is_read() -> None:
    assert wireguard_codec.decode([_DUMPED], 2) == Device(
        2,
        "pOCSkrZRwni5dyxWn1+puxPZBrRqtoyd+dwrRAn4ogk=",
        "AAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAUE=",
        51820,
        16,
        {peer.public_key: SeenPeer(peer) for peer in PEERS},
    )


def test_what_is_not_known_of_a_peer_is_not_shown() -> None:
    assert str(PEERS[1]) == (
        f"{key(3)} endpoint=[2001:db8::5]:4000 allowed-ips=0.0.0.0/0 keepalive=off psk=none"
    )
    assert key(9) not in str(PEERS[0]) + repr(PEERS[0])


def _sent(*peers: bytes) -> dict[str, SeenPeer]:
    """What a set message says, in the layout that it shares with a dump."""
    return wireguard_codec.decode(wireguard_codec.set_peers(2, peers), 2).peers


@pytest.mark.parametrize("peer", PEERS, ids=["all", "few"])
def test_a_new_peer_is_told_whole(peer: Peer) -> None:
    assert _sent(*wireguard_codec.new_peer(peer)) == {peer.public_key: SeenPeer(peer)}


def test_of_a_changed_peer_only_the_change_is_told() -> None:
    before, more = PEERS[0], ("10.1.0.0/16", "10.2.0.0/16", "2001:db8::/32")
    for after, told in (
        (Peer(key(2), more, "192.0.2.1:51820", 25, key(9)), Peer(key(2), ("10.2.0.0/16",))),
        (Peer(key(2), more[2:], "192.0.2.1:51820", 25, key(9)), Peer(key(2), more[2:])),
        (Peer(key(2), before.allowed_ips, "192.0.2.9:1", 25, key(9)),
         Peer(key(2), (), "192.0.2.9:1")),
        (Peer(key(2), before.allowed_ips, "", 25, key(8)), Peer(key(2), (), "", 0, key(8))),
    ):  # fmt: skip
        assert _sent(*wireguard_codec.changed_peer(before, after)) == {key(2): SeenPeer(told)}


def test_prefixes_and_peers_go_into_as_many_messages_as_it_takes() -> None:
    prefixes = tuple(f"2001:db8:{number:x}::/48" for number in range(1, 3001))
    many = [Peer(b64encode(bytes([7, *divmod(n, 256)]) + bytes(29)).decode(), ("10.0.0.0/8",))
            for n in range(2000)]  # fmt: skip
    encoded = [*wireguard_codec.new_peer(Peer(key(4), prefixes))]
    for peer in many:
        encoded += wireguard_codec.new_peer(peer)
    messages = wireguard_codec.set_peers(2, encoded)
    assert len(messages) > 5
    assert max(map(len, messages)) < 1 << 16
    found = wireguard_codec.decode(messages, 2).peers
    assert len(found) == 2001
    assert found[key(4)].peer.allowed_ips == prefixes
