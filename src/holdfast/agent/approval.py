"""Whether the daemon carries out the plan of a configuration that it does not hold to yet."""

from __future__ import annotations

from holdfast.agent.configuration import Read
from holdfast.agent.services.pass_requests import PassRequests
from holdfast.dataclass import dataclass
from holdfast.engine import guard
from holdfast.engine.plan import Plan
from holdfast.paths import Paths
from holdfast.resources.facts import Facts
from holdfast.resources.router import Router
from holdfast.runtime import operators, unfinished_files


@dataclass(frozen=True, slots=True)
class Approval:
    """Beside what the plan itself is refused for (`engine/guard.py`)."""

    paths: Paths
    router: Router
    facts: Facts
    read: Read  # how it was read; empty where it was not read just now
    questions: PassRequests  # who asked for it
    lockouts: operators.Lockouts

    def objection(self, plan: Plan) -> str:
        """Why it is not carried out; empty where nothing speaks against it."""
        if not plan.changes:
            return ""
        return self._unfinished(plan) or self._lockout(plan)

    def _unfinished(self, plan: Plan) -> str:
        """Who asks says that the file is whole, unless somebody still has it open."""
        if not self.questions.questions:
            return self.read.too_new(any(op.cleans_up for op in plan.changes))
        youngest = self.read.youngest
        if youngest is None or self.questions.allow_mass_delete:
            return ""
        return guard.doubtful(youngest.doubt, unfinished_files.REMEDY, plan.changes)

    def _lockout(self, plan: Plan) -> str:
        if self.questions.allow_lockout:
            return ""
        root = str(self.paths.root).rstrip("/")
        return self.lockouts.cut(plan, self.router, self.facts, root)
