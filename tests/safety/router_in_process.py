"""A router in a namespace of its own, with passes in this process: what others do there, what
Holdfast does, and whose is what."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim, Lasting
from holdfast.engine.intent import Desired
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.host.namespace_holder import Hold
from holdfast.paths import Paths
from holdfast.runtime import drivers, namespace_ownership
from holdfast.state.ledger import Ledger
from tests.disks import small_disk
from tests.safety.shared_namespace import TAG, SharedNamespace, all_of, assert_same

_FILTER = "add table inet theirs; add chain inet theirs pass; add rule inet theirs pass accept"


class CountingLedger:
    """A ledger that tells how often it was written."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.claims = ledger.claims
        self.remembered = ledger.remembered
        self.remember = ledger.remember
        self.writes = 0

    @property
    def lasting(self) -> Lasting:
        return self._ledger.lasting

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None:
        self.writes += 1
        self._ledger.write_claims(put, remove)


class RouterInProcess(SharedNamespace):
    def __init__(self) -> None:
        super().__init__()
        self.paths = Paths(self.root)
        self.disk = self._stack.enter_context(small_disk(self.paths.state_dir))
        self._held = self._stack.enter_context(ExitStack())
        self.host = self._stack.enter_context(drivers.of_machine(self.paths, TAG))
        self._hold_namespace()
        self.ledger = self._open_ledger()
        self.random = random.Random(0)  # noqa: S311 (marks, no secrets)
        self.namespace.run("nft", _FILTER)
        self._filter = self.namespace.run("nft", "list ruleset")

    def close(self) -> None:
        with self._stack:
            assert self.namespace.run("nft", "list ruleset") == self._filter

    def _open_ledger(self) -> CountingLedger:
        return CountingLedger(self._held.enter_context(Ledger.open(self.paths, command="test")))

    def _hold_namespace(self) -> None:
        with (
            Ledger.open(self.paths, command="test") as ledger,
            closing(Hold()) as hold,
        ):
            namespace_ownership.recover(
                hold, ledger, namespace_ownership.look(self.paths, ledger, TAG, self.host.epoch)
            )

    def fill_disk(self) -> None:
        self.disk.fill()

    def free_disk(self) -> None:
        """And another command comes, as it may."""
        self.disk.free()
        self.restart()

    def restart(self) -> None:
        self._held.close()
        self.ledger = self._open_ledger()

    def others_write(self, path: str, content: bytes | None) -> None:
        place = self.paths.under(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.unlink(missing_ok=True)
        else:
            place.write_bytes(content)

    def start(self, desired: Desired) -> Pass:
        policy = Policy(self.host.epoch, allow_mass_delete=True)
        return Pass(desired, self.host, self.ledger, policy, nonce=self._nonce)

    def _nonce(self) -> str:
        return str(self.random.randrange(1, 2**31))

    def plan_elsewhere(self, desired: Desired) -> Plan:
        """Another installation finds the namespace held. The commands carry out no plan that is
        refused, as `test_stateful_commands` shows."""
        before, paths = self.look(), Paths(self.root / "elsewhere")
        with Ledger.open(paths, command="test") as ledger:
            standing = namespace_ownership.look(paths, ledger, TAG, self.host.epoch)
            policy = Policy(self.host.epoch, allow_mass_delete=True, allow_side_effects=True)
            found = Pass(desired, self.host, ledger, standing.policy(policy)).plan()
        assert_same(before, self.look())
        return found

    def reconcile(self, desired: Desired, meanwhile: Callable[[], None] = lambda: None) -> Report:
        """We act: what others made must be as it was, in the order it was in. They may do
        something after our plan was made, too."""
        theirs = self.theirs(self.look())

        def approve(_plan: Plan) -> None:
            nonlocal theirs
            meanwhile()
            theirs = self.theirs(self.look())

        report = self.start(desired).run(approve)
        now = self.look()
        self.ours = all_of(now) - all_of(theirs)
        assert_same(theirs, self.theirs(now))
        return report
