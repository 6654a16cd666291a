"""Confirm or revert: a change that is kept only if somebody says so in time.

Everything about a change that waits is in the ledger before the first change is made, so that
whoever runs next can keep the deadline: the daemon, a keeper process beside the command line, the
next command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from holdfast.config import trusted_file
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import event_kinds, snapshot, snapshot_form
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.engine.drivers import Drivers
from holdfast.engine.intent import Intent
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Plan
from holdfast.errors import ConfigError, DriverError, HoldfastError, Refused
from holdfast.host import rooted
from holdfast.host.facts import clock
from holdfast.host.foreign_state import reading as others
from holdfast.host.foreign_state import record as others_record
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.resources.router import Router, load_router
from holdfast.resources.spec.durations import format_duration
from holdfast.runtime import load
from holdfast.runtime.confirm import confirm_request, deadline, lifelines, stored_configuration
from holdfast.runtime.confirm.confirm_request import ConfirmRequest
from holdfast.runtime.confirm.lifelines import Lifeline
from holdfast.runtime.confirm.revert import DEADLINE, REBOOT, Reverted, revert
from holdfast.runtime.trusted_configuration import refuse_untrusted_place
from holdfast.state import latches
from holdfast.state.confirmations import CONFIRMED, OPEN, Confirmation
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger

# In less nobody can say a word; what lasts longer is no trial any more.
SHORTEST_S, LONGEST_S = 1.0, 86_400.0
# A pass of another process is waited for.
_LOCK_S = 30.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is applied and waits to be confirmed."""

    paths: Paths
    router: Router
    file: Path  # its Router document
    within: float  # seconds
    lines: Sequence[Lifeline]  # what worked before
    installs: Path | None = None  # the served file, whose place it takes once confirmed
    # Told of the generation just before it begins to wait: somebody has to keep the deadline.
    opening: Callable[[int], object] = field(default=lambda _generation: None)
    # Told once the way back is durable, before the first change.
    opened: Callable[[Confirmation], object] = field(default=lambda _waiting: None)
    # Told what would not come back.
    warn: Callable[[str], object] = field(default=lambda _warning: None)

    def keep(
        self,
        ledger: Ledger,
        host: Drivers,
        ground: TrialContext,
        generation: int,
        seen: tuple[Mapping[Key, Claim], Observed, Plan],
    ) -> None:
        """What `Pass.ahead` is told, kept before the first change."""
        claims, observed, plan = seen
        digest = latches.digest(self.router.files)
        if not plan.changes:
            return
        if digest == ground.digest:
            ground.refuse_other_parts(latches.parts(self.router.files))
            return  # a repair of what is in force already
        tag = self.router.ownership.tag
        taken = snapshot.take(
            plan,
            observed,
            claims,
            host.epoch,
            tag,
            ground.declared,
            host.content,
        )
        taken = replace(taken, others=self._others(plan, claims, tag))
        now = time.time()
        waiting = Confirmation(
            generation,
            now,
            now + self.within,
            clock.boot_id(),
            deadline.boot_clock() + self.within,
            ground.generation,
            str(self.file),
            str(self.installs or ""),
            digest,
            snapshot_form.pack(taken),
            lifelines.plain(self.lines),
        )
        self.opening(generation)
        ledger.begin_confirmation(waiting)
        ledger.append_events([_begun(waiting, self.within)])
        self.opened(waiting)

    def _others(self, plan: Plan, claims: Mapping[Key, Claim], tag: int) -> bytes:
        with closing(NetlinkSocket()) as sock:
            try:
                record = others.take(sock, plan, claims, tag)
            except DriverError as error:
                raise Refused(
                    f"nothing was touched: what others have could not be recorded: {error}"
                ) from error
        if record.left_out:
            self.warn(
                f"if they go with the change, these are not put back: {'; '.join(record.left_out)}"
            )
        return b"" if record.empty else others_record.pack(record)


@dataclass(frozen=True, slots=True)
class TrialContext:
    """The generation in force (0: none), and what it declares."""

    generation: int = 0
    digest: str = ""  # of its startup files
    declared: Mapping[Key, Intent] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)  # digests of its parts, by source

    def refuse_other_parts(self, parts: Mapping[str, str]) -> None:
        """A file goes back to the one before it. Where that is the same file, and what changes
        comes from a part, there is nothing to go back to: the change would be for good."""
        differing = sorted(dict(self.parts.items() ^ parts.items()))
        if differing:
            raise Refused(
                "nothing was touched: the file is the one in force, and what would change comes"
                f" from what {', '.join(differing)} declares, or does not any more. A trial of the"
                " file cannot take that back: apply it without --confirm-within"
            )


def _begun(waiting: Confirmation, within: float) -> Event:
    said = f"to be confirmed within {format_duration(within)}"
    return Event(
        event_kinds.CONFIRM_AWAITED, f"generation {waiting.generation}", said, waiting.generation
    )


def ground(ledger: Ledger, paths: Paths, router: Router, served: Path) -> TrialContext:
    """What a candidate is applied over. What tables and services are made of is known by what
    declared them. Refused where the candidate carries another tag."""
    current = stored_configuration.carried_out(ledger)
    if current is None:
        return TrialContext()
    try:
        place, before = stored_configuration.load_generation(
            ledger, current.number, paths.root, served
        )
    except Refused:
        # An older Holdfast's, or its secrets are gone. Whatever depends on it is refused then.
        return TrialContext(current.number)
    digest = latches.digest(before.files)
    tag, other = before.ownership.tag, router.ownership.tag
    if tag != other:
        raise Refused(
            f"nothing was touched: the tag changes from {tag} to {other}, and what carries the one"
            " is not ours under the other; apply that without --confirm-within"
        )
    wanted = load.of_router(paths, place, before, lambda _warning: None).desired
    intents = {
        intent.artifact.key: intent for intent in wanted.intents if isinstance(intent, Intent)
    }
    return TrialContext(current.number, digest, intents, latches.parts_of(current))


def refuse_misplaced(candidate: Router, served: Path, root: Path) -> None:
    """A candidate takes the place of the served file with nothing but its own text: files that it
    names must be the same ones from there."""
    document, *others = candidate.files
    if str(served) == document.path:
        return
    files = {str(served): document.content, **{file.path: file.content for file in others}}
    try:
        load_router(served, root, stored=files)
    except ConfigError as error:
        raise Refused(
            f"nothing was touched: once confirmed, {document.path} takes the place of {served}, and"
            f" there it does not mean the same: {error.problems[0]}. Put it into {served.parent},"
            " or name files by absolute paths"
        ) from error


def told(waiting: Confirmation) -> str:
    """For people who would do something else meanwhile."""
    if waiting.state != OPEN:
        return f"generation {waiting.generation} is being reverted: {waiting.reason}"
    return (
        f"generation {waiting.generation} waits to be confirmed until {deadline.until(waiting)};"
        " `holdfast confirm` keeps it, `holdfast rollback` takes it back"
    )


def notice(waiting: Confirmation) -> str:
    """For people who only look."""
    why = overdue(waiting)
    if not why or waiting.state != OPEN:
        return told(waiting)
    return (
        f"generation {waiting.generation} is overdue, as {why}: the next command that changes"
        " anything takes it back, and so does `holdfast rollback`"
    )


def refuse_waiting(ledger: Ledger) -> None:
    """Nothing else is applied while a generation waits."""
    waiting = ledger.waiting()
    if waiting is not None:
        raise Refused(f"nothing was touched: {told(waiting)}")


class OtherInForce(HoldfastError):  # noqa: N818 (news, no error)
    """Another configuration is in force than the one a pass is about to be made for."""


@dataclass(slots=True)
class InForce:
    """Asked by the daemon before each pass, while it holds the ledger: a command may have opened
    or ended a trial since the configuration was read."""

    _router: Router | None = None
    _digest: str = ""
    _confirmed: int | None = None  # the newest one that was confirmed, as of the last check

    def check(self, ledger: Ledger, router: Router) -> None:
        """Raises OtherInForce."""
        known = ledger.confirmations()
        self._refuse_older(known, router)
        waiting = next((confirmation for confirmation in known if confirmation.waits), None)
        if waiting is not None:
            if waiting.state != OPEN or waiting.digest != self._digest_of(router):
                raise OtherInForce(told(waiting))
        elif ledger.has_latches() and ledger.latched(self._digest_of(router)) is not None:
            raise OtherInForce("it was reverted")

    def _refuse_older(self, known: Sequence[Confirmation], router: Router) -> None:
        """Once for each trial that was confirmed: what was read before is not put in its place. The
        file may say something else again by the time it is read anew."""
        last = next(
            (confirmation for confirmation in known if confirmation.state == CONFIRMED), None
        )
        before, self._confirmed = self._confirmed, last.generation if last is not None else 0
        if last is None or before is None or last.generation <= before:
            return
        if last.digest != self._digest_of(router):
            raise OtherInForce(f"generation {last.generation} was confirmed meanwhile")

    def _digest_of(self, router: Router) -> str:
        """Only where it is needed: a table of routes has megabytes."""
        if router is not self._router:
            self._router, self._digest = router, latches.digest(router.files)
        return self._digest


def lift(paths: Paths, file: Path, command: str) -> None:
    """Somebody asked for what the file says: if it was reverted once, it is meant all the same."""
    with Ledger.read(paths) as ledger:
        if not ledger.latches():
            return
    try:
        router = load_router(file, paths.root)
    except ConfigError:
        return  # whoever reads it next says so
    with Ledger.open(paths, command=command, wait=_LOCK_S) as ledger:
        ledger.lift_latch(router.files)


def overdue(waiting: Confirmation) -> str:
    """Why it is to be reverted now; "" while it may wait."""
    if waiting.state != OPEN:
        return waiting.reason
    if deadline.remaining(waiting) > 0:
        return ""
    if waiting.boot != clock.boot_id():
        return "the machine was booted anew before it was confirmed"
    asked = format_duration(round(waiting.deadline - waiting.started, 3))
    return f"nobody confirmed it within {asked}"


def settle(paths: Paths, ledger: Ledger, *, last: bool = False) -> Reverted | None:
    """Reverts what is overdue, and keeps what somebody asked in time to confirm; None where nothing
    is reverted."""
    waiting = ledger.waiting()
    reason = overdue(waiting) if waiting is not None else ""
    if waiting is None or not reason:
        return None
    if waiting.state == OPEN and confirm_request.in_time(paths, waiting):
        _keep(ledger, waiting)
        return None
    cause = REBOOT if waiting.boot != clock.boot_id() else DEADLINE
    return revert(paths, ledger, reason, cause, last=last)


def refuse_another(waiting: Confirmation | None, wanted: int) -> None:
    """Whoever names a generation (0: does not) does not mean one that began to wait since."""
    if waiting is not None and wanted not in (0, waiting.generation):
        raise Refused(
            f"generation {wanted} does not wait to be confirmed; {waiting.generation} does"
        )


def confirm(ledger: Ledger, wanted: ConfirmRequest, by: str = "") -> Confirmation:
    """What was asked to be kept is kept, and its text takes the place of the served file. Somebody
    else may have seen to that while the ledger was waited for. by: the source that asked, for the
    event; "": an operator."""
    waiting = ledger.waiting()
    if waiting is None:
        last = next(iter(ledger.confirmations()), None)
        if last is not None and wanted.in_time(last) and last.state == CONFIRMED:
            return last
        raise Refused(f"nothing waits to be confirmed{_lately(last)}")
    refuse_another(waiting, wanted.generation)
    why = "" if waiting.state == OPEN and wanted.in_time(waiting) else overdue(waiting)
    if why:
        raise Refused(f"it is too late: generation {waiting.generation} is reverted, as {why}")
    if waiting.installs:  # by the daemon's rule: it is the one that reads it
        refuse_untrusted_place(Path(waiting.installs))
    _keep(ledger, waiting, by)
    return waiting


def _keep(ledger: Ledger, waiting: Confirmation, by: str = "") -> None:
    # First the file. If nothing comes after it, the deadline does, and what is reverted then is not
    # taken from the file again by itself.
    if waiting.installs:
        _install(ledger, waiting)
    ledger.confirm(waiting.generation)
    subject = f"generation {waiting.generation}"
    said = f"took the place of {waiting.installs}" if waiting.installs else "stays in force"
    said += f"; {by} confirmed it" if by else ""
    ledger.append_events([Event(event_kinds.CONFIRMED, subject, said, waiting.generation)])


def _lately(last: Confirmation | None) -> str:
    if last is None:
        return ""
    why = f", as {last.reason}" if last.reason else ""
    return f"; generation {last.generation} was {last.state}{why}"


def _install(ledger: Ledger, waiting: Confirmation) -> None:
    text = stored_configuration.startup_files(ledger, waiting.generation)[waiting.file]
    # The file itself, where the name is a link to it, which is not another user's.
    place = trusted_file.resolved(Path(waiting.installs))
    with rooted.parent(Path("/"), str(place)) as (folder, name):
        there = rooted.look(folder, name)
        rooted.sweep(folder, name)
        mode = there.mode if there is not None else 0o600
        rooted.replace(folder, name, text, mode, there)
