"""Rules: tagged by FRA_PROTOCOL, which is part of a rule's identity, so that ours and another's
stand side by side."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Sequence

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Result, Scope
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.host.netlink import rule_codec, steps, tags
from holdfast.host.netlink.rule_codec import SeenRule
from holdfast.host.netlink.socket import CREATE, EXCL, NetlinkSocket, Request

_RTM_NEWRULE, _RTM_DELRULE, _RTM_GETRULE = 32, 33, 34


class RuleDriver:
    kinds = ("rule",)

    def __init__(self, sock: NetlinkSocket, tag: int) -> None:
        self._sock = sock
        self._tag = tag

    def observe(self, scope: Scope) -> Observed:
        sightings: dict[Key, list[Sighting]] = {}
        for rule in self._read():
            ours = rule.protocol == self._tag
            if ours or rule.key in scope.keys or rule.key in scope.claims:
                sightings.setdefault(rule.key, []).append(
                    Sighting(
                        rule.artifact,
                        tag=tags.tag_text(rule.protocol, self._tag),
                        holder=tags.holder_text(rule.protocol, self._tag),
                    )
                )
        return Observed(sightings)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    def _step(self, operation: Operation, artifact: Artifact) -> Result:
        match operation.verb:
            case Verb.CREATE:
                return self._create(operation, artifact)
            case Verb.DELETE:
                return self._delete(operation, artifact)
            case Verb.UPDATE | Verb.REPLACE:
                return steps.failed(operation, "a rule is all identity and cannot be changed")
            case _:
                return steps.done(operation)

    def _read(self) -> list[SeenRule]:
        """Every rule in the order the kernel looks at them."""
        return [
            rule_codec.decode(body)
            for family in (socket.AF_INET, socket.AF_INET6)
            for body in self._sock.dump(_RTM_GETRULE, bytes((family,)) + bytes(11), "rules")
        ]

    def _create(self, operation: Operation, artifact: Artifact) -> Result:
        body = rule_codec.encode(artifact.fields, self._tag)
        error = steps.send(self._sock, _RTM_NEWRULE, CREATE | EXCL, body)
        if error is not None and error.errno == errno.EEXIST:
            if any(r.key == artifact.key and r.protocol == self._tag for r in self._read()):
                return steps.failed(operation, str(error), exists=True)
            # The kernel takes `from all` to exist where `from 10.0.0.0/8` does, and `not from`
            # for `from`. Nothing equal is there, and adding never changes another rule.
            error = steps.send(self._sock, _RTM_NEWRULE, CREATE, body)
        return steps.done(operation) if error is None else steps.failed(operation, str(error))

    def _delete(self, operation: Operation, artifact: Artifact) -> Result:
        protocol = steps.planned_for(operation, self._tag)["protocol"]
        rules = self._read()
        found = [r for r in rules if r.key == artifact.key and r.protocol == protocol]
        if not found:
            return steps.done(operation)
        target = found[0]
        fitting = [rule for rule in rules if rule_codec.would_hit(target, rule)]
        before = fitting[: next(i for i, rule in enumerate(fitting) if rule is target)]
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
        there = {(rule.key, rule.protocol) for rule in self._read()} if before else set()
        lifted = [rule for rule in before if (rule.key, rule.protocol) not in there]
        back = [Request(_RTM_NEWRULE, CREATE, rule_codec.delete_body(rule)) for rule in lifted]
        real += self._sock.transact(back).values()
        if real:
            return steps.failed(operation, str(real[0]))
        return steps.done(
            operation, *(f"{rule.key} was lifted for a moment and put back" for rule in lifted)
        )


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
