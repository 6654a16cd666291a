"""Passes as the daemon runs them: nobody is asked, and what is refused is only said.

The ledger, the sockets and what the last pass saw are kept from one pass to the next.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress

from holdfast.agent.drift import Before, Drift, fight_event
from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.retry_policy import RetryPolicy
from holdfast.agent.route_changes import RouteChanges, RoutePass
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import event_kinds
from holdfast.engine.artifact import Key
from holdfast.engine.bulk_changes import Declaration
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Result
from holdfast.engine.drivers import Drivers
from holdfast.engine.intent import Desired
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.partial_pass import (
    FullPassNeeded,
    PartialPass,
    PassContext,
    Touched,
    context_after,
)
from holdfast.engine.plan import Operation, Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Claims, Host, Pass, Report
from holdfast.errors import LedgerError, Refused
from holdfast.host.epoch import read_epoch
from holdfast.host.namespace_holder import Hold
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.resources.router import Router
from holdfast.runtime import drivers, event_rate, moves, namespace_ownership
from holdfast.runtime.confirm.trial import InForce
from holdfast.runtime.defaults import LEDGER_WAIT_S
from holdfast.runtime.namespace_ownership import Standing
from holdfast.state import journal
from holdfast.state.events import Event
from holdfast.state.faults import UnusableError
from holdfast.state.kept import KeptLedger
from holdfast.state.ledger import Ledger

# While none could be stored, the oldest are dropped.
_MOST_BESIDE = 1000
_COMMAND = "holdfast serve"


@dataclass(frozen=True, slots=True)
class Done:
    report: Report  # `after` is what is left to do of everything
    generation: int
    events: tuple[Event, ...]
    partial: bool  # not everything was looked at
    untried: bool  # something is left to do that does not wait for its time
    claims: Mapping[Key, Claim]
    cpu: float  # seconds of it that were work
    unwritten: str = ""  # why the ledger is not kept for good, and where it is instead


@dataclass(slots=True)
class Reconciler:
    """Belongs to one thread."""

    paths: Paths
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    clock: Callable[[], float] = time.monotonic
    unloaded: tuple[str, ...] = ()  # sources that nothing may be cleaned up without
    # What happened beside the passes, kept with the next one; others add to it.
    beside: deque[Event] = field(default_factory=lambda: deque(maxlen=_MOST_BESIDE))
    _ledger: KeptLedger | None = None
    _host: Drivers | None = None
    _sock: NetlinkSocket | None = None  # what the drivers change links, routes and the like over
    _tags: tuple[int, frozenset[int]] = (0, frozenset())  # in use, and of before
    _hold: Hold = field(default_factory=Hold)
    _context: PassContext | None = None
    _before: Before | None = None
    _stirred: frozenset[str] = frozenset()  # kinds that somebody was at since the last full pass
    _router: Router | None = None
    _generation: int = 0
    _unrecorded: bool = False  # what sources declared since it began is in no generation yet
    _recorded: tuple[int, str] = (0, "")  # generation and outcome
    _in_force: InForce = field(default_factory=InForce)
    _known_routes: RouteChanges = field(default_factory=RouteChanges)

    def full(
        self,
        router: Router,
        desired: Desired,
        gathered: PendingHints,
        *,
        guard: Callable[[Plan], str] = lambda _plan: "",
        allow_mass_delete: bool = False,
        asked: bool = False,
        allow_side_effects: bool = False,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        relearn: Callable[[Desired], Desired] = lambda desired: desired,
        told: Callable[[Sequence[Result]], None] = lambda _results: None,
    ) -> Done:
        """Looks at everything. Raises OtherInForce, Refused, LedgerError or DriverError; what was
        half done is for the next pass. guard: why a plan must not be carried out. asked: somebody
        wants this very configuration to be in force. relearn: what is declared by what is known
        once something was changed."""
        if router is not self._router:
            self.patience.backoff.clear()
        with self.locked() as ledger:
            self._in_force.check(ledger, router)
            standing = self._look(router, ledger)
            work = self._pass(router, desired, self._open(router, standing), ledger)
            new = self._is_new(ledger, router)
            work.policy = replace(
                standing.policy(work.policy),
                allow_mass_delete=allow_mass_delete,
                allow_side_effects=allow_side_effects,
                unattended=not asked and new,
                held_to=not asked and not new,
                moved=moves.to_absent_links(self.paths, ledger, router) if asked or new else (),
            )
            work.progress, work.told, work.relearn = progress, told, relearn
            work.heard = gathered.heard

            def approve(plan: Plan) -> None:
                refusal = plan.refusal or guard(plan)
                if refusal:
                    raise Refused(refusal)
                recovered = namespace_ownership.take(self._hold, ledger, standing, plan)
                work.policy = replace(work.policy, recovered=recovered, new_tag="")
                work.generation = self._begin(ledger, router)

            self._context = None
            done = self._run(router, work, approve, ledger, desired, gathered, None)
            namespace_ownership.settle(ledger, standing, done.report)
            self._router = router
            self._context = context_after(work.desired, done.report.after, work.sightings)
            self._known_routes.remember(self._context, work.policy, router.ownership.tag)
            if done.report.after.unknown:
                self._close_host()  # what could not be read may be so for a socket that broke
            return done

    def partial(
        self,
        gathered: PendingHints,
        router: Router | None = None,
        desired: Desired | None = None,
        *,
        guard: Callable[[Plan], str] = lambda _plan: "",
    ) -> Done | None:
        """Looks at what was touched; given another configuration, at what it declares otherwise,
        if that is routes alone. None: a full pass has to find out. Raises as `full` does."""
        context, edited = self._context, router is not None
        router = router or self._router
        if router is None or context is None or gathered.lost:
            return None
        with self.locked() as ledger:
            self._in_force.check(ledger, router)
            if self._newest(ledger) != self._generation:
                return None  # another command applied something since
            standing = self._look(router, ledger)
            if not _by_tag_alone(standing):
                return None
            host, declared = self._open(router, standing), desired or context.desired
            try:
                if (edited or gathered.routes) and not gathered.touched.all_kinds:
                    return self._routes(router, declared, gathered, host, ledger, context, guard)
            except FullPassNeeded:
                pass  # all routes can be looked at, where nothing else is declared otherwise
            try:
                return None if edited else self._touched(router, gathered, host, ledger, context)
            except FullPassNeeded:
                return None

    def amend(
        self,
        router: Router,
        desired: Desired,
        declaration: Declaration,
        *,
        guard: Callable[[Plan], str],
        allow_mass_delete: bool,
    ) -> Done | None:
        """Looks at what is declared otherwise, single routes. None: a full pass has to. The
        generation with it is recorded by the next full pass: a batch of increments is no more than
        a step, and a record of all that is declared would be made for each."""
        context = self._context
        if context is None:
            return None
        with self.locked() as ledger:
            self._in_force.check(ledger, router)
            if self._newest(ledger) != self._generation:
                return None
            standing = self._look(router, ledger)
            if not _by_tag_alone(standing):
                return None
            host = self._open(router, standing)
            work = self._pass(router, desired, host, ledger)
            work.policy = replace(work.policy, allow_mass_delete=allow_mass_delete)
            tag = router.ownership.tag
            try:
                part = self._known_routes.amend(
                    desired, declaration, work.policy, tag, host, ledger
                )
                return self._few(
                    router, desired, part, work, ledger, PendingHints(), context, guard
                )
            except FullPassNeeded:
                return None

    def _routes(
        self,
        router: Router,
        desired: Desired,
        gathered: PendingHints,
        host: Drivers,
        ledger: Ledger,
        context: PassContext,
        guard: Callable[[Plan], str],
    ) -> Done:
        """A pass over single routes: those that were touched or are declared otherwise."""
        work = self._pass(router, desired, host, ledger)
        work.policy = replace(work.policy, unattended=self._is_new(ledger, router))
        tag, hints = router.ownership.tag, gathered.routes
        part = self._known_routes.begin(desired, work.policy, tag, hints, host, ledger)
        return self._few(router, desired, part, work, ledger, gathered, context, guard)

    def _few(
        self,
        router: Router,
        desired: Desired,
        part: RoutePass,
        work: Pass,
        ledger: Ledger,
        gathered: PendingHints,
        context: PassContext,
        guard: Callable[[Plan], str],
    ) -> Done:
        work.desired, work.host, work.ledger = part.desired, part, part
        work.generation = self._generation

        def settled(report: Report) -> Report:
            # Not before: the routes are there by now, and files of megabytes are stored.
            if part.declaration is None:
                work.generation = self._begin(ledger, router)
            else:
                self._unrecorded = True
            self._router = router
            return part.settled(report)

        def approve(plan: Plan) -> None:
            part.approve(plan, guard)

        try:
            done = self._run(router, work, approve, ledger, desired, gathered, settled)
        except (Refused, FullPassNeeded):
            raise
        except BaseException:
            self._known_routes.forget("a pass failed")
            raise
        if part.problem:
            self._context = None
            return replace(done, untried=True)
        self._context = PassContext(desired, done.report.after, context.standing)
        return done

    def _touched(
        self,
        router: Router,
        gathered: PendingHints,
        host: Drivers,
        ledger: Ledger,
        context: PassContext,
    ) -> Done:
        """A pass over what was touched, and over all routes where some were."""
        touched = gathered.touched
        if gathered.routes:
            touched = touched.joined(Touched(frozenset({ROUTE.name})))
        part = PartialPass(context, touched, host, ledger)
        work = self._pass(router, part.desired, part, part)
        work.generation, work.heard = self._generation, gathered.heard
        desired, settled = context.desired, part.settled
        done = self._run(router, work, part.approve, ledger, desired, gathered, settled)
        if ROUTE.name in touched.kinds:
            self._known_routes.remember(context, work.policy, router.ownership.tag)
        else:
            self._known_routes.left(context.plan)
        return done

    def keep_beside(self) -> tuple[Event, ...]:
        """Writes down what happened beside the passes, without one."""
        with self.locked() as ledger:
            events = [replace(event, generation=self._generation) for event in tuple(self.beside)]
            ledger.append_events(events)
            for _ in events:
                self.beside.popleft()
        return tuple(events)

    @property
    def ports(self) -> frozenset[int]:
        """Of the sockets that changes go over just now; may be asked from any thread."""
        sock = self._sock
        return frozenset({sock.port} - {0}) if sock is not None else frozenset()

    def close(self) -> None:
        self._close_host()
        self._known_routes.close()
        self._hold.close()
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    def locked(self) -> AbstractContextManager[Ledger]:
        """The ledger, alone."""
        if self._ledger is None:
            self._ledger = KeptLedger(self.paths, _COMMAND)
        return self._ledger.locked(LEDGER_WAIT_S)

    def _look(self, router: Router, ledger: Ledger) -> Standing:
        return namespace_ownership.look(self.paths, ledger, router.ownership.tag, read_epoch())

    def _open(self, router: Router, standing: Standing) -> Drivers:
        tags = router.ownership.tag, standing.former
        if self._host is not None and self._tags != tags:
            self._close_host()
        if self._host is None:
            self._sock, self._tags = NetlinkSocket(), tags
            self._host = drivers.of_machine(self.paths, tags[0], self._sock, former=tags[1])
        return self._host

    def _close_host(self) -> None:
        if self._host is not None:
            self._host.__exit__()
            self._host = self._sock = None

    def _pass(self, router: Router, desired: Desired, host: Host, ledger: Claims) -> Pass:
        policy = Policy(
            epoch=host.epoch,
            max_delete_share=router.ownership.max_delete_share,
            doubt=router.doubt,
            unloaded=self.unloaded,
        )
        nonce = lambda: str(secrets.randbelow(2**31 - 1) + 1)  # noqa: E731 (short)
        return Pass(desired, host, ledger, policy, nonce=nonce)

    def _run(
        self,
        router: Router,
        work: Pass,
        approve: Callable[[Plan], None],
        ledger: Ledger,
        desired: Desired,
        gathered: PendingHints,
        whole: Callable[[Report], Report] | None,
    ) -> Done:
        """desired: of everything. whole: turns the report of a pass over a part into one of
        everything; None where it is."""
        started, worked = self.clock(), time.thread_time()
        patience, before = self.patience, self._before
        held = before.held if before is not None else lambda _operation: False
        elsewhere = self._newest(ledger) != self._generation
        drift = Drift(gathered, patience.fights, held, elsewhere)
        told = ledger.take_told()
        if any(event.kind == event_kinds.LEDGER_WRITTEN for event in told):
            patience.backoff.clear()  # what was held back need not be any more
        # Somebody was at them: what failed may succeed now.
        patience.backoff.reset(gathered.told)
        self._stirred |= gathered.all_kinds
        if whole is None:
            patience.hurry(self._stirred)
            self._stirred = frozenset()
        first = True
        # Nothing but what is declared otherwise is looked at then.
        amended = isinstance(work.host, RoutePass) and work.host.declaration is not None

        def ready(changes: Sequence[Operation]) -> Sequence[Operation]:
            nonlocal first
            if first and before is not None and not amended:
                drift.find(before.drifted(changes, desired), started)
            first = False
            return patience.ready(changes, started)

        work.ready = ready
        try:
            report = work.run(approve)
        except (Refused, FullPassNeeded):
            raise
        except BaseException:
            self._close_host()
            if work.generation:
                with suppress(LedgerError):
                    ledger.finish_generation(work.generation, "failed")
            raise
        now = self.clock()
        report = whole(report) if whole is not None else report
        now_declared = work.desired if whole is None else desired
        self._before = (before or Before(desired, report.before)).then(now_declared, report)
        repairs, others = drift.split(report.results)
        news = patience.hear(report.results, started if whole is None else gathered.overdue, now)
        untried = patience.still_to_do(report.after.changes, report.results, now)
        rest = replace(report, results=tuple(others))
        beside = [replace(event, generation=work.generation) for event in tuple(self.beside)]
        noticed = [*beside, *drift.conflicts(before, report.after, work.generation)]
        events = event_rate.kept_of_parts(ledger, router.resources, noticed)
        events += drift.events(repairs, rest, work.generation, news, now)
        events += [fight_event(over, work.generation) for over in patience.fights.over(now)]
        self._record(ledger, report, work.generation, events)
        for _ in beside:
            self.beside.popleft()
        worked = time.thread_time() - worked
        claims = ledger.claims()
        return Done(
            report,
            work.generation,
            (*told, *ledger.take_told(), *events),
            whole is not None,
            untried,
            claims,
            worked,
            ledger.trouble,
        )

    def write_back(self) -> bool:
        """Whether the ledger is kept for good, as it may be again by now."""
        with self.locked() as ledger:
            return not ledger.trouble

    def go_on_without_ledger(self, why: UnusableError) -> bool:
        """On a working copy of what is known of it; False where that is what cannot be used."""
        if self._ledger is None:
            self._ledger = KeptLedger(self.paths, _COMMAND)
        return self._ledger.go_on_without(why, LEDGER_WAIT_S)

    def _record(
        self, ledger: Ledger, report: Report, generation: int, events: Sequence[Event]
    ) -> None:
        """Nothing where nothing happened: every write wakes a disk."""
        came_to = generation, journal.outcome(report)
        if events or came_to != self._recorded:
            journal.keep(ledger, report, generation, events)
            self._recorded = came_to

    def _begin(self, ledger: Ledger, router: Router) -> int:
        newest = self._newest(ledger)
        if router is not self._router or self._unrecorded or newest != self._generation:
            self._generation = ledger.begin_generation(router.files)
            self._unrecorded = False
        return self._generation

    def _is_new(self, ledger: Ledger, router: Router) -> bool:
        """Whether no pass was begun with this configuration yet. What goes in one that was, goes
        because facts changed: a lease is over."""
        if self._router is not None:
            return router is not self._router
        return not ledger.began_with(router.files)

    def _newest(self, ledger: Ledger) -> int:
        newest = ledger.generations(1)
        return newest[0].number if newest else 0


def _by_tag_alone(standing: Standing) -> bool:
    """Whether a look at a part tells what is ours: the namespace is, and all of it has one tag."""
    held = standing.holder or standing.unguarded  # else its file was lost: a full pass writes it
    return bool(standing.recovered and not standing.former and held and not standing.held_by)
