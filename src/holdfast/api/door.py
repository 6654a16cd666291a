"""The callers of one socket: who each of them is, and whether the call is theirs to make."""

from __future__ import annotations

from typing import Any

import grpc.aio

from holdfast.api.callers import AUTHORITY, HEADER, Caller, Speakers
from holdfast.api.calls import Call
from holdfast.api.conditions import Busy, Denied, Unauthenticated
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

    def admit(self, call: Call, context: Context) -> Caller:
        """Raises Unauthenticated or Denied."""
        caller = self.speakers.identify(self.over, _said(context))
        AUTHORITY[call.short].refuse(call.short, caller)
        return caller

    def counted(self, error: HoldfastError, context: Context) -> HoldfastError:
        """What a call is answered with that failed with this."""
        if not isinstance(error, Unauthenticated | Denied):
            return error
        # Those who may open the two sockets are trusted with calls without a token, many or few.
        limited = bool(self.over.source or _said(context))
        try:
            self.refusals.count(self.name, error, limited=limited)
        except Busy as busy:
            return busy
        return error


def _said(context: Context) -> list[str | bytes]:
    return [value for name, value in context.invocation_metadata() or () if name == HEADER]
