"""Status, plan, explain, apply, confirm."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast import __version__
from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.fact_tracker import compile_in_force, with_links_of_gateways
from holdfast.agent.reconciler import Done
from holdfast.agent.services import wire
from holdfast.agent.services.backend import Backend
from holdfast.agent.services.pass_requests import PassRequest
from holdfast.agent.watch_manager import changed
from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits
from holdfast.api.callers import Caller
from holdfast.dataclass import asdict, dataclass, replace
from holdfast.engine import document
from holdfast.engine.difference import Differences
from holdfast.engine.driver import Result
from holdfast.engine.intent import BulkIntent
from holdfast.engine.plan import Plan
from holdfast.errors import HoldfastError, Refused
from holdfast.host.epoch import read_epoch
from holdfast.render import generations, outcomes, plan_text, report
from holdfast.render.explain.by_name import explain
from holdfast.render.generations import Told as GenerationsTold
from holdfast.resources.router import load_router
from holdfast.runtime import namespace_ownership, operators, sources
from holdfast.runtime import status as status_of
from holdfast.runtime.barriers import barred
from holdfast.runtime.conditions import conditions
from holdfast.runtime.confirm import deadline, revert, rollback
from holdfast.runtime.confirm import trial as confirm
from holdfast.runtime.confirm.confirm_request import asking
from holdfast.runtime.confirm.rollback import RollbackTarget
from holdfast.runtime.load import Loaded, of_router
from holdfast.runtime.needed_programs import lacking
from holdfast.runtime.phases import phases
from holdfast.runtime.preview import Showing, look
from holdfast.runtime.trusted_configuration import refuse_untrusted
from holdfast.state.ledger import Ledger

# How often is looked whether the first pass is over.
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Router:
    backend: Backend

    async def about(self, _request: pb.AboutRequest, _caller: Caller) -> pb.AboutReply:
        """Not before the first pass, which has a limit: until then there is nothing to be told."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.FIRST_PASS_S):
                while not (self.backend.loop.status.passes or self.backend.loop.status.troubles):
                    await asyncio.sleep(_LOOK_S)
        return pb.AboutReply(
            version=__version__,
            pid=os.getpid(),
            root=str(self.backend.paths.root),
            file=str(self.backend.loop.file),
            network_namespace=Path("/proc/self/ns/net").stat().st_ino,
            started=self.backend.started,
        )

    async def console(self, _request: pb.ConsoleRequest, _caller: Caller) -> pb.ConsoleReply:
        found = self.backend.loop.console
        if found is None or found.problem:
            why = found.problem if found is not None else "the daemon runs with `--listen none`"
            raise Refused(f"there is no console: {why}")
        from holdfast.web.server import why_silent  # loaded by now, as there is a console

        return pb.ConsoleReply(address=found.address, silent=why_silent(found.listen))

    async def status(self, request: pb.StatusRequest, _caller: Caller) -> pb.StatusReply:
        daemon, paths = self.backend.loop.status, self.backend.paths
        router = self.backend.in_force(daemon).router

        def tell(plan: Plan) -> pb.StatusReply:
            resources = phases(plan, router.resources, daemon.suppressed)
            past = _last_pass(status_of.past(paths), daemon)
            told = status_of.status(router.name, resources, plan, past)
            told = conditions(paths, router.resources, daemon.facts, plan).told(told)
            with Ledger.read(paths) as ledger:
                standing = namespace_ownership.look(
                    paths, ledger, router.ownership.tag, read_epoch()
                )
            return wire.status_to(replace(told, namespace=standing.entry()), daemon)

        if request.last_pass:
            last = daemon.plan
            if last is None:
                raise Refused("there was no pass yet: ask again in a moment")
            return await self.backend.in_thread(lambda: tell(last))
        async with self.backend.turns:
            return await self.backend.in_thread(
                lambda: tell(look(paths, self._loaded(daemon)).plan)
            )

    async def plan(
        self, request: pb.PlanRequest, _caller: Caller
    ) -> AsyncGenerator[pb.PlanReply, None]:
        daemon, paths = self.backend.loop.status, self.backend.paths

        def work() -> tuple[Plan, Differences, Loaded, str]:
            with Ledger.read(paths) as ledger:
                waiting = ledger.waiting()
            if request.HasField("back"):
                _, loaded = self._back(request.back)
            elif waiting is not None:
                loaded = self._loaded(daemon)
            else:
                loaded = self._declared(daemon)
            said = confirm.notice(waiting) if waiting is not None else ""
            made, seen = self._guarded(request, loaded, Showing.asked(request.full))
            return made, seen, loaded, said

        async with self.backend.turns:
            plan, differences, loaded, waiting = await self.backend.in_thread(work)
            in_the_way = await self.backend.in_thread(
                lambda: barred(loaded.router.resources, loaded.facts)
            )
            missing = await self.backend.in_thread(lambda: lacking(paths, loaded))
        head = pb.PlanHead(
            changes=bool(plan.changes),
            unknown=bool(plan.unknown),
            refusal=plan.refusal,
            waiting=waiting,
            # No errors: the daemon takes its file all the same, and does what can be done of it.
            warnings=(*(f"{name}: {why}" for name, why in in_the_way.items()), *map(str, missing)),
        )
        yield pb.PlanReply(head=head)
        pieces = self.backend.pieces(
            request.form,
            lambda: document.members(plan, loaded.about(paths), differences),
            lambda style: plan_text.plan(plan, style, differences),
        )
        async for data in pieces:
            yield pb.PlanReply(data=data)

    async def explain(
        self, request: pb.ExplainRequest, _caller: Caller
    ) -> AsyncGenerator[pb.Document, None]:
        daemon, paths = self.backend.loop.status, self.backend.paths
        async with self.backend.turns:
            told = await self.backend.in_thread(
                lambda: explain(paths, self._loaded(daemon), request.name)
            )
        if not told.found and request.form.text:
            raise HoldfastError(told.absent)
        async for piece in self.backend.document(request.form, told.members, told.lines):
            yield piece
        yield pb.Document(exit_code=0 if told.found else 1)

    async def apply(
        self, request: pb.ApplyRequest, _caller: Caller
    ) -> AsyncGenerator[pb.ApplyReply, None]:
        running = asyncio.get_running_loop()
        steps: asyncio.Queue[pb.ApplyReply | None] = asyncio.Queue()

        def progress(done: int, total: int) -> None:
            step = pb.ApplyReply(progress=pb.Progress(done=done, total=total))
            running.call_soon_threadsafe(_unless_behind, steps, step)

        def told(results: Sequence[Result]) -> None:
            for outcome in outcomes.of(results):
                step = pb.ApplyReply(outcome=pb.Outcome(**asdict(outcome)))
                running.call_soon_threadsafe(steps.put_nowait, step)

        question = PassRequest(
            running.create_future(),
            progress,
            told,
            request.allow_mass_delete,
            request.allow_lockout,
            request.allow_side_effects,
        )
        question.answer.add_done_callback(lambda answer: _ended(steps, answer))
        if request.HasField("back"):
            async with self.backend.turns:
                back = await self.backend.in_thread(lambda: self._put_back(request))
            # At once, or the pass that the written file leads to would come first.
            self.backend.loop.ask(question)
            placed = pb.Placed(generation=back.number, files=map(str, back.files))
            yield pb.ApplyReply(placed=placed)
        else:
            await self.backend.in_thread(
                lambda: confirm.lift(self.backend.paths, self.backend.loop.file, "holdfast apply")
            )
            self.backend.loop.ask(question)
        while (step := await steps.get()) is not None:
            yield step
        done = await question.answer
        result = pb.ApplyResult(converged=done.report.converged, generation=done.generation)
        yield pb.ApplyReply(result=result)
        pieces = self.backend.pieces(
            request.form,
            lambda: report.members(done.report, done.generation),
            lambda style: report.lines(done.report, style),
        )
        async for data in pieces:
            yield pb.ApplyReply(data=data)

    async def confirm(self, request: pb.ConfirmRequest, caller: Caller) -> pb.ConfirmReply:
        moment = deadline.boot_clock()
        _refuse_unnamed(request.generation, caller)

        def work() -> pb.ConfirmReply:
            # Before it is left for everybody to see that this was asked: an operator may be
            # waiting for the ledger with what is left there.
            with Ledger.read(self.backend.paths) as ledger:
                confirm.refuse_another(ledger.waiting(), request.generation)
            with (
                asking(self.backend.paths, request.generation, moment) as asked,
                self.backend.ledger("holdfast confirm") as ledger,
            ):
                kept = confirm.confirm(ledger, asked, caller.source)
            return pb.ConfirmReply(
                generation=kept.generation, file=kept.file, installed=kept.installs
            )

        return await self.backend.in_thread(work)

    async def take_back(self, request: pb.TakeBackRequest, caller: Caller) -> pb.TakeBackReply:
        _refuse_unnamed(request.generation, caller)

        def work() -> pb.TakeBackReply:
            with self.backend.ledger("holdfast rollback") as ledger:
                confirm.refuse_another(ledger.waiting(), request.generation)
                reason = f"it was taken back by {caller.source or '`holdfast rollback`'}"
                done = revert.revert(self.backend.paths, ledger, reason, revert.ASKED)
            if done is None:
                return pb.TakeBackReply()
            if not done.finished:
                raise Refused(done.told())
            return pb.TakeBackReply(waited=True, told=done.told())

        return await self.backend.in_thread(work)

    async def generations(
        self, request: pb.GenerationsRequest, _caller: Caller
    ) -> AsyncGenerator[pb.Document, None]:
        def work() -> GenerationsTold:
            with Ledger.read(self.backend.paths) as ledger:
                return generations.told(
                    ledger, request.show, request.before, request.after, full=request.full
                )

        told = await self.backend.in_thread(work)
        async for piece in self.backend.document(request.form, told.members, told.lines):
            yield piece

    def _back(self, asked: pb.Back) -> tuple[RollbackTarget, Loaded]:
        with Ledger.read(self.backend.paths) as ledger:
            back = rollback.find(
                self.backend.paths,
                ledger,
                asked.to,
                self.backend.loop.file,
                overwrite=asked.overwrite,
            )
        return back, of_router(self.backend.paths, back.place, back.router, lambda _warning: None)

    def _put_back(self, request: pb.ApplyRequest) -> RollbackTarget:
        """What the pass would be refused for is found out before a file is written."""
        back, loaded = self._back(request.back)
        plan, _ = self._guarded(request, loaded, Showing.NONE)
        if plan.refusal:
            raise Refused(f"nothing was touched: {plan.refusal}")
        undo = rollback.put(back)
        try:
            confirm.lift(self.backend.paths, self.backend.loop.file, "holdfast rollback")
        except Exception:
            undo()
            raise
        return back

    def _guarded(
        self, request: pb.PlanRequest | pb.ApplyRequest, loaded: Loaded, showing: Showing
    ) -> tuple[Plan, Differences]:
        """The plan, refused where the pass would be; and what differs in contents."""
        seen = look(
            self.backend.paths,
            loaded,
            allow_mass_delete=request.allow_mass_delete,
            allow_side_effects=request.allow_side_effects,
            differences=showing,
        )
        plan = seen.plan
        held = (
            loaded.router is self.backend.loop.status.router
        )  # what is held to already cuts nobody off
        if held or plan.refusal or request.allow_lockout or not plan.changes:
            return plan, seen.differences
        cut = operators.cut_any(plan, loaded.router, loaded.facts, loaded.root)
        return replace(plan, refusal=cut), seen.differences

    def _declared(self, daemon: DaemonStatus) -> Loaded:
        """What an apply is made for: what the file and all parts say now, also where that was
        refused."""
        held = daemon.effective
        if held is None or changed({Path(file.path): file.content for file in held.startup.files}):
            refuse_untrusted(self.backend.loop.file)
            said = load_router(self.backend.loop.file, self.backend.paths.root)
        else:
            said = held.startup
        with Ledger.read(self.backend.paths) as ledger:
            merged = sources.stored(ledger).merge(said, time.time())
        if held is not None and merged.router.files == held.router.files:
            return self._loaded(daemon)
        loaded = of_router(self.backend.paths, self.backend.loop.file, said, lambda _warning: None)
        return replace(loaded, unloaded=daemon.unloaded)

    def _loaded(self, daemon: DaemonStatus) -> Loaded:
        effective, facts = self.backend.in_force(daemon), daemon.facts
        router, root = effective.router, str(self.backend.paths.root).rstrip("/")
        desired = compile_in_force(router, facts, root)
        if any(isinstance(intent, BulkIntent) and intent.lacks for intent in desired.intents):
            # What is said to be lacking is looked for now: the last pass may be half a minute old.
            facts = with_links_of_gateways(self.backend.paths, router, facts)
            desired = compile_in_force(router, facts, root)
        return Loaded(
            self.backend.loop.file, router, root, facts, desired, effective, daemon.unloaded
        )


def _refuse_unnamed(generation: int, caller: Caller) -> None:
    """A program decides about the trial that it looked at. Of the next one it knows nothing."""
    if caller.source and not generation:
        raise Refused(
            f"{caller.source} has to name the generation: `trial` of Router.Status says which waits"
        )


def _last_pass(past: status_of.Past, daemon: DaemonStatus) -> status_of.Past:
    """A pass that changes nothing leaves no trace in the ledger."""
    if past.last_pass is None or not daemon.last_pass:
        return past
    return replace(past, last_pass={**past.last_pass, "time": int(daemon.last_pass)})


def _ended(steps: asyncio.Queue[pb.ApplyReply | None], answer: asyncio.Future[Done]) -> None:
    if not answer.cancelled():
        answer.exception()  # whoever asked may be gone, and asyncio would complain of that
    steps.put_nowait(None)


def _unless_behind(steps: asyncio.Queue[pb.ApplyReply | None], step: pb.ApplyReply) -> None:
    """Who reads slowly is told less of how far it is; what became of operations is never lost."""
    if steps.empty():
        steps.put_nowait(step)
