"""Tables that somebody else made, compared with what is declared."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.nft import nft_table
from holdfast.engine.plan import Candidate
from holdfast.errors import DriverError
from holdfast.host.nft import nft_contents, nft_ruleset, nft_scratch
from holdfast.paths import Paths
from tests.host.nft.nft_scene import Scene, listed, nft
from tests.host.nft.test_nft_pass import BODY, NAME, TABLE
from tests.lan.network import until
from tests.namespace import Namespace

pytestmark = pytest.mark.usefixtures("netns")

THEIRS = f'table {NAME} {{ comment "by hand"; {BODY} }}'
SLIM = nft_table(
    "inet",
    "holdfast_test",
    """
    map ways { type ipv4_addr : verdict; elements = { 192.0.2.1 : goto one } }
    set lan { type ipv4_addr; elements = { 192.0.2.1 } }
    limit slow { rate 5/second }
    chain one { tcp dport { 22, 80 } accept; tcp dport { 443, 8443 } counter drop; }
    chain two { ip saddr @lan accept; ip daddr vmap @ways; limit name "slow" accept; }
    chain early { type filter hook input priority -10; jump one; }
    chain late { type filter hook input priority -10; jump two; }
    """,
)
# The same by one command at a time, in another order, with a rule that came and went.
BY_HAND = f"""
add table {NAME}
add chain {NAME} two
add chain {NAME} one
add limit {NAME} slow {{ rate 5/second; }}
add chain {NAME} early {{ type filter hook input priority -10; }}
add rule {NAME} one tcp dport {{ 443, 8443 }} counter drop
add chain {NAME} late {{ type filter hook input priority -10; }}
insert rule {NAME} one tcp dport {{ 80, 22 }} accept
add set {NAME} lan {{ type ipv4_addr; }}
add element {NAME} lan {{ 192.0.2.7 }}
add rule {NAME} two ip saddr @lan accept
add map {NAME} ways {{ type ipv4_addr : verdict; }}
add rule {NAME} two ip daddr vmap @ways
add rule {NAME} two limit name slow accept
delete element {NAME} lan {{ 192.0.2.7 }}
add element {NAME} lan {{ 192.0.2.1 }}
add element {NAME} ways {{ 192.0.2.1 : goto one }}
add rule {NAME} early jump one
add rule {NAME} late jump two
"""


@pytest.fixture
def scene(root: Path) -> Scene:
    return Scene(Paths(root))


def _candidate(scene: Scene, table: Artifact = TABLE) -> Candidate:
    plan = scene.plan(table)
    (candidate,) = plan.candidates
    assert not plan.operations
    assert len(plan.conflicts) == (1 if candidate.changes else 0)
    return candidate


def _differs(scene: Scene, table: Artifact = TABLE) -> str:
    changes = _candidate(scene, table).changes
    return str(changes[0].before) if changes else ""


def _comes_and_goes() -> None:
    for line in BY_HAND.strip().splitlines():
        nft(line)


def test_adopted_as_it_is_and_then_there_is_nothing_to_do(scene: Scene) -> None:
    nft(THEIRS)
    before = listed()
    scene.adopt(TABLE)
    claims = scene.claims()
    for _ in range(2):
        report = scene.apply(TABLE)
        assert not report.before.changes
        assert not report.before.candidates
        assert report.converged
    assert listed() == before, "its comment included"
    assert scene.claims() == claims


def test_one_made_by_and_by_is_the_same(scene: Scene) -> None:
    _comes_and_goes()
    assert _differs(scene, SLIM) == ""
    scene.adopt(SLIM)
    assert not scene.apply(SLIM).before.changes


def test_what_changes_by_itself_makes_no_difference(scene: Scene) -> None:
    nft(THEIRS)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for port in (9001, 9002, 9003):
            sender.sendto(b"x" * 100, ("127.0.0.1", port))
    nft(f"add element {NAME} seen {{ 192.0.2.5 }}")
    assert "packets 3" in listed(NAME)
    assert _differs(scene) == ""


@pytest.mark.parametrize(
    ("drift", "where"),
    [
        (f"add rule {NAME} input accept", "chain input"),
        (f"flush chain {NAME} helper", "chain helper"),
        (f"add chain {NAME} more", "chain more"),
        (f"add chain {NAME} input {{ policy drop; }}", "chain input"),
        (f"add element {NAME} plain {{ 192.0.2.7 }}", "set plain"),
        (f"delete element {NAME} ranges {{ 10.0.0.0/24 }}", "set ranges"),
        (f"add element {NAME} ports {{ 81 : 192.0.2.8 }}", "map ports"),
        (f"add counter {NAME} misses", "counter misses"),
        (f"add quota {NAME} budget {{ over 20 mbytes }}", "quota budget"),
        (f"add table {NAME} {{ flags dormant; }}", "flags of the table"),
        (f"rename chain {NAME} helper other", "chain helper, chain other"),
        (
            "\n".join(f"add chain {NAME} {name}" for name in "abcde"),
            "chain a, chain b, chain c and 2 more",
        ),
    ],
)
def test_what_differs_is_named_and_left_alone(scene: Scene, drift: str, where: str) -> None:
    nft(THEIRS)
    nft(drift)
    before = listed()
    assert _differs(scene) == f"other than declared: {where}"
    report = scene.apply(TABLE)
    assert not report.results
    assert not report.converged
    assert listed() == before
    assert not scene.claims()


@pytest.mark.parametrize(
    ("line", "instead", "where"),
    [
        ("{ 443, 8443 } counter drop", "{ 443, 8444 } counter drop", "chain one"),
        ("{ 443, 8443 } counter drop", "{ 443, 8443 } counter accept", "chain one"),
        ("{ 443, 8443 } counter drop", '{ 443, 8443 } counter drop comment "x"', "chain one"),
        ("vmap @ways", "vmap { 192.0.2.1 : goto one }", "chain two"),
        ("192.0.2.1 : goto one", "192.0.2.1 : drop", "map ways"),
        ("rate 5/second", "rate 6/second", "limit slow"),
        ("priority -10; jump one", "priority -9; jump one", "chain early, order of early and late"),
        ("set lan { type ipv4_addr;", "set lan { type ipv4_addr; flags interval;", "set lan"),
    ],
)
def test_a_small_difference_is_one(scene: Scene, line: str, instead: str, where: str) -> None:
    body = SLIM.payload.decode()
    assert body.count(line) == 1
    nft(f"table {NAME} {{ {body.replace(line, instead)} }}")
    assert _differs(scene, SLIM) == f"other than declared: {where}"


def test_at_one_hook_the_order_of_chains_counts(scene: Scene) -> None:
    body = SLIM.payload.decode()
    early, late = [line for line in body.splitlines() if "hook input" in line]
    nft(f"table {NAME} {{ {body.replace(early, '').replace(late, late + chr(10) + early)} }}")
    assert _differs(scene, SLIM) == "other than declared: order of early and late"


def test_limits_of_set_elements_count(scene: Scene) -> None:
    body = "set s { type ipv4_addr; flags dynamic; limit rate %d/second; }"
    nft(f"table {NAME} {{\n{body % 5}\n}}")
    assert _differs(scene, nft_table("inet", "holdfast_test", body % 5)) == ""
    other = nft_table("inet", "holdfast_test", body % 6)
    assert _differs(scene, other) == "other than declared: set s"


@pytest.fixture
def held(netns: Namespace) -> Iterator[None]:
    """A table that a program holds for as long as it runs."""
    del netns  # where it is made
    program = subprocess.Popen(
        ["nft", "-i"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert program.stdin is not None
    owned = BY_HAND.replace(f"add table {NAME}", f"add table {NAME} {{ flags owner; }}")
    program.stdin.write(owned)
    program.stdin.flush()
    try:
        until(lambda: "jump two" in nft("list ruleset"), "the held table")
        yield
    finally:
        program.stdin.close()
        program.wait(10)


@pytest.mark.usefixtures("held")
def test_one_that_a_program_holds_is_not_adopted(scene: Scene) -> None:
    assert "flags owner" in listed()
    assert "a program holds it (flags owner)" in _differs(scene, SLIM)


def test_a_very_big_one(scene: Scene) -> None:
    rules = "\n".join(f"ip saddr 10.{n >> 8}.{n & 255}.1 counter drop" for n in range(10000))
    rules += "\n" + "\n".join(f"tcp dport {{ {n}, {n + 1} }} drop" for n in range(1, 500))
    elements = ", ".join(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(30000))
    body = f"set s {{ type ipv4_addr; elements = {{ {elements} }}; }}\nchain c {{\n{rules}\n}}"
    table = nft_table("inet", "holdfast_test", body)
    nft(f"table {NAME} {{\n{body}\n}}")
    scene.adopt(table)
    assert not scene.apply(table).before.changes
    nft(f"delete table {NAME}")
    nft(f"table {NAME} {{\n{body}\n}}\nadd rule {NAME} c accept")
    assert _differs(scene, table) == "other than declared: chain c"


def test_a_table_that_cannot_be_made_is_not_compared(scene: Scene) -> None:
    nft(THEIRS)
    table = nft_table("inet", "holdfast_test", "chain c {\n    gibberish\n}")
    assert "not known: nft: syntax error" in _differs(scene, table)


def test_the_world_outside_sees_nothing_of_the_comparison(scene: Scene, netns: Namespace) -> None:
    nft(THEIRS)
    before = netns.run("nft", "-j", "list", "ruleset")
    generation = _generation()
    _candidate(scene)
    assert _generation() == generation
    assert netns.run("nft", "-j", "list", "ruleset") == before


def _generation() -> int:
    ruleset = nft_ruleset.Ruleset(nft_ruleset.connect())
    try:
        return ruleset.generation()
    finally:
        ruleset.close()


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    real: Callable[..., nft_contents.Contents] = nft_scratch.contents

    def counted(*arguments: object) -> nft_contents.Contents:
        made.append("made")
        return real(*arguments)

    monkeypatch.setattr(nft_scratch, "contents", counted)
    return made


def test_compared_only_where_a_declared_name_is_taken(scene: Scene, compared: list[str]) -> None:
    nft("table inet theirs {\nchain c { accept; }\n}")
    scene.apply(TABLE)
    scene.apply(TABLE)
    scene.apply()
    nft(THEIRS)
    scene.apply()
    assert not compared
    scene.adopt(TABLE)
    assert len(compared) == 1
    scene.apply(TABLE)
    nft(f"add rule {NAME} input accept")
    scene.apply(TABLE)
    assert len(compared) == 1


def test_a_host_that_stays_compares_once(scene: Scene, compared: list[str]) -> None:
    nft(THEIRS)
    with scene.staying() as apply:
        for _ in range(3):
            assert apply(TABLE).before.candidates
            nft("add table ip another")
        assert len(compared) == 1
        nft(f"add rule {NAME} input accept")
        assert apply(TABLE).before.conflicts
        assert len(compared) == 3, "as it is written, and as it is saved and loaded again"


def test_who_may_make_no_namespace_is_told_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise DriverError("cannot make a network namespace: Operation not permitted")

    monkeypatch.setattr(nft_scratch, "_leave_the_network", refused)
    nft(THEIRS)
    assert _differs(scene) == (
        "not known: cannot make a network namespace: Operation not permitted"
    )
