"""What is held back while claims may get lost, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.engine import record
from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.claim import Claim, ClaimState, Lasting, Provenance
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Operation, Verb
from tests.engine.memory_host import MemoryHost, MemoryLedger
from tests.engine.test_reconcile import ADDRESS, BRIDGE, LINK, OFFICE, SYSCTL, ensure, routes, run

BOOT, PROCESS = Lasting.THIS_BOOT, Lasting.THIS_PROCESS
FILE, PASSING = Key("file", "/etc/one"), Key("file", "/run/one")
HOSTNAME, WIREGUARD = Key("hostname", "system"), Key("wireguard", "wg0")


def _operation(verb: Verb, key: Key, *, setting: bool = False, revert: bool = False) -> Operation:
    made = Operation(verb, Artifact(key, {}), ("Test/one",), "router.yaml:1")
    return replace(made, by_declaration=setting, revert=revert)


def _claim(key: Key) -> Claim:
    fields: Fields = {}
    return Claim(
        key, ("Test/one",), Provenance.CREATED, ClaimState.OWNED, fields, "router.yaml:1", 1
    )


@pytest.mark.parametrize("verb", [Verb.CREATE, Verb.REPLACE])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_new_objects_of_each_kind(kind: str, verb: Verb) -> None:
    operation = _operation(verb, Key(kind, "one"))
    held = {lasting for lasting in Lasting if record.needs_claim(operation, None, lasting)}
    tagged = (
        "address", "neighbour", "route", "rule", "nft", "service",
        "bgp_filter", "bgp_network", "bgp_aggregate", "ospf_prefix",
    )  # fmt: skip
    if kind in tagged:
        assert held == set()
    elif kind in ("link", "wireguard", "sysctl"):
        assert held == {PROCESS}
    else:
        assert held == {BOOT, PROCESS}, "it outlives a boot"


@pytest.mark.parametrize("lasting", Lasting)
def test_what_is_claimed_already_or_passes_with_the_boot(lasting: Lasting) -> None:
    for key in (FILE, HOSTNAME):
        operation = _operation(Verb.CREATE, key)
        assert not record.needs_claim(operation, _claim(key), lasting)
    passing = record.needs_claim(_operation(Verb.CREATE, PASSING), None, lasting)
    assert passing == (lasting is PROCESS)
    for verb in (Verb.UPDATE, Verb.DELETE):
        for key in (LINK, FILE, WIREGUARD):
            assert not record.needs_claim(_operation(verb, key), _claim(key), lasting)


@pytest.mark.parametrize("key", [SYSCTL, HOSTNAME, LINK])
def test_settings_wait_only_where_they_are_to_be_set_back(key: Key) -> None:
    outlives = key is HOSTNAME
    for revert in (False, True):
        operation = _operation(Verb.UPDATE, key, setting=True, revert=revert)
        assert record.needs_claim(operation, None, BOOT) == (revert and outlives)
        assert record.needs_claim(operation, None, PROCESS) == revert
        assert not record.needs_claim(operation, None, Lasting.FOR_GOOD)


def test_a_pass_makes_the_rest() -> None:
    """What stands on a link that waits is not tried; nothing of it is claimed afterwards."""
    host, ledger = MemoryHost(), MemoryLedger(lasting=PROCESS)
    host.put(Key("link", "wan0"), BRIDGE)
    host.put(SYSCTL, {"value": "0"})
    on_wan = Key("address", "192.0.2.9/24 dev wan0")
    report = run(
        host,
        ledger,
        ensure(LINK, BRIDGE),
        ensure(ADDRESS, {"prefix_length": 24}, LINK),
        ensure(on_wan, {"prefix_length": 24}, Key("link", "wan0")),
        ensure(SYSCTL, {"value": "1"}),
        routes(OFFICE, dev="wan0"),
    )
    said = {failure.key: failure.error for _, failure in report.failures}
    assert set(said) == {LINK, ADDRESS}
    assert "would be kept until this process ends only" in said[LINK]
    assert said[ADDRESS] == f"not tried, because {LINK} failed"
    assert set(ledger.held) == {on_wan, SYSCTL}
    assert [one.key for one in host.routes] == [OFFICE]
    assert not report.converged
    ledger.lasting = Lasting.FOR_GOOD
    report = run(host, ledger, ensure(LINK, BRIDGE), ensure(ADDRESS, {"prefix_length": 24}, LINK))
    assert report.converged
