"""Routes reconciled without looking at all of them.

A full pass dumps every route of ours. With a hundred thousand of them that is most of a second, and
nothing of it is news where one line of a file changed or one route was deleted by hand. What the
last full pass saw, and what the kernel told since, says where to look; the decisions are those of
the planner, over these few identities alone.

How the reconciler uses it:

    known = RouteChanges()
    known.remember(context, policy, tag)         # after each full pass
    known.left(plan)                             # after a partial pass over anything else
    known.forget("a link changed")               # where what routes stand on changed
    few = known.begin(desired, policy, tag, hints, host, ledger)        # or FullPassNeeded
    report = Pass(few.desired, few, few, policy).run(few.approve)       # or FullPassNeeded
    report = few.settled(report)                 # as of everything
    if few.problem: ...                          # a full pass has to follow

The generation is begun after that: it is not what a route waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.agent.watch.hint import Hint
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import bulk_changes, make_before_break, ownership
from holdfast.engine.artifact import Batch, Key
from holdfast.engine.bulk_changes import Declaration, Identities, Settled
from holdfast.engine.bulk_keys import Keys
from holdfast.engine.claim import Claim, Lasting
from holdfast.engine.driver import Failure, Memory, Result, Scope
from holdfast.engine.intent import Desired
from holdfast.engine.kinds.route import ROUTE, identify, split_identity
from holdfast.engine.kinds.route import identity as identity_by_name
from holdfast.engine.observed import Observed
from holdfast.engine.partial_pass import FullPassNeeded, PassContext
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Claims, Host, Report
from holdfast.errors import DriverError, Refused
from holdfast.host.netlink.routes.known_routes import KnownRoutes, Unclear
from holdfast.host.netlink.routes.route_notifications import RouteListener, RouteNotice, identity_of
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.netlink.tags import tag_text

# More are looked at faster by a dump.
MOST = 1000


@dataclass(slots=True)
class RouteChanges:
    """Belongs to one thread."""

    _base: Settled | None = None
    _doubt: str = "there was no full pass yet"  # why there is none
    _policy: Policy = field(default_factory=Policy)
    _tag: int = 0
    _sock: NetlinkSocket | None = None

    def remember(self, context: PassContext, policy: Policy, tag: int) -> None:
        """After a full pass."""
        try:
            found = bulk_changes.settled(
                ROUTE, tag_text(tag, tag), context.desired, context.plan, context.standing
            )
        except FullPassNeeded as why:
            self.forget(str(why))
            return
        self._base, self._policy, self._tag = found, policy, tag
        for batch in found.seen:
            if isinstance(batch.keys, Keys):
                batch.keys.prepare()

    def left(self, plan: Plan) -> None:
        """After a pass over other kinds, which saw no route: what is left to do by now."""
        if self._base is not None:
            self._base = replace(self._base, plan=plan, kept=[])

    def forget(self, why: str) -> None:
        """What is known of the routes no longer holds."""
        self._doubt, self._base = why, None

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def begin(
        self,
        desired: Desired,
        policy: Policy,
        tag: int,
        hints: Iterable[Hint],
        host: Host,
        ledger: Claims,
    ) -> RoutePass:
        """A pass over what another configuration, or somebody else, may have changed. Raises
        FullPassNeeded; what is known stays known then."""
        base = self._known(policy, tag, ledger)
        told, untold = _heard(hints)
        touched = bulk_changes.joined(
            base.changed(desired), _by_scope([*(notice.identity for notice in told), *untold])
        )
        different = bulk_changes.differs_elsewhere(base.desired, desired)
        if different:
            raise FullPassNeeded(different)
        _refuse_touched(base, desired, touched, ledger.claims())
        try:
            few = KnownRoutes(self._socket(), self._tag)
            few.expect(_flat(touched), bulk_changes.only(base.seen, touched))
            few.hear(told, [*untold, *_flat(bulk_changes.common(touched, base.unsettled))])
        except (Unclear, DriverError, OSError) as error:
            raise FullPassNeeded(str(error)) from error
        return RoutePass(self, base, desired, policy, touched, few, host, ledger)

    def amend(
        self,
        desired: Desired,
        declaration: Declaration,
        policy: Policy,
        tag: int,
        host: Host,
        ledger: Claims,
    ) -> RoutePass:
        """A pass over what is declared otherwise, where that is known without comparing all of
        it. Raises as `begin` does."""
        base = self._known(policy, tag, ledger)
        touched = declaration.touched(ROUTE)
        _refuse_touched(base, desired, touched, ledger.claims())
        try:
            few = KnownRoutes(self._socket(), self._tag)
            few.expect(_flat(touched), base.known_at(declaration))
            few.hear([], _flat(bulk_changes.common(touched, base.unsettled)))
        except (Unclear, DriverError, OSError) as error:
            raise FullPassNeeded(str(error)) from error
        return RoutePass(self, base, desired, policy, touched, few, host, ledger, declaration)

    def _known(self, policy: Policy, tag: int, ledger: Claims) -> Settled:
        base = self._base
        if base is None:
            raise FullPassNeeded(self._doubt)
        if (policy.epoch, policy.unloaded) != (self._policy.epoch, self._policy.unloaded):
            raise FullPassNeeded("it is another network namespace, or there are other sources")
        if tag != self._tag:
            raise FullPassNeeded("what is ours carries another tag")
        if ownership.elsewhere(ledger.claims().values(), policy.epoch):
            raise FullPassNeeded("the ledger has claims of another network namespace")
        return base

    def take(self, base: Settled) -> None:
        """What a pass over a few has left."""
        self._base = base

    def _socket(self) -> NetlinkSocket:
        """It only asks; changes go through the host."""
        if self._sock is None:
            self._sock = NetlinkSocket()
        return self._sock


def _refuse_touched(
    base: Settled, desired: Desired, touched: Identities, claims: Mapping[Key, Claim]
) -> None:
    if any(waiting.fault for waiting in desired.waiting):
        raise FullPassNeeded("what some resource declares cannot be told")
    if sum(map(len, touched.values())) > MOST:
        raise FullPassNeeded("many routes changed")
    if make_before_break.concerned(touched, base.unsettled):
        raise FullPassNeeded("another route to the same destination is not as declared")
    impaired = [held.impaired for held in base.plan.blocked if held.impaired is not None]
    if bulk_changes.meet(touched, _by_scope(map(identity_by_name, impaired))):
        raise FullPassNeeded("others had something of theirs in a route's way")
    claimed = (identify(claim.fields) for key, claim in claims.items() if key.kind == ROUTE.name)
    if any(key in touched.get(scope, ()) for scope, key in claimed):
        raise FullPassNeeded("a route is concerned that the ledger has a claim on")


def _heard(hints: Iterable[Hint]) -> tuple[list[RouteNotice], list[bytes]]:
    """What was told of routes, and the identities of those that are only to be looked at."""
    told: list[RouteNotice] = []
    untold: list[bytes] = []
    for hint in hints:
        if hint.body is not None:
            told.append(RouteNotice(identity_of(hint.body), hint.gone, hint.body, hint.replaced))
        elif hint.identity is not None:
            untold.append(hint.identity)
        else:
            raise FullPassNeeded("some route changed")
    return told, untold


def _by_scope(identities: Iterable[bytes]) -> Identities:
    found: dict[bytes, set[bytes]] = {}
    for identity in identities:
        scope, key = split_identity(identity)
        found.setdefault(scope, set()).add(key)
    return found


def _flat(identities: Identities) -> list[bytes]:
    return [scope + key for scope, keys in identities.items() for key in keys]


def _only_leads(operation: Operation) -> bool:
    """It makes a way, or another one, and takes none."""
    subject = operation.subject
    return (
        operation.verb in (Verb.CREATE, Verb.UPDATE)
        and isinstance(subject, Batch)
        and subject.template.type == "unicast"
    )


def _belies(operation: Operation, failure: Failure) -> bool:
    """Was what is known of the routes wrong? Not where the kernel refuses to make one that is not
    there, as nothing leads to its gateway."""
    return operation.verb is not Verb.CREATE or failure.exists


@dataclass(slots=True)
class RoutePass:
    """The host and the claims of a Pass over a few routes."""

    known: RouteChanges
    base: Settled
    whole: Desired
    policy: Policy
    touched: Identities
    few: KnownRoutes
    host: Host
    ledger: Claims
    declaration: Declaration | None = None  # all that is declared otherwise
    problem: str = ""  # why a full pass has to follow, if it has
    _changed: bool = False
    _told: list[RouteNotice] | None = field(default_factory=list)  # None: some of it was lost
    epoch: str = ""
    desired: Desired = field(default_factory=lambda: Desired(()))

    def __post_init__(self) -> None:
        self.epoch = self.host.epoch
        if self.declaration is not None:
            intents = tuple(self.declaration.now.values())
        else:
            intents = tuple(bulk_changes.intents_at(self.whole, self.touched))
        self.desired = Desired(intents, self.whole.waiting)

    def approve(self, plan: Plan, guard: Callable[[Plan], str] = lambda _plan: "") -> None:
        """Raises FullPassNeeded or Refused. guard: why it must not be carried out; it is asked
        only about what may take something away."""
        harmless = all(map(_only_leads, plan.changes))
        if harmless and self.declaration is not None:
            involved = bulk_changes.is_involved(plan, self.whole)
            if involved:
                raise FullPassNeeded(involved)
            return
        if self.declaration is not None:
            made = self.base.plan_of(self.declaration, self.whole, plan, self.policy)
        else:
            made = bulk_changes.planned(self.base, self.whole, plan, self.policy)
        refusal = made.refusal or ("" if harmless else guard(made))
        if refusal:
            raise Refused(refusal)

    def settled(self, report: Report) -> Report:
        """The report as of everything. Where `problem` says so, a full pass is to follow: it sees
        to what is left."""
        left = report.after
        if not self.problem and any(_belies(*failure) for failure in report.failures):
            self.problem = "routes did not become as declared"
        self.problem = self.problem or bulk_changes.is_involved(left, self.whole)
        if self.declaration is not None and not (self.problem or left.changes or left.orphans):
            found = self.base.amended(self.whole, self.declaration)
        else:
            found = self.base.after(self.whole, self.touched, left)
        if not self.problem:
            self.known.take(found)
            return replace(report, after=found.plan)
        self.known.forget(self.problem)
        unknown = ((ROUTE.name, self.problem),)
        return replace(report, after=replace(found.plan, unknown=unknown))

    # What a Pass asks of its host.

    def observe(self, _scope: Scope) -> Observed:
        if self._changed:
            self._check()
        if self.problem:
            return Observed(unknown={ROUTE.name: self.problem}, standing=self.base.standing)
        return Observed(bulk={ROUTE.name: self.few.sighting()}, standing=self.base.standing)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        with RouteListener() as listener:
            results = self.host.apply(operations, progress)
            heard = listener.read()
        self._changed = True
        self._told = None if self._told is None or heard is None else [*self._told, *heard]
        return results

    def _check(self) -> None:
        """What became of the changes, by what the kernel said meanwhile."""
        told, self._told, self._changed = self._told, [], False
        try:
            self.few.check(
                told, [bulk_intent.batch for bulk_intent in bulk_changes.bulk_intents(self.desired)]
            )
        except (Unclear, DriverError) as error:
            self.problem = str(error)

    def to_remember(
        self, planned: Sequence[Operation], remembered: Mapping[str, Memory]
    ) -> Mapping[str, Memory]:
        return self.host.to_remember(planned, remembered)

    def sweep(self, _claims: Iterable[Claim]) -> None:
        """Routes leave nothing beside them."""

    def settle(self, _claims: Iterable[Claim]) -> None:
        """The tag is all the mark they have."""

    # What a Pass asks of its ledger.

    def claims(self) -> dict[Key, Claim]:
        """None of them is on what is looked at."""
        return {}

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None:
        self.ledger.write_claims(put, remove)

    @property
    def lasting(self) -> Lasting:
        return self.ledger.lasting

    def remembered(self) -> Mapping[str, Memory]:
        return self.ledger.remembered()

    def remember(self, driver: str, memory: Memory) -> None:
        self.ledger.remember(driver, memory)
