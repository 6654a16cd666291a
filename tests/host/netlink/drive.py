"""Operations for driver tests, and passes as short as a test needs them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.kinds.address import address
from holdfast.engine.observed import Sighting
from holdfast.engine.plan import Change, Operation, Verb
from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import CREATE, EXCL, NetlinkSocket, Request

TAG = 72


class HasKey(Protocol):
    @property
    def key(self) -> Key: ...


def create(artifact: Artifact, nonce: str = "") -> Operation:
    return Operation(Verb.CREATE, artifact, ("Test/it",), "declared", nonce=nonce)


def update(artifact: Artifact, observed: Artifact) -> Operation:
    changes = tuple(
        Change(name, observed.fields.get(name), value)
        for name, value in artifact.fields.items()
        if observed.fields.get(name) != value
    )
    return Operation(
        Verb.UPDATE, artifact, ("Test/it",), "drifted", changes=changes, observed=observed
    )


def replace(artifact: Artifact, observed: Artifact, nonce: str = "") -> Operation:
    return Operation(
        Verb.REPLACE, artifact, ("Test/it",), "drifted", observed=observed, nonce=nonce
    )


def delete(observed: Artifact) -> Operation:
    return Operation(Verb.DELETE, observed, ("Test/it",), "orphan", observed=observed)


def claims(*artifacts: HasKey) -> Mapping[Key, Claim]:
    return {
        artifact.key: Claim(
            artifact.key, ("Test/it",), Provenance.ADOPTED, ClaimState.OWNED, {}, "", 1
        )
        for artifact in artifacts
    }


def run(driver: Driver, *operations: Operation) -> list[Result]:
    counted: list[int] = []
    results = driver.apply(operations, counted.append)
    assert [result.operation for result in results] == list(operations)
    assert sum(counted) == len(operations)
    return results


def succeed(driver: Driver, *operations: Operation) -> list[Result]:
    results = run(driver, *operations)
    assert [failure for result in results for failure in result.failures] == []
    return results


def error(driver: Driver, operation: Operation) -> str:
    """The words with which one operation fails."""
    (result,) = run(driver, operation)
    assert not result.ok and result.done == 0
    (failure,) = result.failures
    assert isinstance(operation.subject, Artifact)
    assert failure.key == operation.subject.key
    return failure.error


def exists(driver: Driver, operation: Operation) -> bool:
    (result,) = run(driver, operation)
    (failure,) = result.failures
    return failure.exists


def see(driver: Driver, *wanted: HasKey, claimed: Iterable[HasKey] = ()) -> dict[Key, Sighting]:
    """What a driver reports of ours and of what was asked for; no identity is seen twice."""
    scope = Scope(frozenset(one.key for one in wanted), claims=claims(*claimed))
    seen = driver.observe(scope).sightings
    assert all(len(sightings) == 1 for sightings in seen.values())
    asked = scope.keys | scope.claims.keys()
    return {key: found[0] for key, found in seen.items() if key in asked or found[0].tag}


def losses(driver: Driver, *wanted: HasKey, claimed: Iterable[HasKey] = ()) -> dict[Key, list[str]]:
    """What others would lose by what goes when only these are wanted."""
    scope = Scope(frozenset(one.key for one in wanted), claims=claims(*claimed))
    found = driver.observe(scope).losses
    return {key: [loss.what for loss in lost] for key, lost in found.items()}


def look(driver: Driver, wanted: HasKey) -> Sighting:
    return see(driver, wanted)[wanted.key]


def at(text: str, dev: str, **options: object) -> Artifact:
    """An address artifact: at("192.0.2.1/24", "lan0")."""
    return address(ipaddress.ip_interface(text), dev, **options)  # type: ignore[arg-type]  # passed on


def stamped(sock: NetlinkSocket, text: str, index: int, protocol: int) -> None:
    """An address with a protocol of choice, which the `ip` of Debian 12 cannot set."""
    interface = ipaddress.ip_interface(text)
    family = 2 if interface.version == 4 else 10
    flags = 0x02 if interface.version == 6 else 0  # nodad
    body = bytes((family, interface.network.prefixlen, flags, 0)) + attributes.u32(0, index)[4:]
    for kind in (2, 1):
        body += attributes.attribute(kind, interface.ip.packed)
    body += attributes.u8(11, protocol)
    assert sock.transact([Request(20, CREATE | EXCL, body)]) == {}
