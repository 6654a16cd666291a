"""`holdfast adopt --recover`: take back what carries Holdfast's mark and is not in the ledger."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

from holdfast.cli import arguments, output
from holdfast.cli.hold import hold
from holdfast.cli.terminal import Style, counted, say
from holdfast.dataclass import dataclass
from holdfast.engine import document, event_kinds, guard, ownership, reconcile, record, unrecovered
from holdfast.engine.artifact import Artifact
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.driver import Memory
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Marked
from holdfast.errors import DriverError, Refused
from holdfast.host import markers
from holdfast.host.epoch import read_epoch
from holdfast.host.namespace_holder import Hold
from holdfast.paths import Paths
from holdfast.render import plan_text
from holdfast.runtime import drivers, namespace_ownership
from holdfast.runtime.load import Loaded
from holdfast.runtime.namespace_ownership import Standing
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger

LEFT = (
    "Links carry no mark: `holdfast adopt --apply` takes over those that are declared, and others"
    " stay."
)


@dataclass(frozen=True, slots=True)
class Found:
    standing: Standing
    tagged: tuple[Marked, ...]  # in the kernel: the tag proves them once the namespace is ours
    written: tuple[Marked, ...]  # on disk: they need a claim each
    memories: Mapping[str, Memory]  # where drivers found what is tagged, by their names

    @property
    def everything(self) -> tuple[Marked, ...]:
        return (*self.tagged, *self.written)


def preview(paths: Paths, loaded: Loaded, form: str) -> int:
    with Ledger.read(paths) as ledger, ExitStack() as stack:
        found = _find(paths, loaded, ledger, stack)
    _show(found, form, recovered=False)
    return 0


def take(paths: Paths, loaded: Loaded, form: str) -> int:
    with (
        hold(paths, "holdfast adopt --recover", arguments.WAIT_S) as ledger,
        ExitStack() as stack,
    ):
        found = _find(paths, loaded, ledger, stack)
        epoch = found.standing.me.epoch
        stray = guard.stray(ownership.elsewhere(ledger.claims().values(), epoch))
        if stray:
            raise Refused(f"nothing was taken over: {stray}")
        namespace_ownership.recover(stack.enter_context(closing(Hold())), ledger, found.standing)
        newest = ledger.generations(1)
        generation = newest[0].number if newest else 0
        claims = [_claim(one.subject, generation) for one in found.written]
        ledger.write_claims(claims)
        remembered = ledger.remembered()
        for driver, memory in found.memories.items():
            if driver in remembered:  # else it looks everywhere
                ledger.remember(driver, memory | remembered[driver])
        ledger.append_events(_events(found, claims, generation))
    _show(found, form, recovered=True)
    return 0


def _find(paths: Paths, loaded: Loaded, ledger: Ledger, stack: ExitStack) -> Found:
    tag = loaded.router.ownership.tag
    standing = namespace_ownership.look(paths, ledger, tag, read_epoch())
    host = stack.enter_context(drivers.of_machine(paths, tag, former=standing.former))
    known = ledger.claims()
    tagged: tuple[Marked, ...] = ()
    memories: Mapping[str, Memory] = {}
    if not standing.recovered:
        observed = host.observe(reconcile.scope(loaded.desired, known))
        _refuse_unknown(observed)
        tagged = unrecovered.marked(observed, known, host.epoch)
        memories = host.to_remember((), {})
    written = [one for one in markers.find(paths, host) if _key(one) not in known]
    return Found(standing, tagged, tuple(written), memories)


def _refuse_unknown(observed: Observed) -> None:
    """A list that lacks something would be taken for all there is."""
    for what, why in observed.unknown.items():
        raise DriverError(f"{what} could not be observed: {why}. Nothing was taken over")


def _key(marked: Marked) -> object:
    return marked.subject.key if isinstance(marked.subject, Artifact) else None


def _claim(subject: object, generation: int) -> Claim:
    if not isinstance(subject, Artifact):
        raise TypeError("files, blocks and services come one by one")
    fields = record.claimed_fields(KINDS[subject.key.kind], subject.fields)
    return Claim(subject.key, (), Provenance.ADOPTED, ClaimState.OWNED, fields, "", generation)


def _events(found: Found, claims: Sequence[Claim], generation: int) -> Iterator[Event]:
    before = found.standing.holder
    count = sum(document.count(one.subject) for one in found.tagged)
    whose = f" from the installation at {before.root}" if before and found.standing.held_by else ""
    said = f"taken over{whose}, with {counted(count, 'object')} that carry the tag"
    yield Event(event_kinds.ADOPTED, "network namespace", said, generation)
    for claim in claims:
        yield Event(event_kinds.ADOPTED, str(claim.key), "taken back by its mark", generation)


def _they(number: int) -> str:
    return "it is" if number == 1 else "they are"


def _show(found: Found, form: str, *, recovered: bool) -> None:
    if form != "table":
        output.write(_members(found, recovered), form, sys.stdout)
        return
    say(_lines(found, Style.of(sys.stdout), recovered), sys.stdout)


def _members(found: Found, recovered: bool) -> Iterator[tuple[str, Any]]:
    yield "format_version", document.FORMAT_VERSION
    yield "namespace", found.standing.entry()
    name = "recovered" if recovered else "recoverable"
    yield name, document.recoverable(found.everything)


def _lines(found: Found, style: Style, recovered: bool) -> Iterator[str]:
    standing = found.standing
    if not found.everything and standing.recovered:
        yield "Nothing to recover: all that carries Holdfast's mark here is in this ledger."
        return
    yield from plan_text.recoverable(found.everything, style)
    number = sum(document.count(one.subject) for one in found.everything)
    count = counted(number, "object")
    if recovered:
        yield f"{style('Recovered:', 'bold', 'green')} {count}; the host was not touched."
        yield (
            f"From now on {_they(number)} this installation's: the next apply deletes what nothing"
            " declares. Look at it first: `holdfast plan`."
        )
    else:
        if standing.held_by:
            yield f"{style('Held by another:', 'bold', 'yellow')} {standing.held_by}."
        yield (
            f"{count} not in this ledger: `{namespace_ownership.RECOVER} --apply` makes"
            f" {'it' if number == 1 else 'them'} this installation's."
        )
    yield LEFT
