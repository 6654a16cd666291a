"""One pass from the command line: load, ask, apply, record, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli import daemon, show
from holdfast.cli.exit import Exit
from holdfast.cli.hold import hold
from holdfast.cli.load import load
from holdfast.cli.terminal import ProgressLine, Style, refuse_unasked, say
from holdfast.config import regular_file
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.plan import Plan
from holdfast.engine.reconcile import Pass, Report
from holdfast.errors import HoldfastError, LedgerError, Refused
from holdfast.host.epoch import read_epoch
from holdfast.host.namespace_holder import Hold
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.runtime import active_candidates, drivers, moves, namespace_ownership
from holdfast.runtime.load import Loaded, learn_again
from holdfast.runtime.preview import Showing, look
from holdfast.state import journal

if TYPE_CHECKING:  # a pass that changes nothing spends most of its time on imports
    from holdfast.cli.confirming import Confirming
    from holdfast.cli.planfile import StoredPlan
    from holdfast.engine.difference import Differences
    from holdfast.engine.driver import Result
    from holdfast.engine.intent import Desired
    from holdfast.render.outcomes import Telling
    from holdfast.resources.router import Router
    from holdfast.state.events import Event
    from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Request:
    paths: Paths
    file: Path | None
    command: str  # who holds the ledger, for others to read
    output: str
    ask: bool
    dry_run: bool
    allow_mass_delete: bool
    allow_lockout: bool
    allow_side_effects: bool
    wait: float  # seconds, for whoever holds the ledger
    confirm_within: float = 0.0  # seconds; 0: it need not be confirmed
    asked_for: bool = False  # by a person, who may mean what was reverted before
    full: bool = False  # all that differs in contents is shown
    leaves: bool = False  # the network namespace is given up once nothing of ours is left in it


def run(request: Request) -> int:
    served: Path | None = None
    with daemon.connect(request.paths, reads=request.dry_run) as found:
        if found is not None and request.confirm_within and not request.dry_run:
            served = found.file
            _refuse_served(found, request.file)
        elif found is not None:
            from holdfast.cli import daemon_run

            return daemon_run.run(request, found)
    return _alone(request, served)


def _refuse_served(found: daemon.Daemon, file: Path | None) -> None:
    if os.geteuid() != 0:
        raise Refused(
            "nothing was touched: a trial takes root, also where a daemon runs: it brings in a"
            " configuration that root has not written, and that may have programs run as root."
            " The daemon's group may confirm it, take it back, and go back to what was applied"
        )
    if found.serves(file):
        raise Refused(
            f"nothing was touched: a daemon (process {found.about.pid}) applies {found.file} as"
            " soon as it is written, so that it cannot be on trial: put the change into another"
            " file, which takes its place once it is confirmed"
        )


def _alone(request: Request, served: Path | None) -> int:
    """served: the file of a daemon that runs, whose place this one takes once it is confirmed."""
    stored = _stored_plan(request)
    config = request.file if stored is None else stored.config
    loaded = load(request.paths, config, programs=True)
    if stored is not None:
        stored.refuse_changed_config(loaded.about(request.paths))
        # Whoever stored it saw what others lose by it; more than that makes it another plan.
        allowed = request.allow_side_effects or stored.side_effects
        request = replace(request, allow_side_effects=allowed)
    return carry_out(request, loaded, stored, served)


def carry_out(
    request: Request,
    loaded: Loaded,
    stored: StoredPlan | None = None,
    served: Path | None = None,
    place: Callable[[], Callable[[], None]] | None = None,
) -> int:
    """place: puts the files in place that were loaded, and answers with how to undo that; called
    when nothing can refuse the pass any more."""
    if request.dry_run:
        return dry_run(request, loaded, stored)
    shown = ""
    if request.ask and stored is None:
        shown = agree(request, loaded)
    agreed = AgreedPass(request, loaded, stored, shown, place=place)
    if request.confirm_within:
        from holdfast.cli.confirming import Confirming

        agreed.confirming = Confirming(request, loaded, served)
    try:
        done = agreed.run()
    except HoldfastError:
        if agreed.confirming is not None:
            agreed.confirming.say_waits()
        raise
    show.report(done, agreed.generation, request.output, sys.stdout)
    kept = agreed.confirming is None or agreed.confirming.judge()
    return Exit.OK if done.converged and kept else Exit.FAILED


def _stored_plan(request: Request) -> StoredPlan | None:
    """The plan that FILE holds; None where it holds a configuration."""
    # A pipe can be read only once, and that is for the configuration.
    if request.file is None or not request.file.is_file():
        return None
    try:
        with regular_file.opened(request.file) as descriptor:
            start = os.read(descriptor, 64)
    except OSError:
        return None  # whoever loads it as a configuration says what is wrong with it
    if not start.lstrip().startswith(b"{"):
        return None
    from holdfast.cli import planfile

    return planfile.read(request.file, request.paths)


def dry_run(request: Request, loaded: Loaded, stored: StoredPlan | None = None) -> int:
    plan, differences = _look(request, loaded, Showing.asked(request.full))
    about = loaded.about(request.paths)
    if stored is not None:
        stored.refuse_changed_plan(plan, about)
    show.plan(plan, about, request.output, sys.stdout, differences)
    return shown(unknown=bool(plan.unknown), refused=bool(plan.refusal))


def shown(*, unknown: bool, refused: bool) -> int:
    """The exit code of a plan that is only looked at."""
    if refused:
        return Exit.REFUSED
    return Exit.FAILED if unknown else Exit.OK


def agree(request: Request, loaded: Loaded) -> str:
    """Shows the plan and asks; answers with the digest of what was agreed to.

    The ledger is not held while somebody thinks, so what they agreed to is compared with what
    there is to do once it is.
    """
    from holdfast.engine import document

    plan, differences = _look(request, loaded, Showing.asked(request.full))
    about = loaded.about(request.paths)
    _refuse(plan)
    stream = sys.stdout if request.output == "table" else sys.stderr
    if plan.changes:
        refuse_unasked()
        show.plan(plan, about, "table", stream, differences)
        print("Apply this? Only `yes` is taken for one: ", end="", file=stream, flush=True)
        if sys.stdin.readline().strip() != "yes":
            raise Refused("not applied: nothing was touched")
        refuse_beside_daemon(request)
    return document.digest(plan, about.files)


def refuse_beside_daemon(request: Request) -> None:
    """One that was started while somebody thought, or while another held the ledger, would undo
    all of it. A trial may be beside one."""
    if request.confirm_within:
        return
    with daemon.connect(request.paths, reads=True, waits=False) as found:
        if found is not None:
            raise Refused(
                f"nothing was touched: a daemon (process {found.about.pid}) was started meanwhile,"
                f" and keeps this host as {found.file} says: run this again"
            )


def _look(request: Request, loaded: Loaded, showing: Showing) -> tuple[Plan, Differences]:
    seen = look(
        request.paths,
        loaded,
        allow_mass_delete=request.allow_mass_delete,
        allow_side_effects=request.allow_side_effects,
        differences=showing,
    )
    return _guarded(seen.plan, request, loaded), seen.differences


def _guarded(plan: Plan, request: Request, loaded: Loaded) -> Plan:
    if not plan.changes:
        return plan
    from holdfast.cli import operator

    trial = request.confirm_within > 0
    return operator.guarded(plan, loaded, allow=request.allow_lockout, trial=trial)


def latched(ledger: Ledger, router: Router, *, lift: bool) -> None:
    """What was reverted is not applied again unless somebody asks for it."""
    latch = ledger.latch(router.files)
    if latch is None:
        return
    if not lift:
        raise Refused(
            f"nothing was touched: this very configuration was reverted (generation"
            f" {latch.generation}: {latch.reason}); `holdfast apply` applies it all the same"
        )
    ledger.lift_latch(router.files)


def _nonce() -> str:
    from secrets import randbelow  # only what is created gets one

    return str(randbelow(2**31 - 1) + 1)


def _refuse(plan: Plan) -> None:
    if plan.refusal:
        raise Refused(f"nothing was touched: {plan.refusal}")


@dataclass(slots=True)
class AgreedPass:
    """A pass that goes ahead only with what was agreed to."""

    request: Request
    loaded: Loaded
    stored: StoredPlan | None
    shown: str  # digest of the plan that somebody said yes to
    generation: int = 0
    confirming: Confirming | None = None
    place: Callable[[], Callable[[], None]] | None = None
    _progress: ProgressLine = field(default_factory=ProgressLine)
    _telling: Telling | None = None

    def run(self) -> Report:
        request, router = self.request, self.loaded.router
        tag, durable = router.ownership.tag, bool(request.confirm_within)
        with (
            hold(request.paths, request.command, request.wait, durable=durable) as ledger,
            ExitStack() as stack,
        ):
            refuse_beside_daemon(request)
            standing = namespace_ownership.look(request.paths, ledger, tag, read_epoch())
            host = stack.enter_context(
                drivers.of_machine(request.paths, tag, former=standing.former)
            )
            held = stack.enter_context(closing(Hold()))
            policy = self.loaded.policy(
                host.epoch,
                allow_mass_delete=request.allow_mass_delete,
                allow_side_effects=request.allow_side_effects,
            )
            if not request.asked_for:
                known = ledger.began_with(router.files)
                policy = replace(policy, unattended=not known, held_to=known)
            moved = moves.to_absent_links(request.paths, ledger, router)
            work = Pass(
                self.loaded.desired,
                host,
                ledger,
                replace(standing.policy(policy), moved=moved),
                progress=self._progress,
                nonce=_nonce,
            )

            if request.output == "table":
                work.told = self._tell
            if self.confirming is not None:
                work.ahead = self.confirming.ahead(ledger, host, lambda: self.generation)
            else:
                work.relearn = self._relearn

            def approve(plan: Plan) -> None:
                self._check(plan)
                if not request.asked_for:
                    latched(ledger, router, lift=False)
                recovered = namespace_ownership.take(held, ledger, standing, plan)
                work.policy = replace(work.policy, recovered=recovered, new_tag="")
                with self._placed():
                    if request.asked_for:
                        latched(ledger, router, lift=True)
                    self.generation = work.generation = ledger.begin_generation(router.files)

            try:
                done = work.run(approve)
                if self.confirming is not None and done.results:
                    # The way back is that of the first plan: what is to be done besides, by what
                    # is known now, is only said.
                    work.desired = self._relearn(work.desired)
                    done = replace(done, after=work.plan())
            except BaseException:
                if self.generation:
                    with suppress(LedgerError):
                        ledger.finish_generation(self.generation, "failed")
                raise
            finally:
                self._progress.clear()
            namespace_ownership.settle(ledger, standing, done)
            if self.request.leaves and done.nothing_left:
                namespace_ownership.release(held, ledger, standing)
            events = [*self._merged(ledger), *journal.record(ledger, done, self.generation)]
            events += active_candidates.record(ledger, router.resources, self.loaded.facts)
            if ledger.trouble:
                say([f"{Style.of(sys.stderr)('warning:', 'yellow')} {ledger.trouble}"], sys.stderr)
        # Not while others wait for the ledger: a sink may be slow.
        self._forward(events)
        return done

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """Files that are put in place stay there only if what they say is begun."""
        undo = self.place() if self.place is not None else lambda: None
        try:
            yield
        except Exception:
            undo()
            raise

    def _relearn(self, desired: Desired) -> Desired:
        """Where it is for the file alone: a part may go while it is applied."""
        fresh = learn_again(self.request.paths, self.loaded)
        if fresh is self.loaded:
            return desired
        self.loaded = fresh
        return fresh.desired

    def _tell(self, results: Sequence[Result]) -> None:
        from holdfast.render import outcomes

        if self._telling is None:
            self._telling = outcomes.Telling(Style.of(sys.stderr))
        self._progress.clear()
        say(self._telling.lines(outcomes.of(results)), sys.stderr)

    def _merged(self, ledger: Ledger) -> list[Event]:
        """What became of other sources, where there are any."""
        if self.loaded.effective is None:
            return []
        from holdfast.runtime import merge_events, sources

        sources.accept(ledger, self.loaded.effective)
        return merge_events.record(ledger, self.loaded.effective)

    def _forward(self, events: Sequence[Event]) -> None:
        router = self.loaded.router
        if not registry.having(router.resources, lambda kind: kind.receives_events):
            return
        from holdfast.runtime import log_sinks

        style = Style.of(sys.stderr)
        for problem in log_sinks.deliver(self.request.paths, router, self.request.command, events):
            say([f"{style('warning:', 'yellow')} {problem}"], sys.stderr)

    def _check(self, plan: Plan) -> None:
        _refuse(_guarded(plan, self.request, self.loaded))
        if self.stored is None and not self.shown:
            return
        about = self.loaded.about(self.request.paths)
        if self.stored is not None:
            self.stored.refuse_changed_plan(plan, about)
            return
        from holdfast.engine import document

        if document.digest(plan, about.files) != self.shown:
            raise Refused(
                "the host changed while the plan was being read, so this is no longer what was"
                " agreed to; nothing was touched, run it again"
            )
