"""What is left of rules when handles and counts are taken out of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import Run
from holdfast.host.nft import nft_rules, nft_ruleset
from tests.host.nft.nft_scene import nft

_RULES_OF = (10 << 8) | 7
# Runs of one layout, runs of one length and several layouts, and rules that tell of something
# which is not always there.
MIXED = (
    *(f"ip daddr 10.0.0.{number} tcp dport {number} counter accept" for number in range(1, 200)),
    *(
        "counter accept" if number % 2 else 'accept comment "123456789 123456789"'
        for number in range(20)
    ),
    *(
        "ip saddr 10.0.0.1 ct mark 7 accept"
        if number % 3
        else "ip saddr 10.0.0.1 meta mark 7 accept"
        for number in range(30)
    ),
    "quota over 1 mbytes drop",
    "limit rate 5/second counter accept",
)


def _runs() -> list[Run]:
    sock = nft_ruleset.connect()
    try:
        header = b"\2\0\0\0" + attributes.text(1, "t")
        return sock.dump_runs(_RULES_OF, header, "rules").runs
    finally:
        sock.close()


def _write(rules: tuple[str, ...]) -> list[Run]:
    """As the only rules of a table that is not the one of before."""
    body = "\n".join(rules)
    nft(f"add table ip t\ndelete table ip t\ntable ip t {{ chain c {{\n{body}\n}}; }}")
    return _runs()


def _one_by_one(runs: list[Run]) -> Iterator[Run]:
    for run in runs:
        for number in range(run.count):
            at = run.start + number * run.stride
            yield Run(run.data, at, run.length, run.kind, run.flags, 1)


def _text(runs: list[Run]) -> bytes:
    return b"".join(nft_rules.declared(runs))


@pytest.mark.usefixtures("netns")
def test_it_is_the_same_in_whatever_pieces_it_comes() -> None:
    runs = _write(MIXED)
    assert max(run.count for run in runs) > 20
    assert _text(runs) == _text(list(_one_by_one(runs)))
    assert _text(_write(MIXED)) == _text(runs)


@pytest.mark.usefixtures("netns")
@pytest.mark.parametrize("at", [0, 1, 100, 198, 199, 210, 222, 240, len(MIXED) - 2, len(MIXED) - 1])
def test_any_rule_that_is_another_shows(at: int) -> None:
    before = _text(_write(MIXED))
    old = MIXED[at]
    new = old.replace("accept", "drop") if "accept" in old else old.replace("1 mbytes", "2 mbytes")
    assert _text(_write((*MIXED[:at], new, *MIXED[at + 1 :]))) != before
    assert _text(_write((*MIXED[:at], *MIXED[at + 1 :]))) != before


@pytest.mark.usefixtures("netns")
def test_what_is_counted_does_not() -> None:
    before = _text(_write(MIXED))
    counted = tuple(rule.replace("counter", "counter packets 5 bytes 900") for rule in MIXED)
    used = tuple(rule.replace("1 mbytes", "1 mbytes used 7 bytes") for rule in counted)
    assert used != MIXED
    assert _text(_write(used)) == before
