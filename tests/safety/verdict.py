"""What must be true after a pass, besides others' things being as they were."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.intent import Desired
from holdfast.engine.kinds.route import route_key
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.engine.reconcile import Report
from tests.safety.router_in_process import RouterInProcess
from tests.safety.shared_namespace import TAG

# A driver's last look found that an operation would cost others something.
SPARED = ("would take what others", "is another program's", "cannot step aside")
# On a full disk a new file waits: without a claim nobody could tell later whose it is.
WAITS = "not tried: the ledger cannot be written"


_ABSENT = ("it is not there yet", "it is down")  # of a link
_LEAST_MTU = 1280  # of IPv6
_KNOWN = (Verb.KEEP, Verb.DELETE)  # kept, or refused to be deleted


def check(world: RouterInProcess, config: Desired, report: Report) -> None:
    after = report.after
    assert not after.unknown, after.unknown
    refused = _refused(report) | _taken(world, report) | _without_ipv6(world, report)
    left = [op for op in after.changes if not _is_refused(op, refused)]
    assert not left, f"not brought about: {[describe(op) for op in left]}; {_words(report)}"
    _reasons_are_true(world, after)
    _nothing_leaks(world, after)
    _claims_are_settled(world, refused)
    _second_pass_is_empty(world, config, bool(refused))


def describe(operation: Operation) -> str:
    subject = operation.subject
    if isinstance(subject, Artifact):
        return f"{operation.verb} {subject.key} {dict(subject.fields)} {operation.changes}"
    keys = [str(subject.artifact(key).key) for key in subject.keys]
    return f"{operation.verb} {keys} {subject.template}"


def _refused(report: Report) -> set[Key]:
    return {
        failure.key
        for _, failure in report.failures
        if any(words in failure.error for words in SPARED)
        or (failure.key.kind == "file" and WAITS in failure.error)
    }


def _taken(world: RouterInProcess, report: Report) -> set[Key]:
    """IPv6 routes of which another program has one of the legs we want."""
    theirs = {
        route_key(f"{prefix}/{length}", 6, table, metric)
        for _, (table, prefix, length, metric, _leg), *_ in world.theirs(world.look())["leg6"]
        if isinstance(table, int) and isinstance(metric, int)
    }
    return theirs & {failure.key for _, failure in report.failures if failure.exists}


def _without_ipv6(world: RouterInProcess, report: Report) -> set[Key]:
    """The kernel has no IPv6 on a link whose packets are too small for it."""
    if min(world.mtus()) >= _LEAST_MTU:
        return set()
    return {failure.key for _, failure in report.failures if ":" in failure.key.name}


def _is_refused(operation: Operation, refused: set[Key]) -> bool:
    subject = operation.subject
    if isinstance(subject, Artifact):
        return subject.key in refused
    return all(subject.artifact(key).key in refused for key in subject.keys)


def _words(report: Report) -> list[str]:
    return [f"{failure.key}: {failure.error}" for _, failure in report.failures]


def _reasons_are_true(world: RouterInProcess, after: Plan) -> None:
    """A conflict names something that is there and not ours; who waits, waits for a reason."""
    theirs = world.theirs(world.look())
    for conflict in after.conflicts:
        kind = conflict.desired.key.kind
        if kind != "file":
            assert theirs[_what(conflict.desired.key)], f"{conflict.desired.key}: nobody holds it"
    for held in after.blocked:
        assert any(theirs.values()), held
    if after.pending:
        missing = any(held.reason.endswith(_ABSENT) for held in after.pending)
        assert missing or after.conflicts or after.blocked, after.pending


def _what(key: Key) -> str:
    if key.kind == "route":
        return "leg6" if ":" in key.name else "route4"
    return key.kind


def _nothing_leaks(world: RouterInProcess, after: Plan) -> None:
    """Whatever carries our tag is known to the plan: kept, or an orphan that says why."""
    seen = world.look()
    rules = sum(1 for op in after.operations if op.kind == "rule" and op.verb in _KNOWN)
    tagged = sum(1 for item in seen["rule"] if item.protocol == TAG)
    assert tagged == rules, f"{tagged} rules carry our tag, {rules} are known"
    for kind in ("address", "neighbour"):
        known = {
            op.subject.key
            for op in after.operations
            if isinstance(op.subject, Artifact) and op.verb is not Verb.FORGET
        }
        known |= {
            orphan.subject.key for orphan in after.orphans if isinstance(orphan.subject, Artifact)
        }
        known |= {held.key for held in (*after.pending, *after.blocked) if held.key is not None}
        tagged = sum(1 for item in seen[kind] if item.protocol == TAG)
        assert tagged <= sum(1 for key in known if key.kind == kind)
    groups = [item for item in seen["link"] if item.fields[-1] not in (0, 7)]
    assert not groups, f"links still carry a mark: {groups}"


def _claims_are_settled(world: RouterInProcess, refused: set[Key]) -> None:
    unsettled = [
        (str(claim.key), claim.state, claim.nonce)
        for claim in world.ledger.claims().values()
        if (claim.state != "owned" or claim.nonce) and claim.key not in refused
    ]
    assert not unsettled


def _second_pass_is_empty(world: RouterInProcess, config: Desired, refused: bool) -> None:
    writes = world.ledger.writes
    again = world.reconcile(config)
    done = [describe(result.operation) for result in again.results if result.done]
    assert not done, f"a second pass found something to do: {done}"
    if not refused:
        assert not again.results
        assert world.ledger.writes == writes
