"""Whole passes over hand-made tables, as a daemon restarted for each would run them."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.cli import adopt
from holdfast.engine.artifact import Artifact
from holdfast.engine.drivers import Drivers
from holdfast.engine.intent import Action, Desired, Intent
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.paths import Paths
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger

_nonces = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Scene:
    paths: Paths
    watch: Callable[[Ledger], Ledger] = lambda ledger: ledger

    def apply(self, *tables: Artifact, action: Action = Action.ENSURE) -> Report:
        with (
            Ledger.open(self.paths, command="test") as ledger,
            drivers.of_machine(self.paths, 72) as host,
        ):
            work = self._pass(tables, action, host, self.watch(ledger))
            return work.run(lambda _plan: None)

    @contextmanager
    def staying(self) -> Iterator[Callable[..., Report]]:
        """Passes of one host that lives on, as a daemon's does."""
        with (
            Ledger.open(self.paths, command="test") as ledger,
            drivers.of_machine(self.paths, 72) as host,
        ):
            yield lambda *tables: self._pass(tables, Action.ENSURE, host, ledger).run(
                lambda _plan: None
            )

    def plan(self, *tables: Artifact) -> Plan:
        with Ledger.read(self.paths) as ledger, drivers.of_machine(self.paths, 72) as host:
            return self._pass(tables, Action.ENSURE, host, ledger).plan()

    def adopt(self, table: Artifact) -> None:
        """As `holdfast adopt --apply` does."""
        (candidate,) = self.plan(table).candidates
        assert not candidate.changes
        with (
            Ledger.open(self.paths, command="test") as ledger,
            drivers.of_machine(self.paths, 72) as host,
        ):
            ledger.write_claims([adopt._claim(candidate, 0, host.epoch)])

    def claims(self) -> object:
        with Ledger.read(self.paths) as ledger:
            return ledger.claims()

    def _pass(
        self, tables: tuple[Artifact, ...], action: Action, host: Drivers, ledger: Ledger
    ) -> Pass:
        desired = Desired(tuple(Intent("Test/x", one, "x:1:1", action) for one in tables))
        policy = Policy(host.epoch, allow_mass_delete=True)
        return Pass(desired, host, ledger, policy, nonce=lambda: str(next(_nonces)))


def nft(script: str) -> str:
    """Somebody else's transaction, or a question."""
    done = subprocess.run(["nft", "-f", "-"], input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(table: str = "") -> str:
    """Without what counts by itself."""
    return nft(f"list table {table}" if table else "list ruleset")


def verbs(report: Report) -> list[str]:
    return [str(result.operation.verb) for result in report.results]
