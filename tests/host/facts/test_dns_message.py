"""DNS messages as bytes."""

from __future__ import annotations

import contextlib
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.facts import dns_message
from holdfast.host.facts.dns_message import Nonsense, ServerFailed, Truncated

NAME = (b"a", b"example")
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


@pytest.mark.parametrize("text", ["", ".", "a..b", "a" * 64, "é.example", ".".join("ab" * 90)])
def test_names_that_cannot_be_asked_for(text: str) -> None:
    with pytest.raises(ValueError, match="is not a domain name"):
        dns_message.parse_name(text)
