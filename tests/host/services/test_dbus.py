"""Values on the D-Bus wire, and answers that are none."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import DriverError
from holdfast.host.services import dbus_codec
from holdfast.host.services.dbus import Bus

_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "y": st.integers(0, 255),
    "b": st.booleans(),
    "u": st.integers(0, 2**32 - 1),
    "x": st.integers(-(2**63), 2**63 - 1),
    "s": _TEXT,
    "as": st.lists(_TEXT),
    "(sub)": st.tuples(_TEXT, st.integers(0, 2**32 - 1), st.booleans()),
    "a(st)": st.lists(st.tuples(_TEXT, st.integers(0, 2**64 - 1))),
    "aas": st.lists(st.lists(_TEXT)),
}


@given(st.lists(st.sampled_from(sorted(_VALUES)), max_size=5), st.data())
def test_what_is_written_is_read(kinds: list[str], data: st.DataObject) -> None:
    values = [data.draw(_VALUES[kind]) for kind in kinds]
    writer = dbus_codec.Writer()
    for kind, value in zip(kinds, values, strict=True):
        writer.write(kind, value)
    reader = dbus_codec.Reader(bytes(writer.data))
    assert [reader.read(kind) for kind in kinds] == values


def test_a_signature_is_split_into_its_types() -> None:
    assert list(dbus_codec.types("sa{sv}(i(ss))aau")) == ["s", "a{sv}", "(i(ss))", "aau"]


def test_a_text_with_a_nul_is_not_sent() -> None:
    with pytest.raises(ValueError, match="NUL"):
        dbus_codec.Writer().write("s", "a\0b")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "the connection was closed"),
        (b"B" + bytes(15), "another byte order"),
        (b"l\x02\x00\x01\xff\xff\xff\xff" + bytes(8), "is not one"),
        (b"l\x02\x00\x01\0\0\0\0\x01\0\0\0\x08\0\0\0\x05\x01u\0\xff", "closed"),
        (b"l\x02\x00\x01\0\0\0\0\x01\0\0\0\x08\0\0\0\x08\x01g\0\xffab\0", "cannot be read"),
    ],
)
def test_an_answer_that_is_none_is_an_error(answer: bytes, words: str) -> None:
    ours, theirs = socket.socketpair()

    def serve() -> None:
        theirs.recv(1000)
        theirs.sendall(b"OK 0123\r\n")
        theirs.recv(1000)
        theirs.sendall(answer)
        theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    ours.settimeout(10)
    bus = Bus(ours, direct=True)
    try:
        with pytest.raises(DriverError, match=words):
            bus.call("a.b", "/a", "a.b", "Ask")
    finally:
        bus.close()
        thread.join()


def test_one_who_is_not_let_in_is_told_so() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"REJECTED EXTERNAL\r\n")
    with theirs, ours, pytest.raises(DriverError, match="REJECTED EXTERNAL"):
        Bus(ours, direct=True)
