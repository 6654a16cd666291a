"""The daemon from the command line: asked where one runs, done without where none does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.cli import output
from holdfast.cli.terminal import Style, say, wants_colour
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError
from holdfast.paths import Paths

if TYPE_CHECKING:  # nothing of gRPC is loaded where no daemon runs
    from holdfast.api import holdfast_pb2 as pb
    from holdfast.api.client import Client
    from holdfast.runtime.status import Status

_FOLDER = "/run/holdfast"
_SOCKET, _READ_ONLY = "holdfast.sock", "holdfast-ro.sock"
_READING = (_SOCKET, _READ_ONLY)
# Longer than the daemon lets a call take.
READ_S, CHANGE_S = 70.0, 1000.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Daemon:
    client: Client
    about: pb.AboutReply

    @property
    def file(self) -> Path:
        return Path(self.about.file)

    def serves(self, file: Path | None) -> bool:
        """Whether this is the file that it keeps the host to."""
        return file is None or os.path.realpath(file) == os.path.realpath(self.about.file)

    def status(self, *, last_pass: bool = False) -> tuple[Status, pb.StatusReply]:
        from holdfast.agent.services.wire import status_from
        from holdfast.api import holdfast_pb2 as pb

        request = pb.StatusRequest(last_pass=last_pass)
        reply = self.client.ask("Router.Status", request, pb.StatusReply, READ_S)
        return status_from(reply), reply

    def plan(
        self,
        form: str,
        *,
        allow_mass_delete: bool = False,
        allow_lockout: bool = False,
        allow_side_effects: bool = False,
        full: bool = False,
        back: pb.Back | None = None,
    ) -> Plan:
        """back: what going back to an earlier generation would do."""
        from holdfast.api import holdfast_pb2 as pb

        request = pb.PlanRequest(
            form=wanted(form),
            allow_mass_delete=allow_mass_delete,
            allow_lockout=allow_lockout,
            allow_side_effects=allow_side_effects,
            full=full,
            back=back,
        )
        replies = self.client.stream("Router.Plan", request, pb.PlanReply, READ_S)
        head = next(replies).head
        data = b"".join(part.data for part in replies)
        style = Style.of(sys.stderr)
        say((f"{style('warning:', 'yellow')} {warning}" for warning in head.warnings), sys.stderr)
        return Plan(head.changes, head.unknown, head.refusal, head.waiting, data)

    def documents(self, call: str, request: Any, *, changes: bool = False) -> tuple[bytes, int]:
        """What a call answers in pieces or at once, and the exit code that goes with it."""
        from holdfast.api import holdfast_pb2 as pb
        from holdfast.api.calls import CALLS

        limit = CHANGE_S if changes else READ_S
        if not CALLS[call].streams:
            whole = self.client.ask(call, request, pb.Document, limit)
            return whole.data, whole.exit_code
        pieces = list(self.client.stream(call, request, pb.Document, limit))
        return b"".join(p.data for p in pieces), pieces[-1].exit_code if pieces else 0


@dataclass(frozen=True, slots=True)
class Plan:
    changes: bool
    unknown: bool
    refusal: str
    waiting: str  # what waits to be confirmed; empty where nothing does
    data: bytes  # in the form that was asked for


def wanted(form: str) -> pb.Form:
    """The form in which the daemon is to answer: YAML is made of JSON here."""
    from holdfast.api import holdfast_pb2 as pb

    return pb.Form(text=form == "table", colour=form == "table" and wants_colour(sys.stdout))


def show(data: bytes, form: str) -> None:
    """What the daemon answered, on stdout."""
    text = data.decode(errors="replace")
    if form == "table":
        say(text.splitlines(), sys.stdout)
    elif form == "json":
        sys.stdout.write(text)
    else:
        output.write(_members(json.loads(text)), "yaml", sys.stdout)


def document(
    paths: Paths, file: Path | None, call: str, fields: Mapping[str, Any], *, reads: bool
) -> tuple[dict[str, Any], int] | None:
    """The document that the daemon answers a call with, and the exit code that goes with it. None
    where no daemon serves this file."""
    with connect(paths, reads=reads) as found:
        if found is None or not found.serves(file):
            return None
        from holdfast.api.calls import CALLS

        data, code = found.documents(call, CALLS[call].request(**fields), changes=not reads)
    return json.loads(data), code


def answered(
    paths: Paths, file: Path | None, call: str, fields: Mapping[str, Any], form: str
) -> int | None:
    """Shows what the daemon answers to a call that reads; the exit code of that. None where no
    daemon serves this file."""
    with connect(paths, reads=True) as found:
        if found is None or not found.serves(file):
            return None
        from holdfast.api.calls import CALLS

        kind = CALLS[call].request
        formed = {"form": wanted(form)} if "form" in kind.DESCRIPTOR.fields_by_name else {}
        data, code = found.documents(call, kind(**fields, **formed))
    show(data, form)
    return code


def _members(document: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return ((name, iter(v) if isinstance(v, list) else v) for name, v in document.items())


@contextmanager
def connect(paths: Paths, *, reads: bool, waits: bool = True) -> Iterator[Daemon | None]:
    """The daemon that works for this root in this network namespace; None where none does.

    reads: the call changes nothing, so that the socket for reading will do.
    waits: for one that is about to start, and says so. Raises Silent if it does not come, and
    Gone if it ends instead.
    """
    names = _READING if reads else (_SOCKET,)
    with _sockets(paths, names) as folder, ExitStack() as held:
        name = _listening(paths, folder, names) if folder else ""
        if not name:
            _warn_unserved(paths)
            yield None
            return
        from holdfast.cli import daemon_wait

        shown = paths.under(_FOLDER) / name
        found = daemon_wait.reach(held, f"{folder}/{name}", shown, waits=waits)
        here = Path("/proc/self/ns/net").stat().st_ino
        yield found if found.about.network_namespace == here else None


@contextmanager
def _sockets(paths: Paths, names: tuple[str, ...]) -> Iterator[str]:
    """The folder of those sockets; empty where there is none of them."""
    # False also where that may not be known: there is nothing for us then.
    if not any(os.path.exists(paths.under(_FOLDER) / name) for name in names):  # noqa: PTH110
        yield ""
        return
    from holdfast.api import sockets

    with sockets.folder(paths) as folder:
        yield folder


def refuse_denied(paths: Paths) -> None:
    """Raises where a daemon runs that this user may not ask."""
    with _sockets(paths, _READING) as folder:
        if folder:
            _listening(paths, folder, _READING)


@cache
def _warn_unserved(paths: Paths) -> None:
    """Once a command. Looked for by a string first: modules take longer to load than that."""
    try:
        if b" @holdfast/unserved " not in Path("/proc/self/net/unix").read_bytes():
            return
    except OSError:
        return
    from holdfast.runtime import unserved

    told = unserved.told(paths)
    if told:
        say([f"{Style.of(sys.stderr)('warning:', 'yellow')} {told}"], sys.stderr)


def _listening(paths: Paths, folder: str, names: tuple[str, ...]) -> str:
    """The name of the socket to use; empty where nobody listens."""
    from holdfast.api import sockets

    denied = ""
    for name in names:
        try:
            if sockets.answers(f"{folder}/{name}"):
                return name
        except PermissionError:
            denied = denied or name
    if denied and os.geteuid() != 0:
        which = next(each for each in sockets.SOCKETS if each.name == denied)
        raise HoldfastError(
            f"{paths.under(_FOLDER) / denied}: permission denied; it is for root and for the"
            f" group {which.groups[0]}: run it with sudo, or as one of that group"
        )
    return ""
