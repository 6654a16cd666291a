"""The nftables driver alone: exclusive creates, guarded changes, and what it makes of failures."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Failure, Result, Scope
from holdfast.engine.kinds.nft import CHANGED, FOREIGN, nft_table
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host.netlink.socket import NETFILTER, NetlinkSocket, Transport, open_transport
from holdfast.host.nft import driver as nft_driver
from holdfast.host.nft import nft_ruleset
from holdfast.host.nft.driver import NftDriver
from holdfast.host.nft.nft_written import WrittenTables
from holdfast.paths import Paths
from tests.host.nft.nft_scene import listed, nft
from tests.namespace import Namespace
from tests.unprivileged import as_user

pytestmark = pytest.mark.usefixtures("netns")

TABLE = nft_table("inet", "holdfast_test", "chain c {\n    ip saddr 192.0.2.1 drop\n}")
OTHER = nft_table("inet", "holdfast_test", "chain c {\n    ip saddr 192.0.2.2 drop\n}")
NAME = "inet holdfast_test"
THEIRS = f"table {NAME} {{\nchain theirs {{ accept; }}\n}}"


@pytest.fixture
def written(root: Path) -> WrittenTables:
    return WrittenTables(Paths(root))


@pytest.fixture
def driver(netns: Namespace, written: WrittenTables) -> Iterator[NftDriver]:
    del netns  # its socket is to be of that namespace
    made = NftDriver("boot/namespace", written)
    yield made
    made.close()


def _apply(driver: NftDriver, verb: Verb, table: Artifact) -> Result:
    counted: list[int] = []
    (result,) = driver.apply([Operation(verb, table, ("Test/x",), "test")], counted.append)
    assert counted == [1]
    assert result.done == (1 if result.ok else 0)
    return result


def _failure(driver: NftDriver, verb: Verb, table: Artifact) -> Failure:
    (failure,) = _apply(driver, verb, table).failures
    assert failure.key == table.key
    return failure


def _content(driver: NftDriver) -> object:
    seen = driver.observe(Scope(frozenset({TABLE.key}))).sightings
    return seen[TABLE.key][0].artifact.fields["content"] if seen else None


def test_made_changed_and_deleted(driver: NftDriver) -> None:
    assert _content(driver) is None
    assert _apply(driver, Verb.CREATE, TABLE).ok
    assert _content(driver) == TABLE.fields["content"]
    assert _apply(driver, Verb.UPDATE, OTHER).ok
    assert _content(driver) == OTHER.fields["content"]
    assert "192.0.2.2" in listed(NAME)
    assert "192.0.2.1" not in listed(NAME)
    assert _apply(driver, Verb.DELETE, OTHER).ok
    assert _content(driver) is None
    assert _apply(driver, Verb.DELETE, OTHER).ok


def test_our_tables_are_told_by_their_comment(driver: NftDriver) -> None:
    nft(f'add table ip a {{ comment "holdfast {TABLE.fields["content"]}"; }}')
    nft('add table ip b { comment "holdfast by hand"; }')
    nft(THEIRS)
    seen = driver.observe(Scope(frozenset({TABLE.key}))).sightings
    assert set(seen) == {Key("nft", "ip a"), TABLE.key}
    (ours,) = seen[Key("nft", "ip a")]
    assert ours.tag == "comment holdfast"
    assert ours.artifact.fields["content"] == CHANGED
    (theirs,) = seen[TABLE.key]
    assert (theirs.tag, theirs.holder) == ("", "no comment")
    assert theirs.artifact.fields["content"] == FOREIGN


def test_a_create_does_not_touch_what_is_there(driver: NftDriver) -> None:
    nft(THEIRS)
    before = listed()
    failure = _failure(driver, Verb.CREATE, TABLE)
    assert failure.exists
    assert "File exists" in failure.error
    assert listed() == before


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.REPLACE, Verb.DELETE])
def test_what_has_become_foreign_is_not_touched(driver: NftDriver, verb: Verb) -> None:
    nft(THEIRS)
    before = listed()
    assert "its comment is not ours (no comment)" in _failure(driver, verb, OTHER).error
    assert listed() == before


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.DELETE])
def test_not_even_when_it_becomes_so_in_the_last_moment(
    driver: NftDriver, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _apply(driver, Verb.CREATE, TABLE).ok
    real = nft_driver._nft

    def late(script: str) -> str:
        nft(f"delete table {NAME}\n{THEIRS}")
        return real(script)

    monkeypatch.setattr(nft_driver, "_nft", late)
    assert "No such file" in _failure(driver, verb, OTHER).error
    assert "theirs" in listed(NAME)
    assert "192.0.2" not in listed(NAME)


def test_a_delete_that_comes_too_late_is_done(
    driver: NftDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _apply(driver, Verb.CREATE, TABLE).ok
    real = nft_driver._nft

    def late(script: str) -> str:
        nft("flush ruleset")
        return real(script)

    monkeypatch.setattr(nft_driver, "_nft", late)
    assert _apply(driver, Verb.DELETE, TABLE).ok


def test_an_update_of_what_is_gone_fails(driver: NftDriver) -> None:
    assert "gone" in _failure(driver, Verb.UPDATE, TABLE).error


def test_one_failure_does_not_stop_the_others(driver: NftDriver) -> None:
    wrong = nft_table("ip", "holdfast_wrong", "chain c {\n    gibberish\n}")
    operations = [Operation(Verb.CREATE, one, ("Test/x",), "test") for one in (wrong, TABLE)]
    first, second = driver.apply(operations, lambda _count: None)
    assert "nft: syntax error" in first.failures[0].error
    assert "gibberish" in first.failures[0].error
    assert second.ok


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("chain c { }\n}\ndelete table inet theirs\ntable inet x {", "line 2 of it: it closes"),
        ("}", "closes a brace"),
        ("chain c {", "opens a brace"),
        ('chain c { accept comment "', "opens a quote"),
        ("chain c { # }\n", "opens a brace"),
        ('chain c { accept comment "a } b"; }\n}', "line 2 of it: it closes"),
        ('include "/etc/passwd"', "includes a file"),
        ('chain c {include "/etc/passwd"\n}', "includes a file"),
        ('chain c { accept comment "#"; }\n}\nflush ruleset\ntable ip x { # "', "line 2"),
        ("chain c { }\n\\\n}\nflush ruleset\n{", "line 3 of it: it closes"),
    ],
)
def test_a_body_stays_between_its_braces(driver: NftDriver, body: str, why: str) -> None:
    nft("add table inet theirs")
    before = listed()
    hostile = nft_table("inet", "holdfast_test", body)
    assert why in _failure(driver, Verb.CREATE, hostile).error
    assert listed() == before


def test_quotes_and_notes_may_hold_what_bodies_may_not(driver: NftDriver) -> None:
    body = '# } include " {\nchain geo-include {\n    accept comment "} include # {"\n}'
    assert _apply(driver, Verb.CREATE, nft_table("inet", "holdfast_test", body)).ok
    assert '"} include # {"' in listed(NAME)


@pytest.mark.parametrize("name", ["x; flush ruleset", "x\nflush ruleset", "", "x {", "../x"])
def test_names_are_checked(driver: NftDriver, name: str) -> None:
    hostile = nft_table("inet", name, "")
    assert "is no family and name" in _failure(driver, Verb.CREATE, hostile).error


def test_a_table_is_not_emptied_by_a_plan_without_its_body(driver: NftDriver) -> None:
    assert _apply(driver, Verb.CREATE, TABLE).ok
    hollow = Artifact(OTHER.key, OTHER.fields)
    assert "does not carry" in _failure(driver, Verb.UPDATE, hollow).error
    assert "192.0.2.1" in listed(NAME)


def test_who_may_not_read_tables_knows_nothing_of_them(driver: NftDriver) -> None:
    with as_user():
        with pytest.raises(DriverError, match="Operation not permitted"):
            driver.observe(Scope(frozenset({TABLE.key})))
        # And where nothing has to do with tables, nothing needs to be known.
        assert not driver.observe(Scope()).sightings


class _Failing:
    """Netfilter sockets that have so many answers in them, and lose all after that."""

    left = 0

    def __init__(self) -> None:
        self._inner: Transport = open_transport(NETFILTER)
        self.send, self.close = self._inner.send, self._inner.close

    def recv(self, size: int, /) -> bytes:
        type(self).left -= 1
        if self.left < 0:
            raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))
        return self._inner.recv(size)


@pytest.mark.parametrize("answers", range(6))
def test_lost_answers_are_unknown_not_empty(
    driver: NftDriver, written: WrittenTables, answers: int
) -> None:
    assert _apply(driver, Verb.CREATE, TABLE).ok
    _Failing.left = answers
    failing = NftDriver("boot/namespace", written, lambda: NetlinkSocket(_Failing))
    with pytest.raises(DriverError, match="ENOBUFS"):
        failing.observe(Scope())
    failing.close()


def test_a_kernel_without_nf_tables_has_no_tables(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nft_ruleset, "_SUBSYSTEM", 200 << 8)  # another that it does not have
    driver = NftDriver("boot/namespace", written)
    assert not driver.observe(Scope(frozenset({TABLE.key}))).sightings
    driver.close()


def test_a_kernel_without_netfilter_has_no_tables(written: WrittenTables) -> None:
    def refuse() -> NetlinkSocket:
        raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT))

    driver = NftDriver("boot/namespace", written, refuse)
    assert not driver.observe(Scope(frozenset({TABLE.key}))).sightings
    assert "Protocol not supported" in _failure(driver, Verb.CREATE, TABLE).error
