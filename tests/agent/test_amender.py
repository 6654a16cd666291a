"""An effective config that is amended is the one that a merge of everything gives."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.amender import Amender
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.facts import NOTHING_KNOWN
from holdfast.runtime import sources
from holdfast.runtime.increments import Batch, Batches, Merged, registers
from holdfast.state.ledger import Ledger
from tests.resources.parts import NOW, admitting, raw
from tests.resources.routers import load

_SOURCES = ("Owner/a", "Owner/b")
_LAN = ("Interface", "lan", {"ifname": "eth0", "managed": False})
_ADDRESS = ("IPv4StaticAddress", "lan", {"interface": "lan", "address": "192.0.2.1/24"})


def _route(chance: random.Random) -> dict[str, Any]:
    spec: dict[str, Any] = {"destination": f"10.{chance.randrange(12)}.0.0/16"}
    legs: list[dict[str, Any]] = [
        {"gateway": f"192.0.2.{chance.randrange(2, 4)}", "interface": "lan"},
        {"gateway": "192.0.2.9"},
        {"gateway": "198.51.100.1", "interface": "lan"},  # a warning
        {"interface": "lan"},  # gateways of others may be on it
        {"gateway": "192.0.2.2", "interface": "nowhere"},
        {"type": "blackhole"},
    ]
    weights = [12, 4, 1, 1, 1, 4]
    return raw("IPv4Route", f"r{chance.randrange(14)}", spec | chance.choices(legs, weights)[0])


def _batch(chance: random.Random) -> Batch:
    put = {(one := _route(chance))["metadata"]["name"]: one for _ in range(chance.randrange(3))}
    gone = {f"r{chance.randrange(14)}" for _ in range(chance.randrange(3))} - put.keys()
    withdraw = tuple(("IPv4Route", name) for name in sorted(gone))
    return Batch(chance.choice(_SOURCES), tuple(put.values()), withdraw, each=chance.random() < 0.5)


def _told(effective: Effective) -> tuple[object, ...]:
    router = effective.router
    return (
        router.resources,
        [(one.path, one.content) for one in router.files],
        sorted(map(str, router.warnings)),
        effective.added,
        effective.active,
        effective.refused,
        effective.rejected,
        effective.next_change,
    )


def _intents(desired: Desired) -> list[str]:
    return sorted(map(repr, desired.intents))


@pytest.mark.parametrize("seed", range(12))
def test_amended_as_merged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (a test)
    startup = load(tmp_path, _LAN, _ADDRESS, *map(admitting, _SOURCES))
    amended = 0
    with Ledger.open(Paths(tmp_path), command="test", clock=lambda: NOW) as ledger:
        stored = sources.stored(ledger)
        known = stored.merge(startup, NOW)
        amender = _amender(known)
        for _ in range(40):
            batches = Batches(
                ledger,
                startup,
                NOW,
                Merged(known, stored),
                registers(stored, ledger.declaring()),
                ledger.last_number(),
                amender,
            )
            batches.take(_batch(chance))
            batches.write()
            before, known, stored = known, batches.merged.effective, batches.merged.stored
            read = sources.stored(ledger)
            assert sorted(map(repr, read.parts)) == sorted(map(repr, stored.parts))
            scratch = read.merge(startup, NOW)
            for one, other in zip(_told(known), _told(scratch), strict=True):
                assert one == other
            if known is not before and amender.effective is known:
                amended += 1
                desired, declaration = amender.declared()
                assert _intents(desired) == _intents(compile_router(scratch.router))
                assert _changed(before, known) <= set(declaration.before) | set(declaration.now)
            elif known is not before:
                amender = _amender(known)
    assert amended > 3


def _amender(effective: Effective) -> Amender:
    desired = compile_router(effective.router)
    return Amender(effective, desired, NOTHING_KNOWN, "", lambda: NOW)


def _changed(before: Effective, after: Effective) -> set[bytes]:
    """The identities that other routes are declared at."""
    one, other = (_routes(compile_router(each.router).intents) for each in (before, after))
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def _routes(intents: Iterable[object]) -> dict[bytes, object]:
    return {
        one.batch.scope + key: one.batch.template
        for one in intents
        if isinstance(one, BulkIntent)
        for key in one.batch.keys
    }
