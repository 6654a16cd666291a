"""Tables over whole passes on the running kernel: made, kept, repaired, cleaned up."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from holdfast.engine.claim import Claim, ClaimState
from holdfast.engine.intent import Action
from holdfast.engine.kinds.nft import CHANGED, nft_table
from holdfast.host.nft import driver as nft_driver
from holdfast.host.nft.nft_ruleset import Ruleset, Table
from holdfast.paths import Paths
from tests.host.nft.nft_scene import Scene, listed, nft, verbs
from tests.namespace import Namespace

pytestmark = pytest.mark.usefixtures("netns")

BODY = """
    set plain { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 } }
    set ranges { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/24 } }
    set counted { type inet_service; counter; elements = { 9001 } }
    set seen { type ipv4_addr; flags dynamic; timeout 1h; }
    set brief { type ipv4_addr; flags timeout; elements = { 192.0.2.3 } }
    map ports { type inet_service : ipv4_addr; elements = { 80 : 192.0.2.9 } }
    counter hits { }
    quota budget { over 10 mbytes }
    chain input {
        type filter hook input priority 0; policy accept;
        meta l4proto udp counter counter name hits quota name budget
        meta l4proto udp quota over 1 mbytes counter drop
        udp dport @counted accept
        udp dport { 9001, 9002 } update @seen { ip saddr } accept comment "two"
        ip saddr @plain drop
    }
    chain helper { ip saddr @ranges return; }
"""
TABLE = nft_table("inet", "holdfast_test", BODY)
NAME = "inet holdfast_test"
FOREIGN_TABLES = """
table inet filter {
    chain input { type filter hook input priority 5; counter accept; }
}
table ip nat {
    chain post { type nat hook postrouting priority 100; masquerade; }
}
table inet other {
    comment "holdfast by somebody else"
    set plain { type ipv4_addr; }
}
"""


@pytest.fixture
def scene(root: Path) -> Scene:
    return Scene(Paths(root))


def _traffic() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for port in (9001, 9002, 9003):
            sender.sendto(b"x" * 100, ("127.0.0.1", port))


def test_what_is_written_is_kept(scene: Scene) -> None:
    report = scene.apply(TABLE)
    assert report.converged
    assert verbs(report) == ["create"]
    assert report.rounds == 1
    assert f'comment "holdfast {TABLE.fields["content"]}"' in listed(NAME)
    assert 'udp dport { 9001, 9002 } update @seen { ip saddr } accept comment "two"' in listed(NAME)
    before = scene.claims()
    again = scene.apply(TABLE)
    assert again.converged
    assert not again.before.changes
    assert scene.claims() == before


def test_what_changes_by_itself_is_not_drift(scene: Scene) -> None:
    scene.apply(TABLE)
    before = listed(NAME)
    _traffic()
    nft(f"add element {NAME} brief {{ 192.0.2.4 timeout 1h }}")
    nft(f"add element {NAME} seen {{ 192.0.2.5 }}")
    assert listed(NAME) != before
    assert "127.0.0.1 " in listed(NAME)
    assert "counter packets 3" in listed(NAME)
    assert not scene.plan(TABLE).changes


def test_transactions_of_others_are_no_news(scene: Scene) -> None:
    scene.apply(TABLE)
    before = scene.claims()
    nft(FOREIGN_TABLES)
    again = scene.apply(TABLE)
    assert not again.before.changes
    assert scene.claims() == before


@pytest.mark.parametrize(
    "drift",
    [
        f"add rule {NAME} input accept",
        f"insert rule {NAME} helper drop",
        f"flush chain {NAME} helper",
        f"add chain {NAME} another",
        f"add chain {NAME} input {{ policy drop; }}",
        f"rename chain {NAME} helper elsewhere",
        f"add element {NAME} plain {{ 192.0.2.7 }}",
        f"delete element {NAME} plain {{ 192.0.2.1 }}",
        f"add element {NAME} ranges {{ 10.9.0.0/24 }}",
        f"delete element {NAME} counted {{ 9001 }}",
        f"delete element {NAME} brief {{ 192.0.2.3 }}",
        f"delete element {NAME} ports {{ 80 }}\nadd element {NAME} ports {{ 80 : 192.0.2.8 }}",
        f"add set {NAME} more {{ type ipv4_addr; }}",
        f"add quota {NAME} budget {{ over 20 mbytes }}",
        f"add counter {NAME} misses",
        f"add table {NAME} {{ flags dormant; }}",
        f"delete table {NAME}\nadd table {NAME} {{"
        f' comment "holdfast {TABLE.fields["content"]}"; }}',
    ],
)
def test_drift_is_repaired(scene: Scene, drift: str) -> None:
    scene.apply(TABLE)
    before = listed(NAME)
    nft(drift)
    assert listed(NAME) != before
    report = scene.apply(TABLE)
    assert verbs(report) == ["update"]
    (change,) = report.before.changes[0].changes
    assert (change.field, change.before) == ("content", CHANGED)
    assert report.converged
    assert listed(NAME) == before
    assert not scene.plan(TABLE).changes


def _handle(netns: Namespace, words: str) -> str:
    lines = netns.run("nft", "-a", "list", "table", *NAME.split()).splitlines()
    return next(line for line in lines if words in line).rpartition(" ")[2]


def test_a_rule_changed_in_its_place_is_repaired(scene: Scene, netns: Namespace) -> None:
    scene.apply(TABLE)
    before = listed(NAME)
    handle = _handle(netns, "saddr @plain")
    nft(f"replace rule {NAME} input handle {handle} ip saddr @plain accept")
    assert verbs(scene.apply(TABLE)) == ["update"]
    assert listed(NAME) == before


def test_a_rule_with_another_nameless_set_of_the_same_name(scene: Scene, netns: Namespace) -> None:
    """The kernel gives the new set the name that the old one had."""
    scene.apply(TABLE)
    before = listed(NAME)
    handle = _handle(netns, "9002 }")
    nft(f"delete rule {NAME} input handle {handle}")
    previous = _handle(netns, "dport @counted")
    nft(
        f"add rule {NAME} input handle {previous} udp dport {{ 9001, 9003 }}"
        ' update @seen { ip saddr } accept comment "two"'
    )
    assert listed(NAME) == before.replace("9002 }", "9003 }")
    assert verbs(scene.apply(TABLE)) == ["update"]
    assert listed(NAME) == before


def test_one_element_among_thousands(scene: Scene) -> None:
    elements = ", ".join(f"10.0.{n >> 8}.{n & 255}" for n in range(3000))
    table = nft_table(
        "ip", "holdfast_many", f"set s {{ type ipv4_addr; elements = {{ {elements} }}; }}"
    )
    assert scene.apply(table).converged
    assert not scene.plan(table).changes
    # Taken out and put back it is the same set, though a hash table may tell it otherwise.
    nft(f"delete element ip holdfast_many s {{ {elements} }}")
    nft(f"add element ip holdfast_many s {{ {elements} }}")
    assert not scene.plan(table).changes
    nft('add element ip holdfast_many s { 10.1.0.0 comment "of another shape" }')
    assert scene.plan(table).changes
    scene.apply(table)
    nft("delete element ip holdfast_many s { 10.0.7.7 }")
    nft("add element ip holdfast_many s { 10.1.7.7 }")
    assert verbs(scene.apply(table)) == ["update"]


@pytest.mark.parametrize("how", [f"delete table {NAME}", "flush ruleset"])
def test_a_table_that_is_gone_is_made_again(scene: Scene, how: str) -> None:
    scene.apply(TABLE)
    nft(how)
    report = scene.apply(TABLE)
    assert verbs(report) == ["create"]
    assert report.converged


def test_a_foreign_table_in_place_of_ours_is_left_alone(scene: Scene) -> None:
    scene.apply(TABLE)
    nft(f"delete table {NAME}\ntable {NAME} {{\nchain c {{ accept; }}\n}}")
    before = listed()
    report = scene.apply(TABLE)
    assert not report.results
    (conflict,) = report.after.conflicts
    assert conflict.holder == "no comment"
    assert listed() == before
    gone = scene.apply()
    assert not gone.results
    assert listed() == before
    assert not scene.claims()


def test_foreign_tables_are_not_touched(scene: Scene) -> None:
    nft(FOREIGN_TABLES)
    before = listed()
    second = nft_table("ip6", "holdfast_second", "chain c { accept; }")
    assert scene.apply(TABLE, second).converged
    changed = nft_table("ip6", "holdfast_second", "chain c { drop; }")
    assert verbs(scene.apply(TABLE, changed)) == ["update"]
    assert verbs(scene.apply(changed)) == ["delete"]
    assert verbs(scene.apply(changed, action=Action.DELETE)) == ["delete"]
    assert listed() == before
    assert not scene.claims()


def test_without_a_ledger_ours_are_known_by_what_they_are_made_of(
    scene: Scene, tmp_path: Path
) -> None:
    scene.apply(TABLE)
    _traffic()
    anew = Scene(Paths(tmp_path / "new"))
    report = anew.apply(TABLE)
    assert not report.results
    assert report.converged
    assert not anew.apply(TABLE).before.changes
    nft(f"add rule {NAME} input accept")
    later = Scene(Paths(tmp_path / "later"))
    assert verbs(later.apply(TABLE)) == ["update"]
    assert not later.apply(TABLE).before.changes
    assert verbs(Scene(Paths(tmp_path / "newer")).apply()) == ["delete"]
    assert not listed()


def test_a_change_that_fails_leaves_the_table_and_says_why(scene: Scene) -> None:
    other = nft_table("ip", "holdfast_other", "chain c { accept; }")
    scene.apply(TABLE)
    before = listed(NAME)
    wrong = nft_table("inet", "holdfast_test", "chain c {\n    ip saddr @nowhere accept\n}")
    report = scene.apply(wrong, other)
    (failure,) = {failure for _, failure in report.failures}
    assert failure.key == TABLE.key
    assert "@nowhere" in failure.error
    assert "nft: " in failure.error
    assert listed(NAME) == before
    assert "accept" in listed("ip holdfast_other")
    # What was not written is not remembered as ours, and neither is what it was to replace.
    nft(f"add rule {NAME} input accept")
    scene.apply(wrong, other)
    assert verbs(scene.apply(TABLE, other)) == ["update"]
    assert listed(NAME) == before


def test_what_another_wrote_right_after_us_is_not_taken_for_ours(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = nft_driver._nft
    calls: list[str] = []

    def disturbed(script: str) -> str:
        said = real(script)
        if not calls:
            nft(f"add rule {NAME} input accept")
        calls.append(script)
        return said

    monkeypatch.setattr(nft_driver, "_nft", disturbed)
    report = scene.apply(TABLE)
    assert verbs(report) == ["create", "update"]
    assert report.converged
    assert not scene.plan(TABLE).changes


def test_a_claim_holds_the_listing_once_it_is_owned(scene: Scene) -> None:
    scene.apply(TABLE)
    claims = scene.claims()
    assert isinstance(claims, dict)
    claim = claims[TABLE.key]
    assert isinstance(claim, Claim)
    assert claim.state is ClaimState.OWNED
    assert claim.fields["content"] == TABLE.fields["content"]
    assert claim.fields["listing"]


def test_a_host_that_stays_reads_only_what_changed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once claims remember what was written, transactions of others write no claims anew."""
    read: list[str] = []
    real = Ruleset._read_inner

    def counted(ruleset: Ruleset, table: Table) -> str:
        read.append(table.name)
        return real(ruleset, table)

    monkeypatch.setattr(Ruleset, "_read_inner", counted)
    more = nft_table("ip", "holdfast_more", "chain c { accept; }")
    with scene.staying() as apply:
        assert apply(TABLE, more).converged
        assert sorted(read) == ["holdfast_more", "holdfast_test"]
        assert not apply(TABLE, more).before.changes
        assert len(read) == 2
        claims = scene.claims()
        nft(FOREIGN_TABLES)
        assert not apply(TABLE, more).before.changes
        assert len(read) == 4
        assert scene.claims() == claims
        nft(f"add rule {NAME} input accept")
        assert verbs(apply(TABLE, more))[-1] == "update"
        assert not scene.plan(TABLE, more).changes
