"""One pass of a configuration: facts, what it declares by them, the work, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from holdfast.agent.approval import Approval
from holdfast.agent.configuration import Read
from holdfast.agent.fact_tracker import collect
from holdfast.agent.pass_schedule import Reason
from holdfast.agent.passes import Passes
from holdfast.agent.reconciler import Done
from holdfast.agent.services.pass_requests import PassRequests
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.intent import Desired
from holdfast.engine.plan import Plan
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.router import Router
from holdfast.runtime import active_candidates, conditions
from holdfast.runtime.log import Level, Line


@dataclass(slots=True)
class FullPass:
    """Over everything that is declared, or over the routes alone that an edit changed."""

    passes: Passes
    router: Router
    reason: Reason
    requests: PassRequests  # who is answered by it
    refusal: str = ""  # why it is not of what was read last
    _new: bool = field(init=False)  # no pass came to its end with this configuration yet
    _read: Read = field(init=False)  # how it was read; empty where it was not read just now
    _facts: Facts = NOTHING_KNOWN
    _desired: Desired = field(default_factory=lambda: Desired(()))

    def __post_init__(self) -> None:
        in_force = self.passes.in_force
        self._new = self.router is not in_force.accepted.router
        self._read = in_force.read if self.router is in_force.read.router else Read(None)

    async def run(self) -> Done:
        passes, router, started = self.passes, self.router, time.monotonic()
        await self._learn()
        unwatched = await passes.watches.follow(router, self._desired)
        passes.publisher.other_troubles = self._troubles(unwatched)
        done = await passes.thread.work(self._carry_out, self._new and self._is_edit())
        passes.in_force.accepted.take(router)
        # After the pass: it says how things stand, and no repair waits for it.
        passes.publisher.other_troubles += await passes.thread.work(self._conditions)
        passes.timer.full_done(self.reason, done)
        passes.publish(router, self._facts, done, self.reason.causes, started)
        await passes.watches.follow(router, self._desired)
        return done

    async def _learn(self) -> None:
        tracker, in_force = self.passes.background.facts, self._in_force
        self._facts, self._desired = await tracker.learn(
            self.router, again=not self._is_edit(), in_force=in_force
        )

    def _relearn(self, known: Desired) -> Desired:
        """In the thread of passes, once something was changed."""
        tracker, in_force = self.passes.background.facts, self._in_force
        learned = tracker.again(self.router, self._facts, in_force=in_force)
        if learned is None:
            return known
        self._facts, self._desired = learned
        return self._desired

    def _carry_out(self, edited: bool) -> Done:
        """In the thread of passes. edited: nothing but the file was."""
        passes, router = self.passes, self.router
        # Where an edit of the file changed routes alone, they need no look at everything.
        done = self._look_at_routes() if edited else None
        if done is None:
            done = self._look_at_everything()
        if self._read.router is router and done.report.converged and not self._read.unloaded:
            passes.in_force.configuration.settled()
        paths = passes.reconciler.paths
        taken = active_candidates.record_if_changed(paths, router.resources, self._facts)
        return replace(done, events=(*done.events, *taken)) if taken else done

    def _look_at_routes(self) -> Done | None:
        reconciler, hints = self.passes.reconciler, self.reason.gathered
        return reconciler.partial(hints, self.router, self._desired, guard=self._guard())

    def _look_at_everything(self) -> Done:
        requests = self.requests
        done = self.passes.reconciler.full(
            self.router,
            self._desired,
            self.reason.gathered,
            guard=self._guard(),
            allow_mass_delete=requests.allow_mass_delete or self._read.parts_alone,
            asked=bool(requests.questions),
            allow_side_effects=requests.allow_side_effects,
            progress=requests.progress,
            relearn=self._relearn,
            told=requests.told,
        )
        if self._new:
            collect()
        return done

    def _guard(self) -> Callable[[Plan], str]:
        """What speaks against a plan; nothing where the configuration is held to already."""
        if not self._new:
            return lambda _plan: ""
        paths, lockouts = self.passes.reconciler.paths, self.passes.lockouts
        router, facts, read = self.router, self._facts, self._read
        return Approval(paths, router, facts, read, self.requests, lockouts).objection

    @property
    def _in_force(self) -> bool:
        return bool(self.refusal) or not self._new

    def _is_edit(self) -> bool:
        """Did nothing happen but that files of the configuration changed?"""
        causes, hints = {Path(cause) for cause in self.reason.causes}, self.reason.gathered
        return bool(causes) and causes <= self.passes.watches.config and not hints.lost

    def _troubles(self, unwatched: list[str]) -> tuple[str, ...]:
        passes = self.passes
        unknown = (*self._facts.troubles, *passes.background.facts.names.unanswered)
        found = [*unwatched, *passes.in_force.read.troubles]
        found += (Line(trouble, Level.ERROR) for trouble in unknown)
        found += filter(None, (*passes.publisher.unserved.values(), self.refusal))
        return tuple(found)

    def _conditions(self) -> tuple[str, ...]:
        paths, resources = self.passes.reconciler.paths, self.router.resources
        return tuple(conditions.troubles(paths, resources, self._facts))
