"""The DHCPv6 server of trials, message by message; real clients ask it in test_try."""

from __future__ import annotations

import struct
from ipaddress import IPv6Address, IPv6Network

import pytest

from holdfast.cli.sandbox.dhcp6 import Link, Server

LINK = Link("far0", IPv6Address("2001:db8:ffff::1"), IPv6Network("2001:db8:8000::/44"))
SOLICIT, ADVERTISE, REQUEST, RENEW, REPLY, RELEASE, INFORMATION_REQUEST = 1, 2, 3, 5, 7, 8, 11
CLIENT, SERVER, IA_NA, ADDRESS, STATUS, RAPID, DNS, IA_PD, PREFIX = 1, 2, 3, 5, 13, 14, 23, 25, 26
NUMBER = b"\x12\x34\x56"
ME = b"\0\3\0\1\2\0\0\0\0\1"


def option(kind: int, value: bytes) -> bytes:
    return struct.pack("!HH", kind, len(value)) + value


def ia(kind: int, iaid: int, inner: bytes = b"") -> bytes:
    return option(kind, struct.pack("!III", iaid, 0, 0) + inner)


def wish(length: int) -> bytes:
    return option(PREFIX, struct.pack("!IIB16s", 0, 0, length, bytes(16)))


def message(kind: int, *options: bytes, client: bytes = ME) -> bytes:
    return bytes((kind,)) + NUMBER + option(CLIENT, client) + b"".join(options)


def options(data: bytes) -> dict[int, bytes]:
    found = {}
    while data:
        kind, size = struct.unpack_from("!HH", data)
        found[kind] = data[4 : 4 + size]
        data = data[4 + size :]
    return found


def lent(said: bytes) -> tuple[IPv6Address, IPv6Network]:
    all_ = options(said[4:])
    address = options(all_[IA_NA][12:])[ADDRESS]
    prefix = options(all_[IA_PD][12:])[PREFIX]
    return IPv6Address(address[:16]), IPv6Network((prefix[9:25], prefix[8]))


def test_a_solicitation_is_answered_with_an_offer_and_taken_up_with_a_request() -> None:
    server = Server(LINK)
    wanted = ia(IA_NA, 1), ia(IA_PD, 2, wish(60))
    offer, _ = server.answer(message(SOLICIT, *wanted))
    assert (offer[0], offer[1:4]) == (ADVERTISE, NUMBER)
    assert options(offer[4:])[CLIENT] == ME
    named = option(SERVER, options(offer[4:])[SERVER])
    reply, delegated = server.answer(message(REQUEST, named, *wanted))
    assert reply[0] == REPLY
    assert options(reply[4:])[DNS] == LINK.gateway.packed
    address, prefix = lent(reply)
    assert (address, prefix) == lent(offer)
    assert address in IPv6Network("2001:db8:ffff::/64")
    assert prefix.prefixlen == 60
    assert prefix.subnet_of(LINK.pool)
    assert delegated == [prefix]
    assert lent(server.answer(message(RENEW, named, *wanted))[0]) == (address, prefix)


def test_at_once_where_the_client_says_so() -> None:
    said, delegated = Server(LINK).answer(message(SOLICIT, option(RAPID, b""), ia(IA_PD, 2)))
    assert said[0] == REPLY
    assert RAPID in options(said[4:])
    assert [one.prefixlen for one in delegated] == [56]


@pytest.mark.parametrize("length", [0, 32, 65, 128])
def test_a_wish_that_cannot_be_met_is_none(length: int) -> None:
    _, (prefix,) = Server(LINK).answer(message(REQUEST, ia(IA_PD, 2, wish(length))))
    assert prefix.prefixlen == 56


def test_no_two_clients_get_the_same() -> None:
    server = Server(LINK)
    wanted = ia(IA_NA, 1), ia(IA_PD, 2, wish(48))
    one = lent(server.answer(message(REQUEST, *wanted))[0])
    other = lent(server.answer(message(REQUEST, *wanted, client=b"another"))[0])
    assert one[0] != other[0]
    assert not one[1].overlaps(other[1])


@pytest.mark.parametrize("kind", [RELEASE, INFORMATION_REQUEST])
def test_what_lends_nothing_is_answered_too(kind: int) -> None:
    said, delegated = Server(LINK).answer(message(kind, ia(IA_PD, 2)))
    found = options(said[4:])
    assert said[0] == REPLY
    assert not {IA_NA, IA_PD} & set(found)
    assert found.get(STATUS) == (bytes(2) if kind == RELEASE else None)
    assert not delegated


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1\2",
        message(ADVERTISE, ia(IA_PD, 2)),
        message(REQUEST, option(SERVER, b"somebody else"), ia(IA_PD, 2)),
    ],
)
def test_what_is_not_for_it_is_not_answered(data: bytes) -> None:
    assert Server(LINK).answer(data) == (b"", [])


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_message_that_was_cut_short_harms_nothing(cut: int) -> None:
    whole = message(REQUEST, ia(IA_NA, 1), ia(IA_PD, 2, wish(60)))
    said, delegated = Server(LINK).answer(whole[:-cut])
    assert len(delegated) <= 1
    assert not said or said[0] == REPLY
