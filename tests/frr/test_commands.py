"""What was meant is what FRR stores, or it is refused: against a real bgpd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.frr.commands import MOST_BYTES, Unsendable, line, password, word
from holdfast.frr.vty import Vty
from tests.frr.ground import VERSIONS, ground, needs_frr
from tests.namespace import private_namespaces

_PIECES = (
    "|", "| ", " | include x", "\n", "\r", "\0", "\t", "  ", "end", "exit", "!", "#", "?", "\\",
    '"', "'", "no router bgp 65001", "do write", "é", "\x7f", "\x9b", "\u2028", "\u00a0", "a",
    "\ud800", "router bgp 9", ";", "$(x)", "%s", "x" * 300,
)  # fmt: skip
_AWKWARD = st.lists(st.sampled_from(_PIECES), max_size=8).map("".join)


_REFUSED = (
    "", "  ", "a\nb", "a\0b", "a\tb", "a\x9bb", "x | include y", "x| y", "! a", "#a", "\ud800",
    "x" * MOST_BYTES, "é" * (MOST_BYTES // 2),
)  # fmt: skip


@pytest.mark.parametrize("text", _REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(Unsendable):
        line(text)


def test_runs_of_spaces_are_one() -> None:
    assert line("  neighbor   a description  x  ").text == "neighbor a description x"


@pytest.mark.parametrize("text", ["", "a b", "a\n", "\u2028"])
def test_no_word(text: str) -> None:
    with pytest.raises(Unsendable):
        word(text)


@pytest.mark.parametrize("text", ["", "a b", "x" * 81])
def test_no_password(text: str) -> None:
    with pytest.raises(Unsendable) as refused:
        password(text)
    assert not text or text not in str(refused.value)


@pytest.fixture(scope="module", params=VERSIONS)
def bgpd(request: pytest.FixtureRequest) -> Iterator[Vty]:
    needs_frr(request.param)
    with (
        private_namespaces(),
        TemporaryDirectory(prefix="hf-frr-") as folder,
        ground(request.param, Path(folder)) as started,
    ):
        Path(folder).chmod(0o755)
        vty = Vty(started.frr("bgpd").folder / "bgpd.vty")
        begun = ["configure terminal", "router bgp 65001", "neighbor 192.0.2.2 remote-as 65002"]
        vty.ask_all(begun)
        yield vty
        vty.close()


@pytest.mark.programs
@given(st.one_of(st.text(max_size=40), _AWKWARD))
@settings(max_examples=300)
def test_what_is_stored_is_what_was_meant(bgpd: Vty, text: str) -> None:
    before = _stored(bgpd)
    try:
        sent = line(f"neighbor 192.0.2.2 description {text}")
    except Unsendable:
        return
    answer = bgpd.ask(sent)
    meant = sent.text.removeprefix("neighbor 192.0.2.2 description").strip(" ")
    if not meant:
        assert answer.failed
        assert _stored(bgpd) == before
        return
    assert not answer.failed
    lines = [one for one in before if " description " not in one]
    lines.insert(2, f" neighbor 192.0.2.2 description {meant}")
    assert _stored(bgpd) == lines


def _stored(vty: Vty) -> list[str]:
    text = vty.show("do write terminal")
    block = text[text.index("router bgp") :]
    return block[: block.index("\nexit")].split("\n")
