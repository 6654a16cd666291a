"""Rules on the running kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.driver import Scope
from holdfast.engine.kinds.rule import rule
from holdfast.host.netlink.rules import RuleDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import TAG, create, delete, error, exists, see, succeed, update
from tests.namespace import Namespace


@pytest.fixture
def driver(netns: Namespace) -> Iterator[RuleDriver]:
    netns.veth("lan", "lanp")
    sock = NetlinkSocket()
    yield RuleDriver(sock, TAG)
    sock.close()


RULES = [
    rule(4, 100, table=100),
    rule(6, 100, table=100),
    rule(4, 0, source="10.0.0.0/8", table=100),
    rule(4, 100, table=254),
    rule(4, 100, table=100000),
    rule(6, 32000, table=4294967294),
    rule(4, 100, source="10.0.0.0/8", destination="192.0.2.1/32", table=100),
    rule(6, 100, source="fd00::/8", destination="2001:db8::1/128", table=100),
    rule(4, 100, iif="lan", oif="eth9", table=100),
    rule(6, 100, iif="lo", table=100),
    rule(4, 100, fwmark=0x100, table=100),
    rule(4, 100, fwmark=0x100, fwmask=0xFF00, table=100),
    rule(4, 100, fwmark=0, fwmask=0xFF, table=100),
    rule(6, 100, fwmark=0, table=100),
    rule(6, 100, fwmark=0xFFFFFFFF, fwmask=0x1, table=100),
    rule(4, 100, fwmark=0x100, table=254, suppress=0),
    rule(6, 0, fwmark=0, iif="lo", table=254, suppress=0),
    rule(4, 100, source="10.0.0.0/8", action="blackhole"),
    rule(4, 100, action="unreachable"),
    rule(6, 100, action="prohibit"),
]


@pytest.mark.uml
@pytest.mark.parametrize("artifact", RULES, ids=lambda artifact: artifact.key.name)
def test_round_trip(driver: RuleDriver, netns: Namespace, artifact: Artifact) -> None:
    untouched = everything(netns)
    assert see(driver, artifact) == {}
    succeed(driver, create(artifact))
    seen = see(driver)[artifact.key]
    assert seen.artifact.fields == {**artifact.fields, "protocol": TAG}
    assert (seen.tag, seen.holder) == ("protocol 72", "")
    assert exists(driver, create(artifact))
    succeed(driver, delete(seen.artifact))
    assert see(driver, artifact) == {}
    assert everything(netns) == untouched
    succeed(driver, delete(seen.artifact))


def everything(netns: Namespace) -> list[str]:
    return [
        *netns.ip("-4 -N rule show").splitlines(),
        *netns.ip("-6 -N rule show").splitlines(),
    ]


def test_the_same_rule_of_another_survives_beside_ours(
    driver: RuleDriver, netns: Namespace
) -> None:
    netns.ip("rule add from 10.0.0.0/8 table 100 pref 100")
    netns.ip("rule add from 10.0.0.0/8 table 100 pref 100 proto static")
    foreign = everything(netns)
    artifact = rule(4, 100, source="10.0.0.0/8", table=100)
    succeed(driver, create(artifact))
    sightings = driver.observe(Scope(frozenset({artifact.key}))).sightings[artifact.key]
    assert [(sighting.tag, sighting.holder) for sighting in sightings] == [
        ("", "protocol 0 (made by hand or by a program that sets none)"),
        ("", "protocol static"),
        ("protocol 72", ""),
    ]
    succeed(driver, delete(sightings[2].artifact))
    assert everything(netns) == foreign
    # Planned from a claim alone: ours is gone, and the others are not ours to delete.
    succeed(driver, delete(artifact))
    assert everything(netns) == foreign


def test_an_adopted_rule_is_deleted_under_its_own_protocol(
    driver: RuleDriver, netns: Namespace
) -> None:
    artifact = rule(4, 100, source="10.0.0.0/8", table=100)
    succeed(driver, create(artifact))
    netns.ip("rule add from 10.0.0.0/8 table 100 pref 100 proto static")
    sightings = driver.observe(Scope(frozenset({artifact.key}))).sightings[artifact.key]
    succeed(driver, delete(sightings[1].artifact))
    (left,) = driver.observe(Scope(frozenset({artifact.key}))).sightings[artifact.key]
    assert left.tag == "protocol 72"


# What `ip` can add, and the words by which its identity differs from the modelled rule.
UNMODELLED = [
    ("from 10.0.0.0/8 tos 0x10 table 100", "tos 0x10"),
    ("not from 10.0.0.0/8 table 100", "not"),
    ("from 10.0.0.0/8 uidrange 0-9 table 100", "uidrange"),
    ("from 10.0.0.0/8 ipproto tcp table 100", "ipproto"),
    ("from 10.0.0.0/8 ipproto tcp sport 22 table 100", "sport"),
    ("from 10.0.0.0/8 ipproto tcp dport 22-23 table 100", "dport"),
    ("from 10.0.0.0/8 tun_id 5 table 100", "tun_id"),
    ("from 10.0.0.0/8 table 100 suppress_prefixlength 0", "suppress_prefixlength"),
    ("from 10.0.0.0/8 table 100 suppress_ifgroup 5", "suppress_ifgroup"),
    ("from 10.0.0.0/8 realms 5 table 100", "realms"),
    ("from 10.0.0.0/8 goto 32766", "goto 32766"),
    ("from 10.0.0.0/8 nop", "nop"),
    ("from 10.0.0.0/8 l3mdev", "l3mdev"),
]


@pytest.mark.parametrize(("command", "word"), UNMODELLED, ids=[word for _, word in UNMODELLED])
def test_a_rule_with_unmodelled_selectors_is_another_rule(
    driver: RuleDriver, netns: Namespace, command: str, word: str
) -> None:
    plain = rule(4, 100, source="10.0.0.0/8", table=100)
    netns.ip(f"rule add {command} pref 100 proto 72")
    (special,) = see(driver, plain)
    assert special != plain.key and word in special.name
    with_special = everything(netns)
    succeed(driver, create(plain))
    assert {plain.key, special} == set(see(driver))
    # Both carry our tag. Deleting either must not hit the other, whichever the kernel sees first.
    succeed(driver, delete(see(driver)[plain.key].artifact))
    assert everything(netns) == with_special
    succeed(driver, create(plain), delete(see(driver)[special].artifact))
    assert set(see(driver)) == {plain.key}


def test_host_bits_make_another_rule(driver: RuleDriver, netns: Namespace) -> None:
    netns.ip("rule add from 10.0.0.5/24 table 100 pref 100")
    assert see(driver, rule(4, 100, source="10.0.0.0/24", table=100)) == {}


def test_the_kernels_exists_is_not_believed_of_a_wider_rule(
    driver: RuleDriver, netns: Namespace
) -> None:
    """The kernel says EEXIST of `from all` where `from 10.0.0.0/8` is."""
    narrow, wide = rule(4, 100, source="10.0.0.0/8", table=100), rule(4, 100, table=100)
    succeed(driver, create(narrow))
    with pytest.raises(AssertionError, match="File exists"):
        netns.ip("rule add table 100 pref 100 proto 72")
    succeed(driver, create(wide))
    assert set(see(driver)) == {narrow.key, wide.key}


def test_deleting_the_wider_rule_leaves_the_narrow_ones(
    driver: RuleDriver, netns: Namespace
) -> None:
    """The kernel's delete would hit the first narrow one instead."""
    narrow = rule(4, 100, source="10.0.0.0/8", table=100)
    narrower = rule(4, 100, source="10.0.0.0/8", iif="lan", table=100)
    wide = rule(4, 100, table=100)
    succeed(driver, create(narrow), create(narrower))
    before = everything(netns)
    succeed(driver, create(wide))
    (result,) = succeed(driver, delete(see(driver)[wide.key].artifact))
    assert everything(netns) == before
    assert result.notes == (
        f"{narrow.key} was lifted for a moment and put back",
        f"{narrower.key} was lifted for a moment and put back",
    )


def test_a_rule_that_cannot_step_aside_is_left_in_its_place(
    driver: RuleDriver, netns: Namespace
) -> None:
    narrow, wide = rule(4, 100, source="10.0.0.0/8", table=100), rule(4, 100, table=100)
    succeed(driver, create(narrow), create(wide))
    netns.ip("rule add from 10.1.0.0/16 table 200 pref 100")
    before = everything(netns)
    said = error(driver, delete(see(driver)[wide.key].artifact))
    assert "the kernel would take `100: from 10.0.0.0/8 lookup 100` for it" in said
    assert "changing places with `100: from 10.1.0.0/16 lookup 200`" in said
    assert everything(netns) == before


def test_an_adopted_wide_rule_never_costs_a_foreign_narrow_one(
    driver: RuleDriver, netns: Namespace
) -> None:
    """Protocol 0 is no selector to the kernel: a delete that names it fits every protocol."""
    netns.ip("rule add from 10.0.0.0/8 table 100 pref 100 proto static")
    netns.ip("rule add from 10.0.0.0/8 to 10.9.0.0/16 table 100 pref 100 proto bird")
    netns.ip("rule add from 10.0.0.0/8 to 10.9.0.0/16 table 100 pref 100")
    before = everything(netns)
    adopted = rule(4, 100, source="10.0.0.0/8", destination="10.9.0.0/16", table=100)
    sightings = driver.observe(Scope(frozenset({adopted.key}))).sightings[adopted.key]
    (untagged,) = [one for one in sightings if one.artifact.fields["protocol"] == 0]
    assert "cannot step aside" in error(driver, delete(untagged.artifact))
    assert everything(netns) == before


def test_a_narrow_rule_is_deleted_from_behind_the_wide_one(driver: RuleDriver) -> None:
    wide, narrow = rule(4, 100, table=100), rule(4, 100, fwmark=1, table=100)
    succeed(driver, create(wide), create(narrow))
    (result,) = succeed(driver, delete(see(driver)[narrow.key].artifact))
    assert result.notes == ()
    assert set(see(driver)) == {wide.key}


def test_rules_are_not_changed(driver: RuleDriver) -> None:
    artifact = RULES[0]
    assert "all identity" in error(driver, update(artifact, artifact))


def test_foreign_rules_are_reported_only_where_they_matter(
    driver: RuleDriver, netns: Namespace
) -> None:
    netns.ip("rule add from 10.0.0.0/8 table 100 pref 100")
    assert see(driver) == {}
    wanted = rule(4, 100, source="10.0.0.0/8", table=100)
    assert set(see(driver, wanted)) == {wanted.key}
    main = rule(4, 32766, table=254)
    (seen,) = see(driver, claimed=[main]).values()
    assert seen.holder == "protocol kernel"
