"""DNS messages as bytes."""

from __future__ import annotations

import contextlib
import struct
import time
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.facts import dns_message
from holdfast.host.facts.dns_message import Nonsense, ServerFailed, Truncated

NAME = dns_message.parse_name("a.example")
QUESTION = dns_message.encode_question(7, NAME, 4)
HEAD = b"\0\7\x81\x80\0\1\0\1\0\0\0\0" + QUESTION[12:]
RECORD = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1"


def read(data: bytes) -> dns_message.Answer:
    return dns_message.read_answer(data, 7, NAME, 4)


def test_a_plain_answer() -> None:
    answer = read(HEAD + RECORD)
    assert answer == dns_message.Answer((IPv4Address("192.0.2.1"),), 60)


@pytest.mark.parametrize("size", range(len(HEAD + RECORD)))
def test_every_shorter_one_is_nonsense(size: int) -> None:
    with pytest.raises(Nonsense):
        read((HEAD + RECORD)[:size])


@given(st.binary(max_size=80))
def test_any_bytes_behind_a_good_beginning(data: bytes) -> None:
    with contextlib.suppress(Nonsense):
        assert len(read(HEAD + data).addresses) <= 1


@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    with contextlib.suppress(Nonsense, Truncated, ServerFailed):
        read(b"\0\7" + data)


@pytest.mark.parametrize(
    "name",
    [
        b"\xc0\x1b",  # itself
        b"\xc0\xff",  # behind the end
        b"\x80a\0",  # a label of a type that is not used
        b"\x3f" + b"a" * 10,  # cut short
    ],
)
def test_names_that_lead_nowhere(name: bytes) -> None:
    with pytest.raises(Nonsense):
        read(HEAD + name + RECORD[2:])


def test_aliases_in_a_circle_come_to_an_end() -> None:
    alias = b"\xc0\x0c\0\5\0\1\0\0\0\x3c\0\2\xc0\x0c"
    assert read(HEAD + alias) == dns_message.Answer((), 0)


def test_many_records_take_time_by_their_number() -> None:
    """To gather them takes dnspython time by the square of it: 64 KB would keep a pass waiting."""
    many = 4000
    records = (RECORD[:12] + struct.pack("!I", 0xC0000000 + at) for at in range(many))
    head = HEAD[:6] + struct.pack("!H", many) + HEAD[8:]
    data = head + b"".join(records)
    assert len(data) < 65536
    began = time.process_time()
    assert len(read(data).addresses) == many
    assert time.process_time() - began < 2


def test_names_that_point_and_point_take_no_time() -> None:
    """Each name is a label and a pointer to the one before."""
    data = b""
    names: list[int] = []
    while len(HEAD + data) < 0x3FF0:
        end = struct.pack("!H", 0xC000 | names[-1]) if names else b"\0"
        names.append(len(HEAD + data))
        data += b"\1x" + end + RECORD[2:]
    head = HEAD[:6] + struct.pack("!H", len(names)) + HEAD[8:]
    began = time.process_time()
    with pytest.raises(Nonsense):
        read(head + data)
    assert time.process_time() - began < 1


def test_what_is_truncated_in_the_middle_of_a_record_is_asked_for_again() -> None:
    flags = b"\x83\x80"
    with pytest.raises(Truncated):
        read(HEAD[:2] + flags + HEAD[4:] + RECORD[:-2])
    with pytest.raises(Nonsense):  # a stranger's word is not enough for a connection
        read(b"\0\x08" + flags + HEAD[4:] + RECORD[:-2])


@pytest.mark.parametrize("code", [1, 2, 4, 5])
def test_a_server_that_fails_says_so(code: int) -> None:
    with pytest.raises(ServerFailed, match=f"code {code}"):
        read(HEAD[:3] + bytes((0x80 | code,)) + HEAD[4:6] + b"\0\0" + HEAD[8:])


def test_aliases_lead_to_the_address_and_the_shortest_time_counts() -> None:
    alias = b"\xc0\x0c\0\5\0\1\0\0\0\x1e\0\4\1b\xc0\x0e"  # b.example, 30 s
    target = b"\1B\xc0\x0e" + RECORD[2:]
    stranger = b"\1c\xc0\x0e" + RECORD[2:-1] + b"\x09"
    head = HEAD[:6] + b"\0\3" + HEAD[8:]
    assert read(head + alias + target + stranger) == dns_message.Answer(
        (IPv4Address("192.0.2.1"),), 30
    )


def test_a_time_with_the_highest_bit_is_none() -> None:
    record = RECORD[:6] + b"\x80\0\0\1" + RECORD[10:]
    assert read(HEAD + record).ttl == 0


@pytest.mark.parametrize(
    "text", ["a\\b.example", "", ".", "a..b", "a" * 64, "é.example", ".".join("ab" * 90)]
)
def test_names_that_cannot_be_asked_for(text: str) -> None:
    with pytest.raises(ValueError, match="is not a domain name"):
        dns_message.parse_name(text)
