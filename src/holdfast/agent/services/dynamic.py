"""Parts of sources besides the startup file."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

from holdfast.agent.services.backend import Backend
from holdfast.api import holdfast_pb2 as pb
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError, Refused
from holdfast.render import dynamic, effective_config
from holdfast.render.dynamic import Parts
from holdfast.resources.dynamic.dynamic_config_part import part_of
from holdfast.resources.dynamic.source_name import plugin_of
from holdfast.runtime import sources
from holdfast.runtime.plugins.protocol import Nonsense, parse_json
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Dynamic:
    backend: Backend

    async def list(self, request: pb.ListPartsRequest) -> AsyncGenerator[pb.Document, None]:
        parts = await self.backend.in_thread(self._parts)
        found = parts.listed(every=request.all, source=request.source, status=request.status)
        asked = bool(request.source or request.status)
        pieces = self.backend.document(
            request.form,
            lambda: dynamic.list_members(found),
            lambda style: dynamic.list_lines(found, style, every=not asked),
        )
        async for piece in pieces:
            yield piece

    async def describe(self, request: pb.DescribePartRequest) -> AsyncGenerator[pb.Document, None]:
        found = (await self.backend.in_thread(self._parts)).of(request.source)
        pieces = self.backend.document(
            request.form,
            lambda: dynamic.describe_members(found),
            lambda style: dynamic.describe_lines(found, style),
        )
        async for piece in pieces:
            yield piece

    async def render(self, _request: pb.RenderRequest) -> AsyncGenerator[pb.Document, None]:
        effective = (await self.backend.in_thread(self._parts)).effective
        pieces = self.backend.document(
            pb.Form(), lambda: effective_config.members(effective), lambda _style: iter(())
        )
        async for piece in pieces:
            yield piece

    async def diff(self, request: pb.DiffRequest) -> AsyncGenerator[pb.Document, None]:
        effective = (await self.backend.in_thread(self._parts)).effective
        pieces = self.backend.document(
            request.form,
            lambda: dynamic.diff_members(effective),
            lambda style: dynamic.diff_lines(effective, style),
        )
        async for piece in pieces:
            yield piece

    async def put(self, request: pb.PutPartRequest) -> pb.PutPartReply:
        def work() -> pb.PutPartReply:
            part = part_of(_json(request.document))
            if plugin_of(part.source):
                raise Refused(
                    f"{part.source}: parts of plugins come from their runs; others have a source"
                    " such as Owner/ci"
                )
            with self.backend.ledger("holdfast dynamic put") as ledger:
                sources.put(ledger, part)
            try:
                effective = self._parts().effective
            except Refused as error:  # it is stored all the same
                return pb.PutPartReply(ref=part.ref, rejected=(str(error),))
            reasons = [one.told for one in effective.rejected if one.part.ref == part.ref]
            ignored = [str(one) for one in effective.ignored if one.part.ref == part.ref]
            return pb.PutPartReply(
                ref=part.ref, rejected=reasons[0] if reasons else (), ignored=ignored
            )

        reply = await self.backend.in_thread(work)
        self.backend.loop.wake(f"the part {reply.ref}")
        return reply

    async def withdraw(self, request: pb.WithdrawPartRequest) -> pb.WithdrawPartReply:
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


def _json(text: bytes) -> object:
    try:
        return parse_json(text, "the part")
    except Nonsense as error:
        raise HoldfastError(str(error)) from None
