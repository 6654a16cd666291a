"""How programs of log sinks fare: the ledger remembers which of them failed last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from holdfast.errors import HoldfastError
from holdfast.host import confined_program
from holdfast.host.log_sinks import forward
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.resource import Resource
from holdfast.resources.router import Router
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger

_NOTE = "log-sinks"
# A pass of another process; what is not written now is told with the next event.
_LOCK_S = 10.0


def deliver(paths: Paths, router: Router, command: str, events: Sequence[Event]) -> list[str]:
    """Hands events on, and remembers whose program failed; answers with what went wrong."""
    outcomes: dict[str, str] = {}
    problems = list(forward(paths, router, command, events, outcomes.__setitem__))
    # Events are delivered all the same where nothing can be written.
    with suppress(HoldfastError):
        _remember(paths, router, outcomes)
    return problems


def failing(paths: Paths, ledger: Ledger, resources: Iterable[Resource]) -> dict[str, str]:
    """By resource, why its program gets no events. Whether it may be run is looked at now."""
    sinks = [resource for resource in resources if _has_program(resource)]
    if not sinks:
        return {}
    known = _known(ledger)
    found: dict[str, str] = {}
    for resource in sinks:
        path = resource.spec.plugin.path
        why = confined_program.objection(paths.under(path))
        if why:
            found[resource.id] = f"its program is not run: {why}"
        elif resource.id in known and known[resource.id][0] == path:
            found[resource.id] = f"its program failed at the last event: {known[resource.id][1]}"
    return found


def _has_program(resource: Resource) -> bool:
    kind = registry.kind(resource.kind)
    return kind.receives_events and resource.spec.enabled and resource.spec.plugin is not None


def _remember(paths: Paths, router: Router, outcomes: dict[str, str]) -> None:
    places = {
        resource.id: resource.spec.plugin.path
        for resource in router.resources
        if _has_program(resource)
    }
    with Ledger.read(paths) as ledger:
        before = _known(ledger)
    now = {name: said for name, said in before.items() if name in places}
    for name, why in outcomes.items():
        if name in places and why:
            now[name] = (places[name], why)
        else:
            now.pop(name, None)
    if now == before:
        return
    with Ledger.open(paths, command="holdfast: log sinks", wait=_LOCK_S) as ledger:
        ledger.put_note(_NOTE, {name: list(said) for name, said in now.items()})


def _known(ledger: Ledger) -> dict[str, tuple[str, str]]:
    """By resource: the path of its program, and what was wrong."""
    said = ledger.note(_NOTE)
    if not isinstance(said, dict):
        return {}
    return {
        name: (str(one[0]), str(one[1]))
        for name, one in said.items()
        if isinstance(one, list) and len(one) == 2
    }
