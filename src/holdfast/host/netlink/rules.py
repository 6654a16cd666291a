"""Rules: tagged by FRA_PROTOCOL, which is part of a rule's identity, so that ours and another's
stand side by side."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Callable, Sequence

from holdfast.engine.artifact import Artifact, Key, Value
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.kinds.rule import RULE
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import steps
from holdfast.host.netlink import rule_codec, tags
from holdfast.host.netlink.rule_codec import SeenRule
from holdfast.host.netlink.socket import CREATE, EXCL, NetlinkSocket, Request

_RTM_NEWRULE, _RTM_DELRULE, _RTM_GETRULE = 32, 33, 34


class RuleReader:
    """Reads anew whenever asked; what the kernel says in the same bytes as before is the same
    rule, and taken apart once."""

    def __init__(self, sock: NetlinkSocket) -> None:
        self._sock = sock
        self._known: dict[int, dict[bytes, SeenRule]] = {}  # by family

    def read(self, *families: int) -> list[SeenRule]:
        """The rules of these families, or of all, in the order the kernel looks at them."""
        found = []
        for family in sorted(families) or (4, 6):
            before = self._known.get(family, {})
            # Only what is there now is kept: a daemon reads for as long as it lives.
            known = self._known[family] = {}
            for body in self._dump(family):
                rule = before.get(body)
                if rule is None:
                    rule = rule_codec.decode(body)
                known[body] = rule
                found.append(rule)
        return found

    def _dump(self, family: int) -> list[bytes]:
        header = bytes((rule_codec.FAMILIES[family],)) + bytes(11)
        try:
            return self._sock.dump(_RTM_GETRULE, header, f"IPv{family} rules")
        except DriverError as error:
            # A kernel without IPv6 has no IPv6 rules; it says so, and that is known, not unknown.
            if error.code == errno.EAFNOSUPPORT:
                return []
            raise


class RuleDriver(Driver):
    def __init__(self, sock: NetlinkSocket, tag: int, former: frozenset[int] = frozenset()) -> None:
        self._sock = sock
        self._tag = tag
        self._former = former
        self._reader = RuleReader(sock)

    def observe(self, scope: Scope) -> Observed:
        sightings: dict[Key, list[Sighting]] = {}
        ours = {self._tag, *self._former}
        for rule in self._reader.read():
            if rule.protocol in ours:
                retag = tags.retag(rule.protocol, self._tag)
                tag = tags.tag_text(rule.protocol, rule.protocol)
                seen = Sighting(rule.artifact, tag=tag, retag=retag)
            elif rule.key in scope.keys or rule.key in scope.claims:
                seen = Sighting(rule.artifact, holder=tags.holder_text(rule.protocol))
            else:
                continue
            sightings.setdefault(rule.key, []).append(seen)
        return Observed(sightings)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step, self._delete_together)

    def _step(self, operation: Operation, artifact: Artifact) -> Result:
        match operation.verb:
            case Verb.CREATE:
                return self._create(operation, artifact)
            case Verb.DELETE:
                return self._delete(operation, artifact)
            case Verb.UPDATE if [change.field for change in operation.changes] == [
                RULE.writer_field
            ]:
                # The tag is part of what the kernel knows a rule by: the new one first.
                made = self._create(operation, artifact)
                already = any(failure.exists for failure in made.failures)
                return self._delete(operation, artifact) if made.ok or already else made
            case Verb.UPDATE | Verb.REPLACE:
                return steps.failed(operation, "a rule is all identity and cannot be changed")
            case _:
                return steps.done(operation)

    def _create(self, operation: Operation, artifact: Artifact) -> Result:
        body = rule_codec.encode(artifact.fields, self._tag)
        error = steps.send(self._sock, _RTM_NEWRULE, CREATE | EXCL, body)
        if error is not None and error.errno == errno.EEXIST:
            there = self._reader.read(_family(artifact))
            if any(r.key == artifact.key and r.protocol == self._tag for r in there):
                return steps.failed(operation, str(error), exists=True)
            # The kernel takes `from all` to exist where `from 10.0.0.0/8` does, and `not from`
            # for `from`. Nothing equal is there, and adding never changes another rule.
            error = steps.send(self._sock, _RTM_NEWRULE, CREATE, body)
        return steps.done(operation) if error is None else steps.failed(operation, str(error))

    def _delete_together(self, operations: Sequence[Operation]) -> list[Result] | None:
        """A few deletes after one reading. None, and nothing touched, where the kernel would take
        another rule for one of them, or has no protocol to guard it by."""
        rules = self._reader.read(*{_family(steps.single(operation)) for operation in operations})
        first: dict[tuple[Key, Value], SeenRule] = {}
        peers: dict[tuple[int, int], list[SeenRule]] = defaultdict(list)
        for rule in rules:
            first.setdefault((rule.key, rule.protocol), rule)
            peers[rule.family, rule.priority].append(rule)
        found = [first.get(self._planned_for(operation)) for operation in operations]
        for target in found:
            if target is None:
                continue
            if not target.protocol or _in_front(peers[target.family, target.priority], target):
                return None
        doomed = [(at, target) for at, target in enumerate(found) if target is not None]
        requests = [Request(_RTM_DELRULE, 0, rule_codec.delete_body(rule)) for _, rule in doomed]
        results = [steps.done(operation) for operation in operations]
        for index, error in self._sock.transact(requests).items():
            if error.errno != errno.ENOENT:
                at, _ = doomed[index]
                results[at] = steps.failed(operations[at], str(error))
        return results

    def _planned_for(self, operation: Operation) -> tuple[Key, Value]:
        protocol = steps.planned_for(operation, self._tag)["protocol"]
        return steps.single(operation).key, protocol

    def _delete(self, operation: Operation, artifact: Artifact) -> Result:
        rules = self._reader.read(_family(artifact))
        planned_for = self._planned_for(operation)
        target = next((rule for rule in rules if (rule.key, rule.protocol) == planned_for), None)
        if target is None:
            return steps.done(operation)
        before = _in_front(rules, target)
        stranger = _cannot_step_aside(rules, before, target)
        if stranger is not None:
            return steps.failed(
                operation,
                f"the kernel would take `{before[0].key.name}` for it, and that cannot step aside"
                f" without changing places with `{stranger.key.name}`; give them priorities of"
                " their own",
            )
        return self._remove(operation, target, before)

    def _remove(self, operation: Operation, target: SeenRule, before: Sequence[SeenRule]) -> Result:
        """Delete a rule, and those in front of it that the kernel would take for it, which are
        then added again. Killed in between, the next pass adds what is still declared."""
        delete = Request(_RTM_DELRULE, 0, rule_codec.delete_body(target))
        errors = self._sock.transact([delete] * (len(before) + 1))
        real = [error for error in errors.values() if error.errno != errno.ENOENT]
        left = self._reader.read(target.family) if before else []
        there = {(rule.key, rule.protocol) for rule in left}
        lifted = [rule for rule in before if (rule.key, rule.protocol) not in there]
        back = [Request(_RTM_NEWRULE, CREATE, rule_codec.delete_body(rule)) for rule in lifted]
        real += self._sock.transact(back).values()
        if real:
            return steps.failed(operation, str(real[0]))
        return steps.done(
            operation, *(f"{rule.key} was lifted for a moment and put back" for rule in lifted)
        )


def _in_front(rules: Sequence[SeenRule], target: SeenRule) -> list[SeenRule]:
    """Rules that the kernel would meet, and take for the target, before the target itself."""
    before = []
    for rule in rules:
        if rule is target:
            break
        if rule_codec.would_hit(target, rule):
            before.append(rule)
    return before


def _family(artifact: Artifact) -> int:
    return 6 if artifact.key.name.startswith("inet6 ") else 4


def _cannot_step_aside(
    rules: Sequence[SeenRule], before: Sequence[SeenRule], target: SeenRule
) -> SeenRule | None:
    """A rule that keeps those before the target from being lifted: one that is not of the same
    writer, or one of the same priority that would then come to stand in front of them."""
    if not before:
        return None
    lifted = {id(rule) for rule in before}
    peers = [r for r in rules if (r.family, r.priority) == (target.family, target.priority)]
    behind = peers[next(i for i, rule in enumerate(peers) if id(rule) in lifted) :]
    for rule in behind:
        if rule is target:
            continue
        if id(rule) not in lifted or rule.protocol != target.protocol or not rule.protocol:
            return rule
    return None
