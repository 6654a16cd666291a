"""The pass against a host in memory: what it does when things go wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent
from holdfast.engine.kinds import route
from holdfast.engine.kinds.route import Nexthop
from holdfast.engine.observed import Loss
from holdfast.engine.plan import Plan, Verb
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import MAX_ROUNDS, Pass, Report
from holdfast.errors import Refused
from tests.engine.memory_host import MemoryHost, MemoryLedger, Object, Route
from tests.engine.memory_routes import pack_prefix

BRIDGE: Fields = {"type": "bridge", "up": True}
LINK, ADDRESS = Key("link", "lan0"), Key("address", "192.0.2.1/24 dev lan0")
RULE, FILE = Key("rule", "100: from all lookup 100"), Key("file", "/etc/motd")
SYSCTL = Key("sysctl", "net.ipv4.ip_forward")
OFFICE, HOME = pack_prefix("10.0.0.0/16"), pack_prefix("10.1.0.0/16")


def ensure(key: Key, fields: Fields, *requires: Key, creates: bool = True) -> Intent:
    return Intent(
        f"Test/{key.kind}", Artifact(key, fields), "router.yaml:1", Action.ENSURE, requires, creates
    )


def routes(*keys: bytes, dev: str = "lan0") -> BulkIntent:
    shared = route.template(4, nexthops=(Nexthop(dev=dev),))
    return BulkIntent(
        "RouteList/office", route.batch(shared, list(keys)), "router.yaml:9", (Key("link", dev),)
    )


def approve(_plan: Plan) -> None:
    pass


def run(
    host: MemoryHost,
    ledger: MemoryLedger,
    *intents: Intent | BulkIntent,
    check: Callable[[Plan], None] = approve,
    generation: int = 1,
) -> Report:
    numbers = itertools.count(100)
    policy = Policy(host.epoch, allow_mass_delete=True)
    made = Pass(
        Desired(intents), host, ledger, policy, generation, nonce=lambda: str(next(numbers))
    )
    return made.run(check)


LAN = (ensure(LINK, BRIDGE), ensure(ADDRESS, {"prefix_length": 24}, LINK), routes(OFFICE, HOME))


def test_a_pass_brings_about_what_is_declared_and_records_it() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    host.put(SYSCTL, {"value": "0"})
    report = run(host, ledger, *LAN, ensure(SYSCTL, {"value": "1"}))
    assert report.converged
    assert report.rounds == 1
    assert not report.failures
    assert {key.kind for key in host.objects} == {"link", "address", "sysctl"}
    assert {one.protocol for one in host.routes} == {72}
    link, address, sysctl = (ledger.held[key] for key in (LINK, ADDRESS, SYSCTL))
    assert (link.provenance, link.state, link.nonce) == (Provenance.CREATED, ClaimState.OWNED, "")
    assert link.fields == {**BRIDGE, "ifindex": 1}
    assert address.fields == {"prefix_length": 24, "protocol": 72}
    assert (sysctl.provenance, sysctl.original) == (Provenance.SET, {"value": "0"})
    assert not any(key.kind == "route" for key in ledger.held)


def test_a_second_pass_changes_and_writes_nothing() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    run(host, ledger, *LAN)
    host.log.clear()
    ledger.writes.clear()
    report = run(host, ledger, *LAN, generation=2)
    assert report.converged
    assert report.rounds == 0
    assert host.log == []
    assert ledger.writes == []


def test_claims_are_pending_before_the_first_change_and_marks_outlive_them() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    seen: list[Claim] = []
    host.after_apply = lambda: seen.append(ledger.held[LINK])
    run(host, ledger, ensure(LINK, BRIDGE))
    assert seen[0].state is ClaimState.PENDING
    assert seen[0].nonce == "100"
    assert host.log == [f"create {LINK}", f"settle {LINK}"]
    states = [(claim.state, claim.nonce) for put, _ in ledger.writes for claim in put]
    # pending before the create, owned with its mark once seen, without it once it is taken off
    assert states == [
        (ClaimState.PENDING, "100"),
        (ClaimState.OWNED, "100"),
        (ClaimState.OWNED, ""),
    ]
    assert host.objects[LINK][0].group == ""


def test_a_failure_blocks_its_dependants_only() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    host.failing[LINK] = "Operation not permitted (EPERM)"
    report = run(host, ledger, *LAN, ensure(RULE, {"table": 100}))
    words = {str(failure.key): failure.error for _, failure in report.failures}
    assert words[str(LINK)] == "Operation not permitted (EPERM)"
    assert words[str(ADDRESS)] == f"not tried, because {LINK} failed"
    assert words["route 10.0.0.0/16"] == f"not tried, because {LINK} failed"
    assert set(host.objects) == {RULE}
    assert set(ledger.held) == {RULE}
    assert not report.converged


def test_what_failed_is_tried_again_by_the_next_pass() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    host.failing[LINK] = "Device or resource busy (EBUSY)"
    assert not run(host, ledger, *LAN).converged
    host.failing.clear()
    assert run(host, ledger, *LAN).converged


def test_side_effects_are_repaired_in_a_second_round() -> None:
    """As when deleting a primary address takes its secondaries along."""
    host, ledger = MemoryHost(), MemoryLedger()
    second = Key("address", "192.0.2.2/24 dev lan0")
    run(host, ledger, *LAN, ensure(second, {"prefix_length": 24}, LINK))

    def sweep() -> None:
        if ADDRESS not in host.objects and host.log[-1] == f"delete {ADDRESS}":
            host.objects.pop(second)

    host.after_apply = sweep
    report = run(host, ledger, LAN[0], ensure(second, {"prefix_length": 24}, LINK), LAN[2])
    assert report.rounds == 2
    assert report.converged
    assert second in host.objects
    assert ADDRESS not in host.objects


def test_what_keeps_being_undone_ends_after_a_few_rounds() -> None:
    host, ledger = MemoryHost(), MemoryLedger()

    def undo() -> None:
        host.objects.pop(RULE, None)

    host.after_apply = undo
    report = run(host, ledger, ensure(RULE, {"table": 100}))
    assert report.rounds == MAX_ROUNDS
    assert not report.converged
    assert RULE not in ledger.held


def test_a_refused_plan_changes_and_writes_nothing() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    run(host, ledger, *LAN)
    before, claims = dict(host.objects), dict(ledger.held)
    ledger.writes.clear()

    def refuse(_plan: Plan) -> None:
        raise Refused("no")

    with pytest.raises(Refused):
        run(host, ledger, check=refuse)
    assert (host.objects, ledger.held, ledger.writes) == (before, claims, [])


def test_a_later_round_deletes_nothing_that_was_not_approved() -> None:
    """Routes could not be read at first. That they can be later must not surprise anybody."""
    host, ledger = MemoryHost(), MemoryLedger()
    run(host, ledger, *LAN)
    host.unknown = {"route": "answers were lost"}
    host.after_apply = host.unknown.clear
    report = run(host, ledger, LAN[0], LAN[1], ensure(RULE, {"table": 100}))
    assert len(host.routes) == 2
    assert not report.converged
    assert [op.verb.value for op in report.after.changes] == ["delete"]
    report = run(host, ledger, LAN[0], LAN[1], ensure(RULE, {"table": 100}))
    assert report.converged
    assert host.routes == []


def test_an_unreadable_kind_leaves_its_claims_alone() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    run(host, ledger, *LAN)
    held = dict(ledger.held)
    host.unknown = {"address": "answers were lost"}
    report = run(host, ledger, *LAN)
    assert not report.converged
    assert ledger.held == held


def test_something_foreign_in_the_way_is_not_taken_and_not_claimed() -> None:
    """It came between the plan and the create: the exclusive create says so."""
    host, ledger = MemoryHost(), MemoryLedger()

    def intrude(_plan: Plan) -> None:
        host.put(ADDRESS, {"prefix_length": 24}, 4)
        host.routes.append(Route(route.template(4, nexthops=(Nexthop(dev="lan1"),)), HOME, 4))

    report = run(host, ledger, *LAN, check=intrude)
    assert {failure.key for _, failure in report.failures if failure.exists} == {
        ADDRESS,
        Key("route", "10.1.0.0/16"),
    }
    assert [one.protocol for one in host.objects[ADDRESS]] == [4]
    assert ADDRESS not in ledger.held
    assert [str(one.desired.key) for one in report.after.conflicts] == ["route 10.1.0.0/16"]
    assert not report.converged


def test_a_replaced_link_is_claimed_by_its_new_index() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    run(host, ledger, ensure(LINK, {"type": "vlan", "vlan_id": 10}))
    report = run(host, ledger, ensure(LINK, {"type": "vlan", "vlan_id": 20}))
    assert report.converged
    assert ledger.held[LINK].fields == {"type": "vlan", "vlan_id": 20, "ifindex": 2}
    assert (ledger.held[LINK].nonce, host.objects[LINK][0].group) == ("", "")


def test_a_replacement_that_somebody_else_beat_us_to_is_not_taken() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    run(host, ledger, ensure(LINK, {"type": "vlan", "vlan_id": 10}))

    def intrude(_plan: Plan) -> None:
        host.objects.pop(LINK)
        host.put(LINK, {"type": "vlan", "vlan_id": 30})

    report = run(host, ledger, ensure(LINK, {"type": "vlan", "vlan_id": 20}), check=intrude)
    assert host.objects[LINK][0].fields["vlan_id"] == 30
    assert len(report.after.conflicts) == 1


def test_a_setting_is_claimed_anew_in_a_new_boot() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    nic = Key("link", "eth0")
    host.put(nic, {"type": "", "mtu": 1500})
    wanted = ensure(nic, {"mtu": 9000}, creates=False)
    run(host, ledger, wanted)
    host.epoch = "the next boot"
    host.objects.clear()
    host.put(nic, {"type": "", "mtu": 1400})
    assert run(host, ledger, wanted).converged
    claim = ledger.held[nic]
    assert (claim.epoch, claim.provenance) == ("the next boot", Provenance.SET)
    assert (claim.original, claim.fields["ifindex"]) == ({"mtu": 1400}, 2)


def test_a_setting_is_set_back_once_nothing_declares_it() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    host.put(SYSCTL, {"value": "0"})
    for value in ("1", "2"):
        run(host, ledger, replace(ensure(SYSCTL, {"value": value}), revert=True))
    assert (ledger.held[SYSCTL].original, ledger.held[SYSCTL].revert) == ({"value": "0"}, True)
    host.failing = {SYSCTL: "read-only"}
    assert not run(host, ledger).converged
    assert ledger.held[SYSCTL].revert
    host.failing = {}
    report = run(host, ledger)
    assert report.converged
    assert host.objects[SYSCTL][0].fields == {"value": "0"}
    assert ledger.held == {}
    assert run(host, ledger).rounds == 0


def test_what_is_asked_for_last_says_whether_a_setting_is_set_back() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    host.put(SYSCTL, {"value": "0"})
    wanted = ensure(SYSCTL, {"value": "1"})
    run(host, ledger, replace(wanted, revert=True))
    run(host, ledger, wanted)
    assert not ledger.held[SYSCTL].revert
    run(host, ledger)
    assert host.objects[SYSCTL][0].fields == {"value": "1"}
    assert ledger.held == {}


def test_claims_of_another_namespace_outlive_a_pass_in_this_one() -> None:
    """Of this boot: even a tagged object of the same name, and a setting that is as declared."""
    host, ledger = MemoryHost(epoch="boot/1"), MemoryLedger()
    host.put(SYSCTL, {"value": "0"})
    wanted = (ensure(LINK, BRIDGE), ensure(RULE, {}), ensure(SYSCTL, {"value": "1"}))
    run(host, ledger, *wanted)
    ledger.held[LINK] = replace(ledger.held[LINK], nonce="77")
    ledger.held[RULE] = replace(ledger.held[RULE], state=ClaimState.DELETING)
    before = dict(ledger.held)
    other = MemoryHost(epoch="boot/2")
    other.put(SYSCTL, {"value": "1"})
    for intents in ((), (ensure(SYSCTL, {"value": "1"}),)):
        run(other, ledger, *intents)
        other.put(RULE, {}, protocol=72)
        run(other, ledger, ensure(RULE, {}), *intents)
        assert ledger.held == before
        other.objects.pop(RULE)
    host.epoch = "the next boot/1"
    host.objects.clear()
    run(host, ledger)
    assert ledger.held == {}


def test_a_kept_setting_of_an_earlier_boot_is_still_not_ours_to_delete() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    nic = Key("link", "eth0")
    host.put(nic, {"type": "", "mtu": 1500})
    run(host, ledger, ensure(nic, {"mtu": 9000}, creates=False))
    host.epoch = "the next boot"
    run(host, ledger, ensure(nic, {"mtu": 9000}, creates=False))
    gone = Intent("Test/link", Artifact(nic, {}), "", Action.DELETE)
    report = run(host, ledger, gone)
    assert nic in host.objects
    assert len(report.after.blocked) == 1


def test_a_pending_link_that_nothing_declares_any_more_is_settled() -> None:
    """Killed after the create, and taken out of the configuration meanwhile."""
    host, ledger = MemoryHost(), MemoryLedger()
    host.put(LINK, BRIDGE, group="4711")
    claim = Claim(
        LINK, ("Test/link",), Provenance.CREATED, ClaimState.PENDING, BRIDGE, "", 1,
        host.epoch, "4711",
    )  # fmt: skip
    ledger.held[LINK] = claim
    report = run(host, ledger, ensure(RULE, {"table": 100}))
    assert report.converged
    assert host.objects[LINK] == [Object({**BRIDGE, "ifindex": 1})]
    held = ledger.held[LINK]
    assert (held.state, held.nonce, held.fields["ifindex"]) == (ClaimState.OWNED, "", 1)


def test_what_another_writer_put_in_place_of_ours_is_theirs() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    run(host, ledger, *LAN)
    host.objects[ADDRESS] = []
    host.put(ADDRESS, {"prefix_length": 24}, 0)
    run(host, ledger, *LAN)
    report = run(host, ledger, LAN[0], LAN[2])
    assert host.objects[ADDRESS][0].protocol == 0
    assert report.converged
    assert ADDRESS not in ledger.held


def test_without_tags_claims_do() -> None:
    """A kernel that drops the tag silently: what an exclusive create made is claimed."""
    host, ledger = MemoryHost(), MemoryLedger()
    host.tag = 0
    run(host, ledger, LAN[0], LAN[1])
    assert ledger.held[ADDRESS].state is ClaimState.OWNED
    assert run(host, ledger, LAN[0]).converged
    assert ADDRESS not in host.objects


def test_a_foreign_rule_is_not_claimed_in_place_of_ours() -> None:
    """Ours was made and taken away again at once, while another's equal rule stands."""
    host, ledger = MemoryHost(), MemoryLedger()
    host.put(RULE, {"table": 100}, 4)

    def undo() -> None:
        host.objects[RULE] = [one for one in host.objects[RULE] if one.protocol == 4]

    host.after_apply = undo
    run(host, ledger, ensure(RULE, {"table": 100}))
    assert RULE not in ledger.held
    run(host, ledger, ensure(LINK, BRIDGE))
    assert [one.protocol for one in host.objects[RULE]] == [4]


def test_what_one_looks_at_another_may_write() -> None:
    """Who only observes a file has no content to give; who writes it has."""
    look = Intent("Test/reader", Artifact(FILE, {}), "", Action.OBSERVE)
    written = Artifact(FILE, {"sha256": "aa", "mode": "0644"}, payload=b"content")
    made = Pass(
        Desired((look, Intent("Test/writer", written, ""))), MemoryHost(), MemoryLedger(), Policy()
    )
    (operation,) = made.plan().changes
    assert isinstance(operation.subject, Artifact)
    assert operation.subject.payload == b"content"


def test_progress_counts_every_artifact_of_a_round() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    told: list[tuple[int, int]] = []
    made = Pass(
        Desired(LAN), host, ledger, Policy(host.epoch), progress=lambda *one: told.append(one)
    )
    made.run(approve)
    assert told[-1] == (4, 4)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_batch_is_updated_and_what_its_driver_remembers_is_claimed() -> None:
    host, ledger = MemoryHost(), MemoryLedger()
    host.put(LINK, BRIDGE)
    host.put(Key("link", "lan1"), BRIDGE)
    run(host, ledger, routes(OFFICE, HOME))
    shared = route.expand(routes(dev="lan1").batch.template, OFFICE)
    host.remembered = {shared.key: {**shared.fields, "foreign_nexthops": ("via fe80::1",)}}
    report = run(host, ledger, routes(OFFICE, HOME, dev="lan1"), generation=2)
    assert report.converged
    (result,) = report.results
    assert (result.operation.verb, result.operation.count, result.done) == (Verb.UPDATE, 2, 2)
    assert {one.shared.nexthops for one in host.routes} == {(Nexthop(dev="lan1"),)}
    claim = ledger.held[shared.key]
    assert (claim.owners, claim.generation) == (("RouteList/office",), 2)
    assert claim.fields == host.remembered[shared.key]


def test_file_that_is_changed_in_the_moment_it_was_made_stays_ours() -> None:
    key = Key("file", "/etc/1")
    wanted = Desired((Intent("File/1", Artifact(key, {"sha256": "aa", "mode": "0644"}), ""),))
    host, ledger = MemoryHost(), MemoryLedger()

    def tamper() -> None:
        host.after_apply = lambda: None
        host.objects[key] = [replace(host.objects[key][0], fields={"sha256": "cc", "mode": "0644"})]

    host.after_apply = tamper
    policy = Policy(epoch="this boot")
    Pass(wanted, host, ledger, policy, nonce=lambda: "7").run(lambda _: None)
    assert ledger.held[key].state is ClaimState.OWNED
    Pass(wanted, host, ledger, policy, nonce=lambda: "8").run(lambda _: None)
    assert host.objects[key][0].fields["sha256"] == "aa"


def test_what_was_to_go_and_is_kept_after_all_is_no_convergence() -> None:
    """Nobody foresaw what others would lose: it came between the plan and the delete."""
    host, ledger = MemoryHost(), MemoryLedger()
    run(host, ledger, *LAN)
    host.failing[ADDRESS] = "would take what others made"
    host.after_apply = lambda: host.losses.update({ADDRESS: [Loss("route 10.9.0.0/16")]})
    report = run(host, ledger, LAN[0], generation=2)
    assert [(one.subject, one.removed) for one in report.after.orphans] == [
        (Artifact(ADDRESS, {"prefix_length": 24, "protocol": 72}), False)
    ]
    assert report.undeleted == {ADDRESS}
    assert not report.converged and not report.after.changes

    report = run(host, ledger, LAN[0], generation=3)
    assert not report.failures
    assert report.converged, "it is kept as planned"
