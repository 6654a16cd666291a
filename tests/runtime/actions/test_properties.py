"""Parts, policies, approvals, crashes and clocks in any order: what must never happen."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.errors import Refused
from holdfast.runtime.plugins import sandbox
from holdfast.runtime.plugins.sandbox import Outcome
from holdfast.state.actions import (
    APPROVED,
    FAILED,
    PENDING,
    ROLLED_BACK,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    Action,
)
from holdfast.state.ledger import Ledger
from tests.runtime.actions.plans import part, plan
from tests.runtime.actions.scene import Scene

pytestmark = pytest.mark.long

KEYS = ("k1", "k2")
RISKS = ("low", "high")
# From one look at the journal to the next, which are one rule apart, whatever happens in it.
LEADS_TO = {
    None: {PENDING, APPROVED, RUNNING, SUCCEEDED, FAILED, SKIPPED},
    PENDING: {PENDING, APPROVED, RUNNING, SUCCEEDED, FAILED, SKIPPED},
    APPROVED: {APPROVED, PENDING, RUNNING, SUCCEEDED, FAILED, SKIPPED},
    RUNNING: {RUNNING, SUCCEEDED, FAILED, SKIPPED},
    FAILED: {FAILED, PENDING, APPROVED, RUNNING, SUCCEEDED, SKIPPED},
    SKIPPED: {SKIPPED, PENDING, APPROVED, RUNNING, SUCCEEDED, FAILED},
    SUCCEEDED: {SUCCEEDED, ROLLED_BACK},
    ROLLED_BACK: {ROLLED_BACK},
}
ANSWERS = ("succeeded", "failed", "skipped", "garbage", "crash")


class Journal(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-actions-")
        self.scene = Scene(Path(self.folder.name) / "root")
        self.scene.prepare()
        self.policy_is: dict[str, Any] = {}
        self.generation = 0
        self.answer = "succeeded"
        self.asked: list[tuple[str, int]] = []  # key and epoch
        self.before: dict[str, Action] = {}
        self.in_this_run = 0
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(sandbox, "run", self.execute)

    def teardown(self) -> None:
        self.patch.undo()
        self.folder.cleanup()

    async def execute(
        self, executable: Path, request: bytes, *, timeout: float, environment: dict[str, str]
    ) -> Outcome:
        """In place of the process: everything that must be true when one is asked."""
        del executable, timeout, environment
        asked = json.loads(request)["spec"]
        key, now = asked["idempotencyKey"], self.scene.now
        policy = self.policy_is
        assert policy.get("enabled", True)
        assert not policy.get("dryRunOnly", False)
        self.in_this_run += 1
        assert self.in_this_run <= policy.get("maxActionsPerRun", 5)
        row = self.scene.action(key)
        assert row.state == RUNNING
        assert row.deadline > now
        assert (key, row.epoch) not in self.asked
        self.asked.append((key, row.epoch))
        if row.undoes:
            assert policy.get("allowUndo", True)
            assert self.scene.action(row.undoes).state == SUCCEEDED
        else:
            assert any(
                one["idempotencyKey"] == key
                for each in self.scene.parts
                if not each.expired(now)
                for one in each.action_plans
            )
            if policy.get("requireApproval", False) and row.epoch == 1:
                assert row.approved_by == "user 0"
        if self.answer == "crash":
            raise asyncio.CancelledError
        said = {"status": {"status": self.answer, "undoAvailable": True}}
        out = b"?" if self.answer == "garbage" else json.dumps(said).encode()
        return Outcome(0, out, "", 0.1)

    def journal(self) -> dict[str, Action]:
        if not self.scene.paths.ledger.exists():
            return {}
        with Ledger.read(self.scene.paths) as ledger:
            return {one.key: one for one in ledger.actions()}

    @rule(
        source=st.sampled_from(("Owner/a", "Owner/b")),
        plans=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(RISKS)),
        lasts=st.sampled_from((20.0, 1000.0, None)),
    )
    def hand_in(self, source: str, plans: dict[str, str], lasts: float | None) -> None:
        self.generation += 1
        given = [plan(key, riskLevel=risk) for key, risk in plans.items()]
        others = [one for one in self.scene.parts if one.source != source]
        made = part(
            *given,
            source=source,
            generation=self.generation,
            observed=self.scene.now,
            lasts=lasts,
        )
        self.scene.parts = [*others, made]

    @rule(
        change=st.fixed_dictionaries(
            {},
            optional={
                "enabled": st.booleans(),
                "dryRunOnly": st.booleans(),
                "requireApproval": st.booleans(),
                "allowUndo": st.booleans(),
                "maxActionsPerRun": st.integers(0, 2),
            },
        )
    )
    def policy(self, change: dict[str, Any]) -> None:
        self.policy_is = change
        self.scene.policy(**change)

    @rule(seconds=st.sampled_from((1.0, 10.0, 31.0, 60.0, 4000.0, -30.0)))
    def time_goes_by(self, seconds: float) -> None:
        self.scene.now += seconds

    @rule(key=st.sampled_from(KEYS))
    def approve(self, key: str) -> None:
        try:
            self.scene.engine.approve(self.scene.view, key, "user 0")
        except Refused:
            return

    @rule(answer=st.sampled_from(ANSWERS), only=st.sampled_from(("", *KEYS)))
    def run_it(self, answer: str, only: str) -> None:
        self.answer, self.in_this_run = answer, 0
        try:
            self.scene.run(only)
        except (Refused, asyncio.CancelledError):
            return

    @rule(answer=st.sampled_from(ANSWERS), key=st.sampled_from(KEYS))
    def undo(self, answer: str, key: str) -> None:
        self.answer, self.in_this_run = answer, 0
        try:
            asyncio.run(self.scene.engine.rollback(self.scene.view, key, "user 0"))
        except (Refused, asyncio.CancelledError):
            return

    @invariant()
    def only_as_states_lead_to_each_other(self) -> None:
        now_is = self.journal()
        assert self.before.keys() <= now_is.keys(), "nothing is forgotten so soon"
        for key, action in now_is.items():
            before = self.before.get(key)
            if not action.undoes:
                assert action.state in LEADS_TO[before.state if before else None]
            if before is not None:
                assert action.epoch >= before.epoch
        self.before = now_is

    @invariant()
    def the_ledger_is_sound(self) -> None:
        if self.scene.paths.ledger.exists():
            with Ledger.read(self.scene.paths) as ledger:
                assert ledger.check() == []


TestJournal = Journal.TestCase
TestJournal.settings = hypothesis.settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
