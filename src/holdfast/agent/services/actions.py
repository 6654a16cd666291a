"""Actions of providers."""

from __future__ import annotations

import time

from holdfast.agent.services.backend import Backend, whole
from holdfast.api import holdfast_pb2 as pb
from holdfast.api.callers import Caller
from holdfast.dataclass import dataclass
from holdfast.errors import Refused
from holdfast.render import action_documents
from holdfast.state.actions import FAILED, SUCCEEDED

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Actions:
    backend: Backend

    async def list(self, _request: pb.ListActionsRequest, _caller: Caller) -> pb.Document:
        return await self.backend.in_thread(
            lambda: whole(
                action_documents.list_document(
                    self.backend.paths, self.backend.effective_now(), time.time()
                )
            )
        )

    async def show(self, request: pb.ActionRequest, _caller: Caller) -> pb.Document:
        return await self.backend.in_thread(
            lambda: whole(
                action_documents.show_document(
                    self.backend.paths, self.backend.effective_now(), request.key, time.time()
                )
            )
        )

    async def journal(self, _request: pb.JournalRequest, _caller: Caller) -> pb.Document:
        return await self.backend.in_thread(
            lambda: whole(action_documents.journal_document(self.backend.paths))
        )

    async def approve(self, request: pb.ActionRequest, _caller: Caller) -> pb.Document:
        actions = self.backend.loop.proposers.actions
        approved = await actions.approve(request.key, _named(request.by), request.plan_digest)
        return whole(action_documents.approved_document(approved))

    async def execute(self, request: pb.ExecuteRequest, _caller: Caller) -> pb.Document:
        if request.dry_run and not request.key:
            raise Refused("a dry run needs the key of an action")
        actions = self.backend.loop.proposers.actions
        if request.dry_run:
            done = [await actions.dry_run(request.key)]
        else:
            done = await actions.execute(request.key)
        failed = any(one.outcome in (FAILED, "late") for one in done)
        return whole(
            action_documents.done_document(done, dry_run=request.dry_run), 1 if failed else 0
        )

    async def rollback(self, request: pb.ActionRequest, _caller: Caller) -> pb.Document:
        actions = self.backend.loop.proposers.actions
        if request.dry_run:
            done = await actions.dry_run(request.key, undoes=True)
        else:
            done = await actions.rollback(request.key, _named(request.by))
        document = action_documents.done_document([done], dry_run=request.dry_run)
        return whole(document, 0 if done.outcome == SUCCEEDED else 1)


def _named(by: str) -> str:
    """Who may write to the socket is trusted with it, and so with a name for the journal."""
    known = by if by.isprintable() and 0 < len(by) <= _LONGEST_NAME else "somebody"
    return f"{known}, through the daemon"
