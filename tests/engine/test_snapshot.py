"""Whatever is applied over whatever: the way back leads back, and is the same after a crash."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import snapshot, snapshot_form
from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.claim import Claim
from holdfast.engine.intent import Desired, Intent
from holdfast.engine.kinds import KINDS, route
from holdfast.engine.kinds.neighbour import neighbour
from holdfast.engine.kinds.route import Nexthop
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass
from holdfast.engine.snapshot import Snapshot
from holdfast.errors import Refused
from tests.engine.memory_host import MemoryHost, MemoryLedger
from tests.engine.universe import desired, hosts

EPOCH = "this boot"
POLICY = Policy(epoch=EPOCH, allow_mass_delete=True)
_numbers = itertools.count(1000)


class Killed(Exception):  # noqa: N818 (no error)
    pass


def run(wanted: Desired, host: MemoryHost, ledger: MemoryLedger) -> Snapshot | None:
    """A pass; the way back as it was stored ahead of it."""
    stored: list[bytes] = []

    def ahead(claims: Mapping[Key, Claim], observed: Observed, plan: Plan) -> None:
        taken = snapshot.take(plan, observed, claims, EPOCH, 72, {}, _content)
        stored.append(snapshot_form.pack(taken))

    generation, nonce = next(_numbers), lambda: str(next(_numbers))
    Pass(wanted, host, ledger, POLICY, generation, nonce=nonce, ahead=ahead).run(lambda _: None)
    return snapshot_form.unpack(stored[0])


def _content(seen: Artifact) -> bytes:
    return f"content {seen.fields['sha256']}".encode()


def revert(before: Snapshot, host: MemoryHost, ledger: MemoryLedger) -> list[object]:
    """Answers what could not be brought back."""
    wanted = snapshot.desired(before, ledger.claims(), EPOCH)
    report = Pass(wanted, host, ledger, POLICY, nonce=lambda: str(next(_numbers))).run(
        lambda _: None
    )
    now = ledger.claims()
    put, remove = snapshot.claims_after(before, wanted, now, report.after, EPOCH)
    ledger.write_claims(put, remove)
    assert not report.after.changes
    return list(snapshot.stuck_at(wanted, now, report.after))


def state(host: MemoryHost) -> object:
    """Without the numbers that tell a link from one that was made anew."""
    objects = {
        key: sorted(
            str(sorted(_lasting(one.fields).items(), key=str)) + str(one.protocol)
            for one in several
        )
        for key, several in host.objects.items()
    }
    return objects, sorted(host.routes, key=str)


def _lasting(fields: Fields) -> Fields:
    passing = ("ifindex", "allow_overlap")  # the latter is no field of an object outside
    return {name: value for name, value in fields.items() if name not in passing}


def owned(ledger: MemoryLedger) -> dict[Key, Claim]:
    return {
        key: replace(claim, fields=_lasting(claim.fields)) for key, claim in ledger.claims().items()
    }


def disturb(data: st.DataObject, host: MemoryHost) -> None:
    """Somebody removes what is there, ours or not."""
    for key in sorted(host.objects):
        if key.kind not in ("sysctl", "link") and data.draw(st.booleans()):
            del host.objects[key]
    host.routes = [one for one in host.routes if data.draw(st.booleans())]


@pytest.mark.long
@given(st.data(), desired(contradicting=False), desired(contradicting=False), hosts())
@settings(max_examples=200, deadline=None)
def test_the_way_back_leads_back(
    data: st.DataObject, first: Desired, second: Desired, host: MemoryHost
) -> None:
    ledger = MemoryLedger()
    run(first, host, ledger)
    if data.draw(st.booleans()):
        disturb(data, host)
    _as_kernels_are(host)
    was, held = copy.deepcopy(state(host)), owned(ledger)
    before = run(second, host, ledger)
    assert before is not None
    assert revert(before, host, ledger) == []
    assert state(host) == was
    assert owned(ledger) == held


def _as_kernels_are(host: MemoryHost) -> None:
    """Each link has an MTU, declared or not. And one object for each identity: a second copy of
    ours is deleted by any pass."""
    for key, several in host.objects.items():
        del several[1:]
        if key.kind == "link":
            several[0] = replace(several[0], fields={"mtu": 1280, **several[0].fields})


@pytest.mark.long
@given(st.integers(0, 6), desired(contradicting=False), desired(contradicting=False), hosts())
@settings(max_examples=150, deadline=None)
def test_a_revert_that_was_interrupted(
    point: int, first: Desired, second: Desired, host: MemoryHost
) -> None:
    """After any number of stages it is begun again, and ends where it would have ended."""
    ledger = MemoryLedger()
    run(first, host, ledger)
    _as_kernels_are(host)
    was, held = copy.deepcopy(state(host)), owned(ledger)
    before = run(second, host, ledger)
    assert before is not None
    stages = 0

    def killed() -> None:
        nonlocal stages
        stages += 1
        if stages > point:
            raise Killed

    host.after_apply = killed
    try:
        revert(before, host, ledger)
    except Killed:
        host.after_apply = lambda: None
        assert revert(before, host, ledger) == []
    assert state(host) == was
    assert owned(ledger) == held


@pytest.mark.long
@given(desired(contradicting=False), desired(contradicting=False), hosts())
@settings(max_examples=100, deadline=None)
def test_what_a_later_pass_made_goes_too(first: Desired, second: Desired, host: MemoryHost) -> None:
    """While a generation waits, facts come and passes are made for them."""
    ledger = MemoryLedger()
    _as_kernels_are(host)
    was, held = copy.deepcopy(state(host)), owned(ledger)
    before = run(first, host, ledger)
    assert before is not None
    run(second, host, ledger)
    assert revert(before, host, ledger) == []
    assert state(host) == was
    assert owned(ledger) == held


def test_a_hundred_thousand_routes_stay_packed() -> None:
    keys = [route.pack_key(bytes((10, n >> 16, n >> 8 & 255, n & 255)), 32) for n in range(100_000)]
    shared = route.template(4, nexthops=(Nexthop("192.0.2.254", "wan0"),))
    before = Snapshot(EPOCH, 72, (), (), (Batch(KINDS["route"], shared, keys),))
    packed = snapshot_form.pack(before)
    assert len(packed) < 1_000_000
    (batch,) = snapshot_form.unpack(packed).batches
    assert (batch.template, list(batch.keys)) == (shared, keys)


@pytest.mark.parametrize("spoil", [b"", b"rubbish", b"\x78\x9c"])
def test_a_damaged_way_back_is_not_read(spoil: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        snapshot_form.unpack(spoil)


def test_what_could_not_be_brought_back_is_refused() -> None:
    """A table that somebody changed by hand: nobody knows what it is made of."""
    host, ledger = MemoryHost(), MemoryLedger()
    key = Key("nft", "inet t")
    wanted = Desired((Intent("FirewallPolicy/a", Artifact(key, {"content": "aa"}), ""),))
    run(wanted, host, ledger)
    other = Desired((Intent("FirewallPolicy/a", Artifact(key, {"content": "bb"}), ""),))
    with pytest.raises(Refused, match="inet t would be changed, and could not be brought back"):
        run(other, host, ledger)
    assert [one.fields for one in host.objects[key]] == [{"content": "aa"}]


@pytest.mark.parametrize("declared", [True, False])
def test_what_nobody_can_declare_is_not_brought_back(declared: bool) -> None:
    """An entry that others made `noarp`: ours are permanent, and no other can be made."""
    host, ledger = MemoryHost(), MemoryLedger()
    entry = neighbour(IPv4Address("192.0.2.9"), "lan", "02:00:00:00:00:09")
    host.put(entry.key, {**entry.fields, "state": "noarp"}, host.tag)
    wanted = Desired((Intent("Neighbour/a", entry, ""),) if declared else ())
    before = run(wanted, host, ledger)
    assert before is not None
    (intent,) = before.intents
    assert intent.artifact.fields == entry.fields


def test_what_is_not_seen_is_not_known() -> None:
    host = MemoryHost(unknown={"file": "the disk is gone"})
    with pytest.raises(Refused, match="file could not be observed"):
        run(Desired(()), host, MemoryLedger())


def test_secrets_stay_out_of_sight() -> None:
    before = Snapshot(
        EPOCH, 72, (), (Intent("a", Artifact(Key("file", "/s"), {}, b"geheim"), "x"),)
    )
    assert "geheim" not in repr(before)
