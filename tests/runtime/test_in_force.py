"""What a pass is about to hold the host to, and what trials made of it since it was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.dataclass import replace
from holdfast.paths import Paths
from holdfast.resources.router import Router, load_router
from holdfast.runtime.confirm.trial import InForce, OtherInForce
from holdfast.state import latches
from holdfast.state.confirmations import Confirmation
from holdfast.state.ledger import Ledger
from tests.safety.router_scene import document

TRIAL = Confirmation(
    2, 1000.0, 1120.0, "this boot", 620.0, 1, "/etc/c.yaml", "", "d" * 64, b"reverse", []
)


def read(root: Path, mtu: int) -> Router:
    file = root / f"router-{mtu}.yaml"
    file.write_text(document({"Interface/wan": f"{{ifname: wan0, mtu: {mtu}}}"}))
    return load_router(file, root)


def confirm(ledger: Ledger, generation: int, candidate: Router) -> None:
    digest = latches.digest(candidate.files)
    ledger.begin_confirmation(replace(TRIAL, generation=generation, digest=digest))
    ledger.confirm(generation)


def test_what_was_read_before_a_trial_was_confirmed(root: Path) -> None:
    """A pass may have waited for the ledger from before the trial to after it. It is told once:
    what is read after that is what the file says, whatever that is."""
    root.mkdir()
    before, candidate, edited = (read(root, mtu) for mtu in (1500, 1400, 1300))
    with Ledger.open(Paths(root), command="test") as ledger:
        in_force = InForce()
        in_force.check(ledger, before)
        confirm(ledger, 2, candidate)
        with pytest.raises(OtherInForce, match="generation 2 was confirmed meanwhile"):
            in_force.check(ledger, before)
        in_force.check(ledger, candidate)
        in_force.check(ledger, edited)
        confirm(ledger, 3, before)
        in_force.check(ledger, before)
        in_force.check(ledger, edited)
    with Ledger.open(Paths(root), command="test") as ledger:
        InForce().check(ledger, edited)  # of a daemon that began after that


def test_a_candidate_is_in_force_while_it_waits(root: Path) -> None:
    root.mkdir()
    before, candidate = read(root, 1500), read(root, 1400)
    with Ledger.open(Paths(root), command="test") as ledger:
        in_force = InForce()
        in_force.check(ledger, before)
        ledger.begin_confirmation(replace(TRIAL, digest=latches.digest(candidate.files)))
        with pytest.raises(OtherInForce, match="waits to be confirmed"):
            in_force.check(ledger, before)
        in_force.check(ledger, candidate)
        ledger.start_revert(2, "nobody confirmed it")
        with pytest.raises(OtherInForce, match="is being reverted"):
            in_force.check(ledger, candidate)
