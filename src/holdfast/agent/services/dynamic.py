"""Parts of sources besides the startup file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from holdfast.agent.declare_requests import Declared, DeclareRequest, Seen
from holdfast.agent.services.backend import Backend
from holdfast.api import holdfast_pb2 as pb
from holdfast.api.callers import Caller
from holdfast.config.part import Id, Raw
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError, Refused
from holdfast.render import dynamic, effective_config
from holdfast.render.dynamic import Parts
from holdfast.resources.dynamic.dynamic_config_part import part_of
from holdfast.resources.dynamic.source_name import plugin_of
from holdfast.runtime import sources
from holdfast.runtime.increments import Answer, Batch
from holdfast.runtime.plugins.protocol import Nonsense, parse_json
from holdfast.state.ledger import Ledger

# Who waits longer asks again: what was declared stays declared.
_LONGEST_WAIT_S = 50.0


@dataclass(frozen=True, slots=True)
class Dynamic:
    backend: Backend

    async def list(
        self, request: pb.ListPartsRequest, caller: Caller
    ) -> AsyncGenerator[pb.Document, None]:
        source = request.source or caller.source
        caller.refuse_other_source(source)
        parts = await self.backend.in_thread(self._parts)
        found = parts.listed(every=request.all, source=source, status=request.status)
        asked = bool(source or request.status)
        pieces = self.backend.document(
            request.form,
            lambda: dynamic.list_members(found),
            lambda style: dynamic.list_lines(found, style, every=not asked),
        )
        async for piece in pieces:
            yield piece

    async def describe(
        self, request: pb.DescribePartRequest, caller: Caller
    ) -> AsyncGenerator[pb.Document, None]:
        caller.refuse_other_source(request.source)
        parts = await self.backend.in_thread(self._parts)
        found = tuple(
            status
            for status in parts.of(request.source)
            if caller.source in ("", status.source)  # a part of another may be called so
        )
        pieces = self.backend.document(
            request.form,
            lambda: dynamic.describe_members(found),
            lambda style: dynamic.describe_lines(found, style),
        )
        async for piece in pieces:
            yield piece

    async def render(
        self, _request: pb.RenderRequest, _caller: Caller
    ) -> AsyncGenerator[pb.Document, None]:
        effective = (await self.backend.in_thread(self._parts)).effective
        pieces = self.backend.document(
            pb.Form(), lambda: effective_config.members(effective), lambda _style: iter(())
        )
        async for piece in pieces:
            yield piece

    async def diff(
        self, request: pb.DiffRequest, _caller: Caller
    ) -> AsyncGenerator[pb.Document, None]:
        effective = (await self.backend.in_thread(self._parts)).effective
        pieces = self.backend.document(
            request.form,
            lambda: dynamic.diff_members(effective),
            lambda style: dynamic.diff_lines(effective, style),
        )
        async for piece in pieces:
            yield piece

    async def put(self, request: pb.PutPartRequest, caller: Caller) -> pb.PutPartReply:
        def work() -> pb.PutPartReply:
            part = part_of(_json(request.document))
            caller.refuse_other_source(part.source)
            if plugin_of(part.source):
                raise Refused(
                    f"{part.source}: parts of plugins come from their runs; others have a source"
                    " such as Owner/ci"
                )
            with self.backend.ledger("holdfast dynamic put") as ledger:
                replaced = sources.put(ledger, part)
            try:
                effective = self._parts().effective
            except Refused as error:  # it is stored all the same
                return pb.PutPartReply(ref=part.ref, rejected=(str(error),), replaced=replaced)
            reasons = [
                rejected.told for rejected in effective.rejected if rejected.part.ref == part.ref
            ]
            ignored = [
                str(ignored) for ignored in effective.ignored if ignored.part.ref == part.ref
            ]
            return pb.PutPartReply(
                ref=part.ref,
                rejected=reasons[0] if reasons else (),
                ignored=ignored,
                replaced=replaced,
            )

        reply = await self.backend.in_thread(work)
        self.backend.loop.wake(f"the part {reply.ref}")
        return reply

    async def declare(self, request: pb.DeclareRequest, caller: Caller) -> pb.DeclareReply:
        caller.refuse_other_source(request.source)
        wait = min(max(request.wait_seconds, 0.0), _LONGEST_WAIT_S)
        told: asyncio.Future[Declared] = asyncio.get_running_loop().create_future()
        batch = Batch(
            request.source,
            tuple(_resource(one) for one in request.put),
            tuple(_id(one) for one in request.withdraw),
            request.each,
            request.begin_sync,
            request.complete_sync,
            request.dry_run,
        )
        stored: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.backend.loop.declare(DeclareRequest(batch, wait > 0, told, stored))
        answer = await stored
        try:
            async with asyncio.timeout(wait or None):
                return _declared(await told)
        except TimeoutError:
            seen = (Seen.PENDING, f"no pass has seen it after {wait:g} s")
            return _declared(Declared(answer, {outcome.id: seen for outcome in answer.outcomes}))

    async def withdraw(
        self, request: pb.WithdrawPartRequest, caller: Caller
    ) -> pb.WithdrawPartReply:
        caller.refuse_other_source(request.source)

        def work() -> pb.WithdrawPartReply:
            with self.backend.ledger("holdfast dynamic withdraw") as ledger:
                return pb.WithdrawPartReply(ref=sources.withdraw(ledger, request.source))

        reply = await self.backend.in_thread(work)
        self.backend.loop.wake(f"the end of {reply.ref}")
        return reply

    def _parts(self) -> Parts:
        startup = self.backend.in_force(self.backend.loop.status).startup
        with Ledger.read(self.backend.paths) as ledger:
            stored = sources.stored(ledger, every=True)
            refused, called = sources.refusals(ledger), sources.called(ledger)
        return dynamic.parts(stored.merge(startup, time.time()), stored.parts, refused, called)


def _resource(document: bytes) -> Raw:
    try:
        found = parse_json(document, "a resource")
    except Nonsense as error:
        raise HoldfastError(str(error)) from None
    if not isinstance(found, dict):
        raise HoldfastError("a resource is no JSON object: apiVersion, kind, metadata, spec")
    return found


def _id(text: str) -> Id:
    kind, slash, name = text.partition("/")
    if not slash or not kind or not name:
        raise HoldfastError(f"{text!r} names no resource as IPv4Route/office does")
    return kind, name


def _declared(told: Declared) -> pb.DeclareReply:
    found = []
    for outcome in told.answer.outcomes:
        seen, reason = told.seen.get(outcome.id, ("", ""))
        found.append(
            pb.DeclaredResource(
                id=outcome.id,
                state=outcome.state,
                reasons=outcome.reasons,
                outcome=seen,
                reason=reason,
            )
        )
    return pb.DeclareReply(generation=told.answer.generation, resources=found)


def _json(text: bytes) -> object:
    try:
        return parse_json(text, "the part")
    except Nonsense as error:
        raise HoldfastError(str(error)) from None
