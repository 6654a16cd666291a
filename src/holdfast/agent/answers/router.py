"""Status, plan, explain, apply, confirm."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

from holdfast import __version__
from holdfast.agent import holding, operators, sources
from holdfast.agent.answers import wire
from holdfast.agent.answers.asked import Question
from holdfast.agent.answers.base import Answers
from holdfast.agent.confirm import deadline, going_back, revert
from holdfast.agent.confirm import window as confirm
from holdfast.agent.confirm.asked import asking
from holdfast.agent.confirm.going_back import Back
from holdfast.agent.following import changed
from holdfast.agent.learning import compile_in_force
from holdfast.agent.load import Loaded, of_router
from holdfast.agent.passes import Done
from holdfast.agent.phases import phases
from holdfast.agent.preview import look
from holdfast.agent.status import DaemonStatus
from holdfast.agent.stories import generations, render, report
from holdfast.agent.stories import status as status_story
from holdfast.agent.stories.explained import explain
from holdfast.agent.stories.generations import Told as GenerationsTold
from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits
from holdfast.dataclass import dataclass, replace
from holdfast.engine import document
from holdfast.engine.plan import Plan
from holdfast.errors import HoldfastError, Refused
from holdfast.host.host import read_epoch
from holdfast.resources.router import load_router
from holdfast.state.ledger import Ledger

# How often is looked whether the first pass is over.
_LOOK_S = 0.02


@dataclass(slots=True)
class RouterAnswers(Answers):
    async def about(self, _request: pb.AboutRequest) -> pb.AboutReply:
        """Not before the first pass, which has a limit: until then there is nothing to be told."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.FIRST_PASS_S):
                while not (self.loop.status.passes or self.loop.status.troubles):
                    await asyncio.sleep(_LOOK_S)
        return pb.AboutReply(
            version=__version__,
            pid=os.getpid(),
            root=str(self.paths.root),
            file=str(self.loop.file),
            network_namespace=Path("/proc/self/ns/net").stat().st_ino,
            started=self.started,
        )

    async def status(self, request: pb.StatusRequest) -> pb.StatusReply:
        daemon, paths = self.loop.status, self.paths
        router = self.in_force(daemon).router

        def tell(plan: Plan) -> pb.StatusReply:
            resources = phases(plan, router.resources, daemon.suppressed)
            past = _last_pass(status_story.past(paths), daemon)
            told = status_story.status(router.name, resources, plan, past)
            with Ledger.read(paths) as ledger:
                standing = holding.look(paths, ledger, router.ownership.tag, read_epoch())
            return wire.status_to(replace(told, namespace=standing.entry()), daemon)

        if request.last_pass:
            last = daemon.plan
            if last is None:
                raise Refused("there was no pass yet: ask again in a moment")
            return await self.in_thread(lambda: tell(last))
        async with self.turns:
            return await self.in_thread(lambda: tell(look(paths, self._loaded(daemon)).plan))

    async def plan(self, request: pb.PlanRequest) -> AsyncGenerator[pb.PlanReply, None]:
        daemon, paths = self.loop.status, self.paths

        def work() -> tuple[Plan, Loaded, str]:
            with Ledger.read(paths) as ledger:
                waiting = ledger.waiting()
            if request.HasField("back"):
                _, loaded = self._back(request.back)
            elif waiting is not None:
                loaded = self._loaded(daemon)
            else:
                loaded = self._declared(daemon)
            said = confirm.notice(waiting) if waiting is not None else ""
            return self._guarded(request, loaded), loaded, said

        async with self.turns:
            plan, loaded, waiting = await self.in_thread(work)
        head = pb.PlanHead(
            changes=bool(plan.changes),
            unknown=bool(plan.unknown),
            refusal=plan.refusal,
            waiting=waiting,
        )
        yield pb.PlanReply(head=head)
        pieces = self.pieces(
            request.form,
            lambda: document.members(plan, loaded.about(paths)),
            lambda style: render.plan(plan, style),
        )
        async for data in pieces:
            yield pb.PlanReply(data=data)

    async def explain(self, request: pb.ExplainRequest) -> AsyncGenerator[pb.Document, None]:
        daemon, paths = self.loop.status, self.paths
        async with self.turns:
            told = await self.in_thread(lambda: explain(paths, self._loaded(daemon), request.name))
        if not told.found and request.form.text:
            raise HoldfastError(told.absent)
        async for piece in self.document(request.form, told.members, told.lines):
            yield piece
        yield pb.Document(exit_code=0 if told.found else 1)

    async def apply(self, request: pb.ApplyRequest) -> AsyncGenerator[pb.ApplyReply, None]:
        running = asyncio.get_running_loop()
        steps: asyncio.Queue[pb.Progress | None] = asyncio.Queue(1)

        def progress(done: int, total: int) -> None:
            running.call_soon_threadsafe(_latest, steps, pb.Progress(done=done, total=total))

        question = Question(
            running.create_future(),
            progress,
            request.allow_mass_delete,
            request.allow_lockout,
            request.allow_side_effects,
        )
        question.answer.add_done_callback(lambda answer: _ended(steps, answer))
        if request.HasField("back"):
            async with self.turns:
                back = await self.in_thread(lambda: self._put_back(request))
            # At once, or the pass that the written file leads to would come first.
            self.loop.ask(question)
            placed = pb.Placed(generation=back.number, files=map(str, back.files))
            yield pb.ApplyReply(placed=placed)
        else:
            await self.in_thread(lambda: confirm.lift(self.paths, self.loop.file, "holdfast apply"))
            self.loop.ask(question)
        while (step := await steps.get()) is not None:
            yield pb.ApplyReply(progress=step)
        done = await question.answer
        result = pb.ApplyResult(converged=done.report.converged, generation=done.generation)
        yield pb.ApplyReply(result=result)
        pieces = self.pieces(
            request.form,
            lambda: report.members(done.report, done.generation),
            lambda style: report.lines(done.report, style),
        )
        async for data in pieces:
            yield pb.ApplyReply(data=data)

    async def confirm(self, request: pb.ConfirmRequest) -> pb.ConfirmReply:
        moment = deadline.boot_clock()

        def work() -> pb.ConfirmReply:
            with (
                asking(self.paths, request.generation, moment) as asked,
                self.ledger("holdfast confirm") as ledger,
            ):
                kept = confirm.confirm(ledger, asked)
            return pb.ConfirmReply(
                generation=kept.generation, file=kept.file, installed=kept.installs
            )

        return await self.in_thread(work)

    async def take_back(self, _request: pb.TakeBackRequest) -> pb.TakeBackReply:
        def work() -> pb.TakeBackReply:
            with self.ledger("holdfast rollback") as ledger:
                reason = "it was taken back by `holdfast rollback`"
                done = revert.revert(self.paths, ledger, reason)
            if done is None:
                return pb.TakeBackReply()
            if not done.finished:
                raise Refused(done.told())
            return pb.TakeBackReply(waited=True, told=done.told())

        return await self.in_thread(work)

    async def generations(
        self, request: pb.GenerationsRequest
    ) -> AsyncGenerator[pb.Document, None]:
        def work() -> GenerationsTold:
            with Ledger.read(self.paths) as ledger:
                return generations.told(ledger, request.show, request.before, request.after)

        told = await self.in_thread(work)
        async for piece in self.document(request.form, told.members, told.lines):
            yield piece

    def _back(self, asked: pb.Back) -> tuple[Back, Loaded]:
        with Ledger.read(self.paths) as ledger:
            back = going_back.find(
                self.paths, ledger, asked.to, self.loop.file, overwrite=asked.overwrite
            )
        return back, of_router(self.paths, back.place, back.router, lambda _warning: None)

    def _put_back(self, request: pb.ApplyRequest) -> Back:
        """What the pass would be refused for is found out before a file is written."""
        back, loaded = self._back(request.back)
        plan = self._guarded(request, loaded)
        if plan.refusal:
            raise Refused(f"nothing was touched: {plan.refusal}")
        going_back.put(back)
        confirm.lift(self.paths, self.loop.file, "holdfast rollback")
        return back

    def _guarded(self, request: pb.PlanRequest | pb.ApplyRequest, loaded: Loaded) -> Plan:
        """The plan, refused where the pass would be."""
        plan = look(
            self.paths,
            loaded,
            allow_mass_delete=request.allow_mass_delete,
            allow_side_effects=request.allow_side_effects,
        ).plan
        held = loaded.router is self.loop.status.router  # what is held to already cuts nobody off
        if held or plan.refusal or request.allow_lockout or not plan.changes:
            return plan
        return replace(
            plan, refusal=operators.cut_any(plan, loaded.router, loaded.facts, loaded.root)
        )

    def _declared(self, daemon: DaemonStatus) -> Loaded:
        """What an apply is made for: what the file and all parts say now, also where that was
        refused."""
        held = daemon.effective
        if held is None or changed({Path(one.path): one.content for one in held.startup.files}):
            said = load_router(self.loop.file, self.paths.root)
        else:
            said = held.startup
        with Ledger.read(self.paths) as ledger:
            merged = sources.stored(ledger).merge(said, time.time())
        if held is not None and merged.router.files == held.router.files:
            return self._loaded(daemon)
        loaded = of_router(self.paths, self.loop.file, said, lambda _warning: None)
        return replace(loaded, unloaded=daemon.unloaded)

    def _loaded(self, daemon: DaemonStatus) -> Loaded:
        effective, facts = self.in_force(daemon), daemon.facts
        router, root = effective.router, str(self.paths.root).rstrip("/")
        desired = compile_in_force(router, facts, root)
        return Loaded(self.loop.file, router, root, facts, desired, effective, daemon.unloaded)


def _last_pass(past: status_story.Past, daemon: DaemonStatus) -> status_story.Past:
    """A pass that changes nothing leaves no trace in the ledger."""
    if past.last_pass is None or not daemon.last_pass:
        return past
    return replace(past, last_pass={**past.last_pass, "time": int(daemon.last_pass)})


def _ended(steps: asyncio.Queue[pb.Progress | None], answer: asyncio.Future[Done]) -> None:
    if not answer.cancelled():
        answer.exception()  # whoever asked may be gone, and asyncio would complain of that
    _latest(steps, None)


def _latest(steps: asyncio.Queue[pb.Progress | None], step: pb.Progress | None) -> None:
    """Who reads slowly gets the newest; the end is never lost."""
    if steps.full() and steps.get_nowait() is None:
        step = None
    steps.put_nowait(step)
