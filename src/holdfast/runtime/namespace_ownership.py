"""How this installation stands to the network namespace it runs in.

A namespace is held by one installation at a time, whether a process of it runs or not. Only in a
namespace that is this ledger's own is a tag proof:

| its own is       | held by      | tagged | then |
|------------------|--------------|--------|------|
| this one         | us or nobody | any    | two-way by tag |
| another, or none | us or nobody | none   | this one becomes its own with the first change |
| another, or none | us or nobody | some   | what is missing is made, the rest stays as it is |
| any              | another root | any    | nothing is changed |

A ledger of a Holdfast that kept no such note, with anything in its history, has it as its own.
"""

from __future__ import annotations

import os
import time
from typing import Any

from holdfast.dataclass import dataclass, replace
from holdfast.engine import document
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Report
from holdfast.errors import Refused
from holdfast.host import namespace_holder
from holdfast.host.namespace_holder import Busy, Hold, Holder, Unguarded
from holdfast.host.netlink.tags import tag_text
from holdfast.paths import Paths
from holdfast.resources.spec.moments import format_moment
from holdfast.state import installation
from holdfast.state.installation import OwnNamespace
from holdfast.state.ledger import Ledger

RECOVER = "holdfast adopt --recover"


@dataclass(frozen=True, slots=True)
class Standing:
    me: Holder  # as this installation would hold it
    holder: Holder | None  # who does; None: nobody
    recovered: bool  # whether tags are proof here
    former: frozenset[int]  # tags of before that objects of ours may carry still
    new_tag: str = ""  # the one of now, where this ledger never gave it before
    unguarded: str = ""  # why nobody can hold it

    @property
    def held_by(self) -> str:
        """Why nothing may be changed here; empty where it may."""
        if self.holder is None or namespace_holder.same_root(self.holder, self.me):
            return ""
        return _held_by(self.holder, self.me)

    def entry(self) -> dict[str, Any]:
        """For documents."""
        holder = self.holder
        return {
            "holder": None
            if holder is None
            else {
                "installation": holder.installation,
                "root": holder.root,
                "since": format_moment(int(holder.since)) if holder.since else None,
            },
            "ours": not self.held_by and self.recovered,
            "unguarded": self.unguarded,
        }

    def policy(self, given: Policy) -> Policy:
        return replace(given, held_by=self.held_by, recovered=self.recovered, new_tag=self.new_tag)


def look(paths: Paths, ledger: Ledger, tag: int, epoch: str) -> Standing:
    """Changes nothing."""
    identity = installation.identity(ledger)
    root = os.path.realpath(paths.root)
    me = Holder(identity, root, namespace_holder.place_of(paths.root), epoch, tag, time.time())
    holder, unguarded = None, ""
    try:
        holder = namespace_holder.read(epoch)
    except Unguarded as why:
        unguarded = str(why)
    holder = holder or namespace_holder.at_work(me)
    if holder is not None and not namespace_holder.same_root(holder, me):
        return Standing(me, holder, False, frozenset())
    own = installation.own_namespace(ledger)
    if own is not None and own.epoch == epoch:
        new_tag = "" if tag in own.tags else tag_text(tag, tag)
        return Standing(me, holder, True, frozenset(own.tags) - {tag}, new_tag, unguarded)
    recovered = not identity and _has_history(ledger, epoch)
    return Standing(me, holder, recovered, frozenset(), unguarded=unguarded)


def _has_history(ledger: Ledger, epoch: str) -> bool:
    return bool(ledger.generations(1)) or any(
        claim.epoch == epoch for claim in ledger.claims().values()
    )


def take(hold: Hold, ledger: Ledger, standing: Standing, plan: Plan) -> bool:
    """Before the first change of a plan; answers whether tags are proof from here on. Raises
    Refused where another installation was quicker."""
    recovered = standing.recovered or not plan.recoverable
    if plan.changes or standing.recovered:
        _hold(hold, ledger, standing, recovered=recovered)
    return recovered


def recover(hold: Hold, ledger: Ledger, standing: Standing) -> None:
    """The namespace and all that carries our tag in it are this installation's from now on. Raises
    Refused while another that has it works in it."""
    try:
        _hold(hold, ledger, standing, recovered=True, from_others=True)
    except Busy as error:
        holder = standing.holder
        where = f" at {holder.root}" if holder is not None else ""
        raise Refused(
            f"nothing was taken over: the installation{where} is at work in this network namespace;"
            " end its `holdfast serve` first, and see that it does not come back"
        ) from error


def told(plan: Plan) -> str:
    """What stays as it is until somebody says whose it is; for people to read."""
    count = sum(document.count(one.subject) for one in plan.recoverable)
    what = "1 object carries" if count == 1 else f"{count} objects carry"
    return (
        f"{what} the mark of a Holdfast, and nothing in this ledger says that it was this one. What"
        f" is marked so is left alone: `{RECOVER}` shows it and takes it back"
    )


def settle(ledger: Ledger, standing: Standing, report: Report) -> None:
    """Forgets tags of before once nothing can carry them any more."""
    left = report.after
    if not standing.former or not standing.recovered or not report.converged:
        return
    if not left.pending and all(orphan.removed for orphan in left.orphans):
        own = OwnNamespace(standing.me.epoch, (standing.me.tag,))
        installation.write_own_namespace(ledger, own)


def release(hold: Hold, ledger: Ledger, standing: Standing) -> None:
    """Nothing of this installation is left in the namespace."""
    hold.release(standing.me)
    installation.write_own_namespace(ledger, None)


def _hold(
    hold: Hold,
    ledger: Ledger,
    standing: Standing,
    *,
    recovered: bool,
    from_others: bool = False,
) -> None:
    """First the file that others see, then the note that makes tags proof: killed in between, the
    namespace is held, and what carries the tag still waits to be taken back."""
    me = replace(standing.me, installation=installation.ensure_identity(ledger))
    try:
        there = hold.take(me, from_others=from_others)
    except Unguarded:
        there = me  # `holdfast status` says so
    if not namespace_holder.same_root(there, me):
        raise Refused(f"nothing was touched: {_held_by(there, me)}")
    if recovered:
        own = OwnNamespace(me.epoch, (me.tag, *sorted(standing.former)))
        installation.write_own_namespace(ledger, own)


def _held_by(holder: Holder, me: Holder) -> str:
    what = f"the Holdfast installation at {holder.root}"
    if holder.since:
        what += f" (since {format_moment(int(holder.since))})"
    if holder.installation == me.installation:
        what += ", of whose ledger this one is a copy"
    return (
        f"this network namespace is held by {what}: use its --root, work in another namespace, or"
        f" take it over with all that carries its mark: {RECOVER}"
    )
