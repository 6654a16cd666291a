"""Facts, and what a configuration declares by them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from itertools import chain

from holdfast.agent.dns_lookups import DnsLookups
from holdfast.agent.health import checks as health
from holdfast.agent.health.checks import HealthChecks
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import event_kinds
from holdfast.engine.intent import Desired
from holdfast.host.facts.read import read_facts
from holdfast.host.facts.verdicts import read_verdicts
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.compile import compile_others, compile_router
from holdfast.resources.facts import NOTHING_KNOWN, Address, Facts, Verdict
from holdfast.resources.questions import fact_kinds, gateways, lookups
from holdfast.resources.resource import Resource, id_of
from holdfast.resources.router import Router
from holdfast.resources.site import Site, site_of
from holdfast.resources.uplinks.health_check import HealthCheck
from holdfast.resources.uplinks.health_target import target
from holdfast.runtime.log import Level, Line, fault
from holdfast.state.events import Event

Gateways = frozenset[tuple[int, Address]]  # with a routing table


@dataclass(slots=True)
class FactTracker:
    paths: Paths
    say: Callable[[str], None]
    tell: Callable[[str, float], None]  # a cause for a pass, and the patience there is with it
    thread: Executor
    keep: Callable[[Event], None]
    names: DnsLookups = field(init=False)
    _checks: HealthChecks = field(init=False)
    _checked: Router | None = None  # the one whose health checks are under way
    _site: Site = field(default_factory=Site)
    # For which kinds and gateways.
    _known: tuple[tuple[frozenset[str], Gateways], Facts] = (
        (frozenset(), frozenset()),
        NOTHING_KNOWN,
    )
    _asked: tuple[Router, Gateways] | None = None  # which ones a configuration needs to know of
    _compiled: tuple[Router, Facts, Desired] | None = None

    def __post_init__(self) -> None:
        self.names = DnsLookups(self.paths, lambda: self.tell("an answer of the DNS", 0.01))
        self._checks = HealthChecks(
            lambda check: target(check, self._site),
            self._verdict_changed,
            self.say,
            read_verdicts(self.paths, []),
        )

    async def learn(self, router: Router, *, again: bool, in_force: bool) -> tuple[Facts, Desired]:
        """again: where nobody said that facts changed, those of the last time will do. in_force:
        what cannot be compiled of it waits; else it raises."""
        loop = asyncio.get_running_loop()
        asking = fact_kinds(router)
        if self._asked is None or self._asked[0] is not router:
            asked = await loop.run_in_executor(self.thread, gateways, router)
            self._asked = router, asked
        about = asking, self._asked[1]
        facts = NOTHING_KNOWN
        if any(about) and self._known[0] == about and not again:
            facts = self._known[1]
        elif any(about):
            facts = await loop.run_in_executor(self.thread, read_facts, self.paths, (), about[1])
        self._known = about, facts
        facts = replace(facts, answers=self.names.answers, verdicts=self._checks.verdicts)
        probed = registry.having(router.resources, lambda kind: kind.has_verdict)
        if probed:
            self._site = await loop.run_in_executor(self.thread, site_of, router.resources, facts)
        if router is not self._checked:
            self._check(router, probed)
            facts = replace(facts, verdicts=self._checks.verdicts)
        work = self._compile
        return facts, await loop.run_in_executor(self.thread, work, router, facts, in_force)

    def again(
        self, router: Router, facts: Facts, *, in_force: bool
    ) -> tuple[Facts, Desired] | None:
        """After a change of ours, on the thread of the passes; None where that taught nothing.
        Verdicts and names that changed meanwhile lead to passes of their own."""
        about = self._known[0]
        if not any(about):
            return None
        read = read_facts(self.paths, (), about[1])
        fresh = replace(read, answers=facts.answers, verdicts=facts.verdicts)
        if fresh == facts:
            return None
        self._known = about, read
        return fresh, self._compile(router, fresh, in_force)

    def compiled(self, router: Router) -> tuple[Facts, Desired] | None:
        """What was made of it last."""
        known = self._compiled
        return known[1:] if known is not None and known[0] is router else None

    def amend(self, router: Router, desired: Desired) -> None:
        """It differs from the one before by what was declared in increments, which no fact is
        asked for; so it need not be compiled."""
        if self._compiled is None or self._asked is None:
            return
        if self._checked is self._compiled[0]:
            self._checked = router
        self._compiled = router, self._compiled[1], desired
        self._asked = router, self._asked[1]

    def want(self, *routers: Router | None) -> None:
        """The names that they refer to."""
        found = (lookups(router) for router in routers if router is not None)
        self.names.want(tuple(dict.fromkeys(chain.from_iterable(found))))

    async def stop(self) -> None:
        await self._checks.stop()

    def _check(self, router: Router, probed: Iterable[Resource]) -> None:
        first, self._checked = self._checked is None, router
        known = dict(self._checks.verdicts)
        self._checks.watch(probed)
        # Those of checks that are declared no longer are gone with them.
        if first or known != self._checks.verdicts:
            self._write_verdicts()

    def _compile(self, router: Router, facts: Facts, in_force: bool) -> Desired:
        """The very same where nothing it is made of changed: what was learned of it holds."""
        known = self._compiled
        if known is not None and known[0] is router and known[1] == facts:
            return known[2]
        work = compile_in_force if in_force else compile_router
        desired = work(router, facts, str(self.paths.root).rstrip("/"))
        self._compiled = router, facts, desired
        return desired

    def _verdict_changed(self, _checks: HealthChecks, name: str, verdict: Verdict) -> None:
        # Flows go astray meanwhile: no patience with this one.
        check = id_of(HealthCheck, name)
        self.tell(check, 0)
        state = event_kinds.HEALTHY if verdict.healthy else event_kinds.UNHEALTHY
        level = Level.INFO if verdict.healthy else Level.WARNING
        self.say(Line(f"{check} is {state}: {verdict.reason}", level))
        self.keep(Event(state, check, verdict.reason))
        self._write_verdicts()

    def _write_verdicts(self) -> None:
        try:
            health.write_verdicts(self.paths, self._checks.verdicts)
        except OSError as error:
            told = f"verdicts were not written for other commands: {error}"
            self.say(Line(told, Level.ERROR))


def with_links_of_gateways(paths: Paths, router: Router, facts: Facts) -> Facts:
    """These facts, with those links as the kernel tells them now."""
    return replace(facts, on_link=read_facts(paths, (), gateways(router)).on_link)


def compile_in_force(router: Router, facts: Facts, root: str) -> Desired:
    """Of what is held to already: a fault in the code of one kind leaves the others be."""
    try:
        return compile_router(router, facts, root)
    except Exception:  # of whatever kind, and told of each resource that it concerns
        return compile_others(router, facts, root, _fault)


def _fault(error: Exception) -> str:
    return fault("what it asks for cannot be told", error)


def collect() -> None:
    """A configuration stays as long as its file does: nothing in it is worth looking for garbage
    in."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
