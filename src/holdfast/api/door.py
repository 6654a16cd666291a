"""The callers of one socket: who each of them is, and whether the call is theirs to make."""

from __future__ import annotations

from typing import Any

import grpc.aio
from google.protobuf.message import Message

from holdfast.api.callers import AUTHORITY, HEADER, OWNER, SCHEME, Caller, Speakers
from holdfast.api.calls import Call
from holdfast.api.conditions import Busy, CallRefused, Denied, Unauthenticated
from holdfast.api.refusals import Refusals
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Door:
    name: str  # of the socket
    over: Caller  # whom the socket alone makes of a caller
    speakers: Speakers
    refusals: Refusals

    async def ready(self, call: Call, request: Message | None, context: Context) -> None:
        """Once it can be known whose a token is. Raises CallRefused where it cannot."""
        if self.over.source or _said(call, request, context):
            await self.speakers.read()

    def admit(self, call: Call, request: Message | None, context: Context) -> Caller:
        """Raises Unauthenticated, Denied, or CallRefused for a call that has to say who calls in
        its own fields and does not."""
        if call.signed:
            _refuse_unsigned(self.over, request)
        caller = self.speakers.identify(self.over, _said(call, request, context))
        if call.signed and caller.source != f"{OWNER}/{_field(request, 'owner')}":
            raise Unauthenticated("no owner of that name has that token")
        AUTHORITY[call.short].refuse(call.short, caller)
        return caller

    def counted(
        self, error: HoldfastError, call: Call, request: Message | None, context: Context
    ) -> HoldfastError:
        """What a call is answered with that failed with this."""
        if not isinstance(error, Unauthenticated | Denied):
            return error
        # Those who may open the two sockets are trusted with calls without a token, many or few.
        limited = bool(self.over.source or _said(call, request, context))
        limited |= isinstance(error, Unauthenticated)
        try:
            self.refusals.count(self.name, error, limited=limited)
        except Busy as busy:
            return busy
        return error


def _said(call: Call, request: Message | None, context: Context) -> list[str | bytes]:
    """Each token that the call shows, as `authorization` has it."""
    said = [value for name, value in context.invocation_metadata() or () if name == HEADER]
    token = _field(request, "token") if call.signed else ""
    shown = f"{SCHEME}{token}"
    return [*said, shown] if token and shown not in said else said


def _field(request: Message | None, name: str) -> str:
    return getattr(request, name, "")


def _refuse_unsigned(over: Caller, request: Message | None) -> None:
    """Clients of RouteControl know these as mistakes of their own."""
    for name in ("owner",) if over.source else ("owner", "token"):
        if request is not None and not _field(request, name):
            raise CallRefused("INVALID_ARGUMENT", f"{name} is missing")
