"""Who makes a call, by the socket it came over and by its token, and what each call needs.

With a token, a call on either of the two sockets is that of the token's source, and may do what
that one may: less than the socket for everything allows, more than the one for reading. A token
that nobody has is refused on every socket.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from holdfast.api import limits, tokens
from holdfast.api.conditions import CallRefused, Denied, Unauthenticated
from holdfast.dataclass import dataclass, field

HEADER = "authorization"
OWNER = "Owner"  # what comes before the slash of an owner's source
SCHEME = "Bearer "


class CallerKind(Enum):
    OPERATOR = "operator"  # over the socket for everything: root, and the group holdfast
    READER = "reader"  # over the socket for reading
    OWNER = "owner"  # speaks for an Owner/NAME
    MANAGER = "manager"  # speaks for a Manager/NAME


class Grant(Enum):
    """What the startup file may let a manager do besides, by the name it has there."""

    PLAN = "plan"
    CONFIG = "config"
    TRIALS = "trials"


@dataclass(frozen=True, slots=True)
class Caller:
    """Made once for each call, before anything else is done for it."""

    kind: CallerKind
    source: str = ""  # that it speaks for: Owner/ci; "": for none
    grants: frozenset[Grant] = frozenset()

    def __str__(self) -> str:
        return self.source or f"a caller with the rights of {_ARTICLE[self.kind]}"

    def refuse_other_source(self, source: str) -> None:
        """Raises Denied where it speaks for a source, and not for this one."""
        if self.source and source.partition("#")[0] != self.source:
            raise Denied(
                f"{self.source} may not speak for, or look at, what other sources hand in: name"
                f" {self.source}"
            )


OPERATOR = Caller(CallerKind.OPERATOR)
READER = Caller(CallerKind.READER)
_ARTICLE = {CallerKind.OPERATOR: "an operator", CallerKind.READER: "a reader"}


@dataclass(frozen=True, slots=True)
class Authority:
    """Who may make a call."""

    kinds: frozenset[CallerKind]
    grant: Grant | None = None  # that lets a manager make it as well

    def refuse(self, call: str, caller: Caller) -> None:
        """Raises Denied, with what would allow it."""
        if caller.kind in self.kinds:
            return
        if self.kinds == _OWNER:
            if not caller.source:
                raise Unauthenticated(
                    f"{call} is for owners of routes: show the token of one, as `authorization:"
                    " Bearer TOKEN`"
                )
            raise Denied(f"{caller} may not call {call}: it takes the token of an Owner")
        if caller.kind is CallerKind.READER:
            raise Denied(
                f"{call} changes things, and this socket is for reading: use holdfast.sock, which"
                " is for root and the group holdfast"
            )
        if self.grant is not None and self.grant in caller.grants:
            return
        needed = "it takes root, or the group holdfast, on holdfast.sock"
        if self.grant is not None and caller.kind is CallerKind.MANAGER:
            needed += f", or `grants: [{self.grant.value}]` in the DynamicConfigSource of"
            needed += f" {caller.source}"
        raise Denied(f"{caller} may not call {call}: {needed}")


_OWNER = frozenset((CallerKind.OWNER,))
_OWNERS = Authority(_OWNER)  # and each for itself alone
_ANYBODY = Authority(frozenset(CallerKind))
_OPERATORS = Authority(frozenset((CallerKind.OPERATOR,)))
_TRIALS = Authority(frozenset((CallerKind.OPERATOR,)), Grant.TRIALS)
_READERS = frozenset((CallerKind.OPERATOR, CallerKind.READER))
# The service looks at whose part it is.
_SPEAKERS = Authority(frozenset(CallerKind) - {CallerKind.READER})

# Of every call. What is not here is refused, and a test finds it.
AUTHORITY: Mapping[str, Authority] = {
    "Router.About": _ANYBODY,
    "Router.Console": Authority(_READERS),  # its key shows everything
    "Router.Status": _ANYBODY,
    "Router.Plan": Authority(_READERS, Grant.PLAN),
    "Router.Explain": _ANYBODY,
    "Router.Apply": _OPERATORS,
    # By its number alone: the service looks that it is the one that waits.
    "Router.Confirm": _TRIALS,
    "Router.TakeBack": _TRIALS,
    "Router.Generations": Authority(_READERS, Grant.CONFIG),
    "Dynamic.List": _ANYBODY,
    "Dynamic.Describe": _ANYBODY,
    "Dynamic.Render": Authority(_READERS, Grant.CONFIG),
    "Dynamic.Diff": Authority(_READERS, Grant.CONFIG),
    "Dynamic.Put": _SPEAKERS,
    "Dynamic.Declare": _SPEAKERS,
    "Dynamic.Withdraw": _SPEAKERS,
    "Plugins.List": Authority(_READERS),
    "Plugins.Run": _OPERATORS,
    "Actions.List": Authority(_READERS),
    "Actions.Show": Authority(_READERS),
    "Actions.Journal": Authority(_READERS),
    "Actions.Approve": _OPERATORS,
    "Actions.Execute": _OPERATORS,
    "Actions.Rollback": _OPERATORS,
    "Events.Read": _ANYBODY,
    "RouteControl.Register": _OWNERS,
    "RouteControl.Deregister": _OWNERS,
    "RouteControl.ConfigureBGP": _OWNERS,
    "RouteControl.ApplyPeer": _OWNERS,
    "RouteControl.RemovePeer": _OWNERS,
    "RouteControl.AdvertisePrefix": _OWNERS,
    "RouteControl.WithdrawPrefix": _OWNERS,
    "RouteControl.EnableBFD": _OWNERS,
    "RouteControl.DisableBFD": _OWNERS,
    "RouteControl.EnableOSPF": _OWNERS,
    "RouteControl.DisableOSPF": _OWNERS,
    "RouteControl.GetStatus": _ANYBODY,
    "RouteControl.StreamEvents": _ANYBODY,
    "Routes.Declare": _OWNERS,
    "Routes.BeginSync": _OWNERS,
    "Routes.CompleteSync": _OWNERS,
    "Routes.Hold": _OWNERS,
    "Routes.Heartbeat": _OWNERS,
    "Routes.Status": _ANYBODY,
    "Routes.Events": _ANYBODY,
}


@dataclass(frozen=True, slots=True)
class OwnSocket:
    """A socket over which every call is that of one source."""

    path: str  # below the root
    group: str = ""  # may open it besides root; "": nobody else


@dataclass(frozen=True, slots=True)
class Speaker:
    """A source that programs speak for."""

    caller: Caller
    digests: tuple[bytes, ...] = field(default=(), repr=False)  # of its tokens
    socket: OwnSocket | None = None


@dataclass(slots=True)
class Speakers:
    """Those whom the startup file in force names; replaced whole."""

    known: tuple[Speaker, ...] = ()
    _read: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, speakers: Iterable[Speaker]) -> None:
        self.known = tuple(speakers)
        self._read.set()

    async def read(self) -> None:
        """For its first pass a daemon lets callers wait. Raises CallRefused where it has none."""
        if self.known:
            return
        try:
            async with asyncio.timeout(limits.FIRST_PASS_S):
                await self._read.wait()
        except TimeoutError:
            raise CallRefused(
                "UNAVAILABLE", "Holdfast has no valid configuration yet, and knows no tokens"
            ) from None

    def of(self, source: str) -> Caller | None:
        return next(
            (speaker.caller for speaker in self.known if speaker.caller.source == source), None
        )

    def identify(self, over: Caller, said: Sequence[str | bytes]) -> Caller:
        """Who calls. over: whom the socket alone makes of the caller. said: each `authorization`
        of the call. Raises Unauthenticated for a token that nobody has, and Denied."""
        by_socket: Caller | None = over
        if over.source:
            by_socket = self.of(over.source)
        caller = self._by_token(said) if said else by_socket
        if caller is None:
            raise Denied(f"{over.source} has no socket any more: it is not in the startup file")
        if over.source and caller.source != over.source:
            raise Denied(f"over this socket, calls are those of {over.source} alone")
        return caller

    def _by_token(self, said: Sequence[str | bytes]) -> Caller:
        given = said[0] if len(said) == 1 and isinstance(said[0], str) else ""
        token = given.removeprefix(SCHEME)
        if not given.startswith(SCHEME) or not tokens.is_token(token):
            raise Unauthenticated(
                "the call does not show one token, of 16 to 512 printable characters: it stands"
                " behind `Bearer` in `authorization`, or in the field `token` of a call that has it"
            )
        digest = tokens.digest_of(token)
        # Each is compared, and to its end, whichever fits: time tells nothing of them.
        fitting = [
            speaker.caller
            for speaker in self.known
            for known in speaker.digests
            if hmac.compare_digest(digest, known)
        ]
        found = {caller.source: caller for caller in fitting}
        if len(found) != 1:
            raise Unauthenticated(
                "this token is not one of a DynamicConfigSource, or is that of two: `holdfast"
                " dynamic token SOURCE` makes one, and says where its digest is to stand"
            )
        return next(iter(found.values()))
