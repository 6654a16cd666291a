"""One pass from the command line: load, ask, apply, record, report."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli import report
from holdfast.cli.exit import Exit
from holdfast.cli.hold import hold
from holdfast.cli.load import Loaded, load
from holdfast.cli.terminal import ProgressLine, Style, say
from holdfast.engine.plan import Plan
from holdfast.engine.reconcile import Pass, Report
from holdfast.errors import LedgerError, Refused
from holdfast.host.host import LinuxHost
from holdfast.paths import Paths
from holdfast.state import journal

if TYPE_CHECKING:  # a pass that changes nothing spends most of its time on imports
    from holdfast.cli.planfile import StoredPlan
    from holdfast.state.events import Event


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
    wait: float  # seconds, for whoever holds the ledger


def run(request: Request) -> int:
    stored = _stored_plan(request)
    loaded = load(request.paths, request.file if stored is None else stored.config)
    if stored is not None:
        stored.refuse_changed_config(loaded.about(request.paths))
    if request.dry_run:
        return _dry_run(request, loaded, stored)
    shown = ""
    if request.ask and stored is None:
        shown = _ask(request, loaded)
    agreed = _AgreedPass(request, loaded, stored, shown)
    done = agreed.run()
    report.show(done, agreed.generation, request.output, sys.stdout)
    return Exit.OK if done.converged else Exit.FAILED


def _stored_plan(request: Request) -> StoredPlan | None:
    """The plan that FILE holds; None where it holds a configuration."""
    # A pipe can be read only once, and that is for the configuration.
    if request.file is None or not request.file.is_file():
        return None
    try:
        with request.file.open("rb") as stream:
            start = stream.read(64)
    except OSError:
        return None  # whoever loads it as a configuration says what is wrong with it
    if not start.lstrip().startswith(b"{"):
        return None
    from holdfast.cli import planfile

    return planfile.read(request.file, request.paths)


def _dry_run(request: Request, loaded: Loaded, stored: StoredPlan | None) -> int:
    from holdfast.cli import show

    plan = _look(request, loaded)
    about = loaded.about(request.paths)
    if stored is not None:
        stored.refuse_changed_plan(plan, about)
    show.plan(plan, about, request.output, sys.stdout)
    return Exit.REFUSED if plan.refusal else Exit.OK


def _ask(request: Request, loaded: Loaded) -> str:
    """Shows the plan and asks; answers with the digest of what was agreed to.

    The ledger is not held while somebody thinks, so what they agreed to is compared with what
    there is to do once it is.
    """
    from holdfast.cli import show
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


def _look(request: Request, loaded: Loaded) -> Plan:
    from holdfast.cli.preview import look

    plan = look(request.paths, loaded, allow_mass_delete=request.allow_mass_delete).plan
    return _guarded(plan, request, loaded)


def _guarded(plan: Plan, request: Request, loaded: Loaded) -> Plan:
    if not plan.changes:
        return plan
    from holdfast.cli import operator

    return operator.guarded(plan, loaded, allow=request.allow_lockout)


def _refuse(plan: Plan) -> None:
    if plan.refusal:
        raise Refused(f"nothing was touched: {plan.refusal}")


@dataclass(slots=True)
class _AgreedPass:
    """A pass that goes ahead only with what was agreed to."""

    request: Request
    loaded: Loaded
    stored: StoredPlan | None
    shown: str  # digest of the plan that somebody said yes to
    generation: int = 0
    _progress: ProgressLine = field(default_factory=ProgressLine)

    def run(self) -> Report:
        request, router = self.request, self.loaded.router
        with (
            hold(request.paths, request.command, request.wait) as ledger,
            LinuxHost(request.paths, router.ownership.tag) as host,
        ):
            policy = self.loaded.policy(host.epoch, allow_mass_delete=request.allow_mass_delete)
            work = Pass(
                self.loaded.desired,
                host,
                ledger,
                policy,
                progress=self._progress,
                nonce=lambda: str(secrets.randbelow(2**31 - 1) + 1),
            )

            def approve(plan: Plan) -> None:
                self._check(plan)
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
            events = journal.record(ledger, done, self.generation)
        # Not while others wait for the ledger: a sink may be slow.
        self._forward(events)
        return done

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
