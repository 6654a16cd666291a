"""SIGKILL before and after every ledger write and every transaction of a pass over tables."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.claim import Claim, ClaimState
from holdfast.engine.kinds.nft import nft_table
from holdfast.host.nft import driver as nft_driver
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.child import in_child
from tests.host.nft.nft_scene import Scene, listed, nft
from tests.namespace import private_namespaces
from tests.safety.killing import Points

pytestmark = pytest.mark.programs

ONE = nft_table("inet", "holdfast_one", "chain c {\n    ip saddr { 192.0.2.1, 192.0.2.2 } drop\n}")
TWO = nft_table("inet", "holdfast_one", "set s { type ipv4_addr; elements = { 192.0.2.3 }; }")
MORE = nft_table("ip6", "holdfast_more", "chain c { accept; }")
THEIRS = "table inet theirs {\nchain c { accept; }\n}"
IN_ITS_PLACE = "table inet holdfast_one {\nchain theirs { accept; }\n}"

CASES: dict[str, tuple[tuple[Artifact, ...], tuple[Artifact, ...]]] = {
    "create": ((), (ONE, MORE)),
    "update": ((ONE, MORE), (TWO, MORE)),
    "delete": ((ONE, MORE), (MORE,)),
    "update of an adopted one": ((ONE, MORE), (TWO, MORE)),
    "delete of an adopted one": ((ONE, MORE), (MORE,)),
}


def _killed_at(point: int, scene: Scene, tables: tuple[Artifact, ...]) -> str:
    """Where the pass was killed; empty where it ended before that."""
    told, tell = os.pipe()

    def die() -> None:
        points = Points(point, tell)
        nft_driver._nft = points.after("the transaction", nft_driver._nft)

        def watch(ledger: Ledger) -> Ledger:
            ledger.write_claims = points.after(  # type: ignore[method-assign]  # counted here
                "write_claims", ledger.write_claims
            )
            return ledger

        replace(scene, watch=watch).apply(*tables)

    pid = in_child(die)
    os.close(tell)
    with os.fdopen(told) as stream:
        where = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == (-signal.SIGKILL if where else 0)
    return where


def _states(scene: Scene) -> dict[object, ClaimState]:
    claims = scene.claims()
    assert isinstance(claims, dict)
    assert all(isinstance(claim, Claim) for claim in claims.values())
    return {key: claim.state for key, claim in claims.items()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("usurped", [False, True])
def test_the_next_pass_finishes_and_steals_nothing(
    case: str, usurped: bool, tmp_path: Path
) -> None:
    before, after = CASES[case]
    places: list[str] = []
    while len(places) < 20:
        with private_namespaces():
            scene = Scene(Paths(tmp_path / str(len(places))))
            nft(THEIRS)
            if "adopted" in case:
                nft(f"table inet holdfast_one {{\n{ONE.payload.decode()}\n}}")
                scene.adopt(ONE)
            assert scene.apply(*before).converged
            where = _killed_at(len(places) + 1, scene, after)
            if not where:
                break
            places.append(where)
            if usurped:
                _usurped(scene, after)
            else:
                _finishes(scene, after)
            assert "chain c" in listed("inet theirs")
    assert "before anything" in places
    assert "after write_claims" in places
    assert "after the transaction" in places


def _finishes(scene: Scene, after: tuple[Artifact, ...]) -> None:
    assert scene.apply(*after).converged
    assert not scene.plan(*after).changes
    assert _states(scene) == {table.key: ClaimState.OWNED for table in after}
    shown = listed()
    assert shown.count('comment "holdfast ') == len(after)
    for table in after:
        assert f'comment "holdfast {table.fields["content"]}"' in shown


def _usurped(scene: Scene, after: tuple[Artifact, ...]) -> None:
    """While nobody looked, somebody put a table of theirs in the place of ours."""
    nft(f"add table inet holdfast_one\ndelete table inet holdfast_one\n{IN_ITS_PLACE}")
    before = listed("inet holdfast_one")
    report = scene.apply(*after)
    assert not report.failures
    assert listed("inet holdfast_one") == before
    scene.apply()
    assert listed("inet holdfast_one") == before
    assert not _states(scene)
