"""`apply` where a daemon runs: it makes a pass now, and its result is shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.cli import daemon
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import ProgressLine, Style, refuse_unasked, say
from holdfast.errors import Refused
from holdfast.render.outcomes import Outcome, Telling

if TYPE_CHECKING:
    from holdfast.api import holdfast_pb2 as pb
    from holdfast.cli.daemon import Daemon
    from holdfast.cli.run import Request


def run(request: Request, found: Daemon) -> int:
    if not found.serves(request.file):
        raise Refused(
            f"a daemon (process {found.about.pid}) keeps this host as {found.file} says, and would"
            " undo anything else: put the change into that file, or end the daemon first"
        )
    if request.dry_run:
        return _show(request, found)
    if request.ask:
        _ask(request, found)
    return _apply(request, found)


def go_back(request: Request, found: Daemon, number: int, *, overwrite: bool) -> int:
    """To a generation that was applied before; 0: the last one before the present."""
    from holdfast.api import holdfast_pb2 as pb

    back = pb.Back(to=number, overwrite=overwrite)
    if request.dry_run:
        return _show(request, found, back)
    if request.ask:
        _ask(request, found, back)
    return _apply(request, found, back)


def _show(request: Request, found: Daemon, back: pb.Back | None = None) -> int:
    from holdfast.cli import run

    plan = _plan(request, found, request.output, back)
    daemon.show(plan.data, request.output)
    return run.shown(unknown=plan.unknown, refused=bool(plan.refusal))


def _outcome(outcome: pb.Outcome) -> Outcome:
    return Outcome(outcome.action, outcome.artifact, outcome.count, outcome.done, outcome.error)


def say_placed(generation: int, files: Iterable[str]) -> None:
    say((f"{file} is as in generation {generation} again" for file in files), sys.stderr)


def _plan(request: Request, found: Daemon, form: str, back: pb.Back | None = None) -> daemon.Plan:
    return found.plan(
        form,
        allow_mass_delete=request.allow_mass_delete,
        allow_lockout=request.allow_lockout,
        allow_side_effects=request.allow_side_effects,
        full=request.full,
        back=back,
    )


def _ask(request: Request, found: Daemon, back: pb.Back | None = None) -> None:
    plan = _plan(request, found, "table", back)
    if plan.refusal:
        raise Refused(f"nothing was touched: {plan.refusal}")
    if not plan.changes:
        return
    refuse_unasked()
    stream = sys.stdout if request.output == "table" else sys.stderr
    say(plan.data.decode(errors="replace").splitlines(), stream)
    print("Apply this? Only `yes` is taken for one: ", end="", file=stream, flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise Refused("not applied: nothing was touched")


def _apply(request: Request, found: Daemon, back: pb.Back | None = None) -> int:
    from holdfast.api import holdfast_pb2 as pb

    asked = pb.ApplyRequest(
        form=daemon.wanted(request.output),
        allow_mass_delete=request.allow_mass_delete,
        allow_lockout=request.allow_lockout,
        allow_side_effects=request.allow_side_effects,
        back=back,
    )
    progress, converged, data = ProgressLine(), False, b""
    telling = Telling(Style.of(sys.stderr))
    try:
        for reply in found.client.stream("Router.Apply", asked, pb.ApplyReply, daemon.CHANGE_S):
            match reply.WhichOneof("part"):
                case "progress":
                    progress(reply.progress.done, reply.progress.total)
                case "outcome":
                    progress.clear()
                    if request.output == "table":
                        say(telling.lines([_outcome(reply.outcome)]), sys.stderr)
                case "placed":
                    say_placed(reply.placed.generation, reply.placed.files)
                case "result":
                    converged = reply.result.converged
                case _:
                    data += reply.data
    finally:
        progress.clear()
    daemon.show(data, request.output)
    return Exit.OK if converged else Exit.FAILED
