"""Batches of increments from the command line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from holdfast.api import holdfast_pb2 as pb
from holdfast.cli import daemon
from holdfast.cli.exit import Exit
from holdfast.cli.hold import hold
from holdfast.cli.terminal import say
from holdfast.config.document import parse, read_file
from holdfast.config.part import Id, Raw
from holdfast.errors import ConfigError, HoldfastError, Problem
from holdfast.paths import Paths
from holdfast.resources.router import Router
from holdfast.runtime import increments, sources
from holdfast.runtime.increments import Batch, State

_SHOWN = 20


def read(path: Path) -> tuple[Raw, ...]:
    """The resources of a YAML file: one of them, or a list."""
    document = parse(read_file(path))
    if document.troubles:
        trouble = document.troubles[0]
        place = str(document.place_at(trouble.position))
        raise ConfigError([Problem(place, "", trouble.message)])
    found = document.data if isinstance(document.data, list) else [document.data]
    if not all(isinstance(one, dict) for one in found):
        raise HoldfastError(f"{path}: a resource, or a list of resources, is expected")
    return tuple(found)


def named(text: str) -> Id:
    kind, slash, name = text.partition("/")
    if not slash or not kind or not name:
        raise HoldfastError(f"{text!r} names no resource as IPv4Route/office does")
    return kind, name


def carry_out(
    paths: Paths,
    startup: Callable[[], Router],
    batch: Batch,
    wait: float,
    until_seen: float,
) -> int:
    """By the daemon where one runs. wait: for whoever holds the ledger."""
    with daemon.connect(paths, reads=False) as found:
        if found is not None:
            request = pb.DeclareRequest(
                source=batch.source,
                put=[json.dumps(one).encode() for one in batch.put],
                withdraw=["/".join(one) for one in batch.withdraw],
                each=batch.each,
                dry_run=batch.dry_run,
                begin_sync=batch.begin,
                complete_sync=batch.complete,
                wait_seconds=until_seen,
            )
            reply = found.client.ask("Dynamic.Declare", request, pb.DeclareReply, daemon.CHANGE_S)
            return _tell(reply.resources)
    with hold(paths, "holdfast dynamic declare", wait) as ledger:
        router = startup()
        stored = sources.stored(ledger)
        answer, merged = increments.declare(ledger, batch, stored, router, time.time())
        sources.accept(ledger, merged.effective)
    return _tell(
        [
            pb.DeclaredResource(id=one.id, state=one.state, reasons=one.reasons)
            for one in answer.outcomes
        ]
    )


def _tell(found: Sequence[pb.DeclaredResource]) -> int:
    lines = [_line(one) for one in found]
    click.echo("\n".join([*lines[:_SHOWN], *_rest(found)] if len(lines) > _SHOWN else lines))
    refused = [one for one in found if one.state == State.REFUSED]
    say((f"{one.id}: {reason}" for one in refused for reason in one.reasons), sys.stderr)
    failed = any(one.outcome not in ("", "converged") for one in found)
    return Exit.FAILED if refused or failed else Exit.OK


def _rest(found: Sequence[pb.DeclaredResource]) -> list[str]:
    return [f"and {len(found) - _SHOWN} more"]


def _line(one: pb.DeclaredResource) -> str:
    outcome = f", {one.outcome}" if one.outcome else ""
    reason = f": {one.reason}" if one.reason else ""
    return f"{one.id} {one.state}{outcome}{reason}"
