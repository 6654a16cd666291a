"""One pass from the command line: load, ask, apply, record, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent import holding
from holdfast.agent.load import Loaded
from holdfast.cli import daemon, show
from holdfast.cli.exit import Exit
from holdfast.cli.hold import hold
from holdfast.cli.load import load
from holdfast.cli.terminal import ProgressLine, Style, say
from holdfast.config import regular_file
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.plan import Plan
from holdfast.engine.reconcile import Pass, Report
from holdfast.errors import HoldfastError, LedgerError, Refused
from holdfast.host.host import LinuxHost, read_epoch
from holdfast.host.namespace_holder import Hold
from holdfast.paths import Paths
from holdfast.state import journal

if TYPE_CHECKING:  # a pass that changes nothing spends most of its time on imports
    from holdfast.cli.confirming import Confirming
    from holdfast.cli.planfile import StoredPlan
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
    loaded = load(request.paths, request.file if stored is None else stored.config)
    if stored is not None:
        stored.refuse_changed_config(loaded.about(request.paths))
        # Whoever stored it saw what others lose by it; more than that makes it another plan.
        allowed = request.allow_side_effects or stored.side_effects
        request = replace(request, allow_side_effects=allowed)
    if request.dry_run:
        return _dry_run(request, loaded, stored)
    shown = ""
    if request.ask and stored is None:
        shown = agree(request, loaded)
    agreed = AgreedPass(request, loaded, stored, shown)
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


def _dry_run(request: Request, loaded: Loaded, stored: StoredPlan | None) -> int:
    plan = _look(request, loaded)
    about = loaded.about(request.paths)
    if stored is not None:
        stored.refuse_changed_plan(plan, about)
    show.plan(plan, about, request.output, sys.stdout)
    return Exit.REFUSED if plan.refusal else Exit.OK


def agree(request: Request, loaded: Loaded) -> str:
    """Shows the plan and asks; answers with the digest of what was agreed to.

    The ledger is not held while somebody thinks, so what they agreed to is compared with what
    there is to do once it is.
    """
    from holdfast.engine import document

    if not sys.stdin.isatty():
        raise Refused(
            "this would change the host, and nobody is there to be asked: add --yes, or look at"
            " it first with `holdfast plan`"
        )
    plan = _look(request, loaded)
    about = loaded.about(request.paths)
    _refuse(plan)
    stream = sys.stdout if request.output == "table" else sys.stderr
    if plan.changes:
        show.plan(plan, about, "table", stream)
        print("Apply this? Only `yes` is taken for one: ", end="", file=stream, flush=True)
        if sys.stdin.readline().strip() != "yes":
            raise Refused("not applied: nothing was touched")
    return document.digest(plan, about.files)


def check(request: Request, loaded: Loaded) -> None:
    """Asks, where somebody is to be asked; raises where it must not be done in any case."""
    if request.ask:
        agree(request, loaded)
    else:
        _refuse(_look(request, loaded))


def _look(request: Request, loaded: Loaded) -> Plan:
    from holdfast.agent.preview import look

    plan = look(
        request.paths,
        loaded,
        allow_mass_delete=request.allow_mass_delete,
        allow_side_effects=request.allow_side_effects,
    ).plan
    return _guarded(plan, request, loaded)


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
    _progress: ProgressLine = field(default_factory=ProgressLine)

    def run(self) -> Report:
        request, router = self.request, self.loaded.router
        tag, durable = router.ownership.tag, bool(request.confirm_within)
        with (
            hold(request.paths, request.command, request.wait, durable=durable) as ledger,
            ExitStack() as stack,
        ):
            standing = holding.look(request.paths, ledger, tag, read_epoch())
            host = stack.enter_context(LinuxHost(request.paths, tag, former=standing.former))
            held = stack.enter_context(closing(Hold()))
            policy = self.loaded.policy(
                host.epoch,
                allow_mass_delete=request.allow_mass_delete,
                allow_side_effects=request.allow_side_effects,
            )
            if not request.asked_for:
                policy = replace(policy, unattended=not ledger.began_with(router.files))
            work = Pass(
                self.loaded.desired,
                host,
                ledger,
                standing.policy(policy),
                progress=self._progress,
                nonce=_nonce,
            )

            if self.confirming is not None:
                work.ahead = self.confirming.ahead(ledger, host.epoch, lambda: self.generation)

            def approve(plan: Plan) -> None:
                self._check(plan)
                latched(ledger, router, lift=request.asked_for)
                recovered = holding.take(held, ledger, standing, plan)
                work.policy = replace(work.policy, recovered=recovered, new_tag="")
                self.generation = work.generation = ledger.begin_generation(router.files)

            try:
                done = work.run(approve)
            except BaseException:
                if self.generation:
                    with suppress(LedgerError):
                        ledger.finish_generation(self.generation, "failed")
                raise
            finally:
                self._progress.clear()
            holding.settle(ledger, standing, done)
            if self.request.leaves and done.nothing_left:
                holding.release(held, ledger, standing)
            events = [*self._merged(ledger), *journal.record(ledger, done, self.generation)]
            if ledger.trouble:
                say([f"{Style.of(sys.stderr)('warning:', 'yellow')} {ledger.trouble}"], sys.stderr)
        # Not while others wait for the ledger: a sink may be slow.
        self._forward(events)
        return done

    def _merged(self, ledger: Ledger) -> list[Event]:
        """What became of other sources, where there are any."""
        if self.loaded.effective is None:
            return []
        from holdfast.agent import merge_events, sources

        sources.accept(ledger, self.loaded.effective)
        return merge_events.record(ledger, self.loaded.effective)

    def _forward(self, events: Sequence[Event]) -> None:
        router = self.loaded.router
        if not any(resource.kind == "LogSink" for resource in router.resources):
            return
        from holdfast.host.log_sinks import forward  # few configurations have one

        style = Style.of(sys.stderr)
        for problem in forward(self.request.paths, router, self.request.command, events):
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
