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
            pb.DeclaredResource(id=outcome.id, state=outcome.state, reasons=outcome.reasons)
            for outcome in answer.outcomes
        ]
    )


def _tell(found: Sequence[pb.DeclaredResource]) -> int:
    lines = [_line(declared_resource) for declared_resource in found]
    click.echo("\n".join([*lines[:_SHOWN], *_rest(found)] if len(lines) > _SHOWN else lines))
    refused = [
        declared_resource for declared_resource in found if declared_resource.state == State.REFUSED
    ]
    say(
        (
            f"{declared_resource.id}: {reason}"
            for declared_resource in refused
            for reason in declared_resource.reasons
        ),
        sys.stderr,
    )
    failed = any(declared_resource.outcome not in ("", "converged") for declared_resource in found)
    return Exit.FAILED if refused or failed else Exit.OK


def _rest(found: Sequence[pb.DeclaredResource]) -> list[str]:
    return [f"and {len(found) - _SHOWN} more"]


def _line(declared_resource: pb.DeclaredResource) -> str:
    outcome = f", {declared_resource.outcome}" if declared_resource.outcome else ""
    reason = f": {declared_resource.reason}" if declared_resource.reason else ""
    return f"{declared_resource.id} {declared_resource.state}{outcome}{reason}"
