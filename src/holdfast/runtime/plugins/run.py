"""One run of a plugin from the question to the part, recorded."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from holdfast.config.document import parse
from holdfast.config.part import Part, Raw, Target
from holdfast.dataclass import dataclass, replace
from holdfast.engine import event_kinds
from holdfast.errors import HoldfastError
from holdfast.paths import Paths
from holdfast.resources.dynamic import dynamic_target
from holdfast.resources.dynamic.dynamic_config_source import DynamicConfigSource
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.plugin import Plugin
from holdfast.resources.dynamic.source_name import plugin_source
from holdfast.resources.resource import Resource
from holdfast.resources.spec.moments import format_moment
from holdfast.runtime import event_rate, part_checks, sources
from holdfast.runtime.plugins import protocol, sandbox, sanitize
from holdfast.runtime.plugins.protocol import Answer, Asked, Nonsense, Trigger
from holdfast.runtime.plugins.redaction import redacted
from holdfast.runtime.plugins.sandbox import Outcome
from holdfast.state import plugin_runs
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from holdfast.state.plugin_runs import PluginRun

# What it complained of is kept to be read, not archived.
_MOST_KEPT = 8 << 10


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What a run came to. part: what it proposed, where that can be taken."""

    plugin: str
    outcome: Outcome
    problem: str
    part: Part | None
    answer: Answer | None
    hidden: frozenset[str] = frozenset()  # what it was told and must not tell
    stored: bool = False
    unchanged: bool = False
    rejected: tuple[str, ...] = ()  # why the merge does not take it, where that was asked for
    ignored: tuple[str, ...] = ()  # and which masks of it have no effect
    events: tuple[Event, ...] = ()  # recorded already

    @property
    def well(self) -> bool:
        return not self.problem and not self.rejected

    def document(self, *, dry_run: bool) -> dict[str, Any]:
        part = self.part
        return {
            "format_version": "1.0",
            "plugin": self.plugin,
            "source": plugin_source(self.plugin),
            "dryRun": dry_run,
            "stored": self.stored,
            "rejected": list(self.rejected),
            "ignored": list(self.ignored),
            "outcome": {
                "exitCode": self.outcome.status,
                "durationMs": round(self.outcome.seconds * 1000),
                "stdoutDigest": f"sha256:{hashlib.sha256(self.outcome.out).hexdigest()}",
                "stderr": self.outcome.err[:_MOST_KEPT],
                "error": self.problem,
            },
            # Plans may hold secrets, for whoever executes them.
            "part": part
            and part_document(replace(part, action_plans=tuple(redacted(part.action_plans)))),
            "summary": {
                "resources": len(part.resources) if part else 0,
                "directives": len(part.directives) if part else 0,
                "actionPlans": len(part.action_plans) if part else 0,
            },
        }


def part_document(part: Part) -> dict[str, Any]:
    """As a DynamicConfigPart is written."""
    spec: dict[str, Any] = {
        "source": part.source,
        "generation": part.generation,
        "observedAt": format_moment(part.observed),
    }
    if part.expires is not None:
        spec["expiresAt"] = format_moment(part.expires)
    return {
        "apiVersion": "config.holdfast.dev/v1alpha1",
        "kind": "DynamicConfigPart",
        "metadata": {"name": part.called or part.name},
        "spec": spec
        | {
            "digest": part.digest,
            "resources": list(part.resources),
            "directives": [
                {
                    "op": directive.op,
                    "target": {
                        "apiVersion": directive.target.api_version,
                        "kind": directive.target.kind,
                        "name": directive.target.name,
                    },
                    "reason": directive.reason,
                }
                for directive in part.directives
            ],
            "actionPlans": list(part.action_plans),
        },
    }


LedgerAtHand = Callable[[], AbstractContextManager[Ledger]]


@dataclass(frozen=True, slots=True)
class PluginRunner:
    """Runs plugins of the startup file and records what came of it."""

    paths: Paths
    ledger: LedgerAtHand  # for writing, held no longer than the write takes
    clock: Callable[[], float] = time.time

    async def run(
        self,
        plugin: Resource,
        effective: Effective,
        trigger: Trigger,
        *,
        generation: int = 0,
        events: Sequence[Mapping[str, Any]] = (),
        dry_run: bool = False,
    ) -> FinishedRun:
        spec: Plugin = plugin.spec

        def ask() -> tuple[int, bytes]:
            previous = self._previous(plugin.name)
            asked = Asked(
                plugin.name,
                trigger,
                self.clock(),
                startup_hash(effective),
                generation,
                previous,
                events,
                shown(spec, effective),
            )
            return previous, asked.document()

        # In threads: a startup file to parse, or an answer of 4 MiB, takes longer than the event
        # loop may wait.
        previous, request = await asyncio.to_thread(ask)
        started = self.clock()
        outcome = await sandbox.run(
            self.paths.under(spec.executable),
            request,
            timeout=spec.timeout,
            environment=spec.env or {},
        )
        outcome = replace(outcome, err=sanitize.lines(outcome.err, sanitize.secrets_of(spec.env)))
        ran = await asyncio.to_thread(self._read, plugin, effective, outcome, previous + 1)
        merged = None
        if ran.part is not None and trigger.type == "manual":
            # Somebody waits to hear what becomes of it; the others read it in the events.
            merged = await asyncio.to_thread(self._merged, effective, ran.part)
            ran = replace(
                ran,
                rejected=_told_of(ran.part, merged),
                ignored=tuple(
                    str(ignored) for ignored in merged.ignored if ignored.part.ref == ran.part.ref
                ),
            )
        if dry_run:
            return ran
        return await asyncio.to_thread(self._record, ran, trigger, started, merged)

    def _merged(self, effective: Effective, part: Part) -> Effective:
        """What comes of it with this part."""
        with Ledger.read(self.paths) as ledger:
            known = sources.stored(ledger)
        return replace(known, parts=(*known.parts, part)).merge(effective.startup, self.clock())

    def _previous(self, name: str) -> int:
        with Ledger.read(self.paths) as ledger:
            return sources.last(ledger, plugin_source(name))

    def _read(
        self, plugin: Resource, effective: Effective, outcome: Outcome, generation: int
    ) -> FinishedRun:
        if outcome.problem:
            return FinishedRun(plugin.name, outcome, with_words(outcome), None, None)
        hidden = sanitize.secrets_of(plugin.spec.env)
        try:
            answer = protocol.read_answer(
                outcome.out,
                plugin.name,
                generation=generation,
                now=self.clock(),
                longest=_longest(plugin.name, effective),
                capabilities=plugin.spec.capabilities or (),
            )
            problem = "; ".join(map(str, part_checks.problems(answer.part, self.clock())))
        except Nonsense as error:
            problem = str(error)
        if problem:
            # It may quote what the plugin said.
            problem = sanitize.line(problem, hidden)
            return FinishedRun(plugin.name, outcome, problem, None, None)
        return FinishedRun(plugin.name, outcome, "", answer.part, answer, hidden)

    def _record(
        self, ran: FinishedRun, trigger: Trigger, started: float, merged: Effective | None
    ) -> FinishedRun:
        """The part and the run, or the run alone. A part like the one before it is a new
        generation all the same: it lives longer. Only a changed one is worth an event."""
        problem, unchanged = ran.problem, False
        with self.ledger() as ledger:
            if ran.part is not None:
                source = ran.part.source
                last = ledger.part(source, sources.last(ledger, source))
                unchanged = last is not None and last.digest == ran.part.digest
                try:
                    sources.put(ledger, ran.part, self.clock())
                    if merged is not None:  # perhaps without a daemon that would note it
                        sources.accept(ledger, merged)
                except HoldfastError as error:
                    problem = str(error)
            else:
                sources.refuse(ledger, plugin_source(ran.plugin), problem)
            stored = ran.part is not None and not problem
            outcome = plugin_runs.UNCHANGED if unchanged else plugin_runs.STORED
            ledger.put_run(
                PluginRun(
                    ran.plugin,
                    f"{trigger.type} {trigger.topic}".strip(),
                    started,
                    ran.outcome.seconds,
                    outcome if stored else plugin_runs.FAILED,
                    ran.part.generation if stored and ran.part else None,
                    problem,
                    ran.outcome.err[:_MOST_KEPT],
                )
            )
            subject = plugin_source(ran.plugin)
            told = _events(ran, problem, _failed_before(ledger, ran.plugin))
            events = event_rate.kept(ledger, ((subject, event) for event in told), self.clock())
            ledger.append_events(events)
        return replace(
            ran,
            problem=problem,
            stored=stored,
            unchanged=stored and unchanged,
            events=tuple(events),
        )


def _told_of(part: Part, merged: Effective) -> tuple[str, ...]:
    return next(
        (rejected.told for rejected in merged.rejected if rejected.part.ref == part.ref), ()
    )


def _failed_before(ledger: Ledger, plugin: str) -> str:
    """Why the run before this one failed; a plugin that fails the same way every minute has said
    so once."""
    runs = ledger.runs(plugin)
    return runs[1].reason if len(runs) > 1 else ""


def _events(ran: FinishedRun, problem: str, before: str) -> list[Event]:
    subject = plugin_source(ran.plugin)
    if problem:
        return [] if problem == before else [Event(event_kinds.PLUGIN_FAILED, subject, problem)]
    said = ran.answer.events if ran.answer is not None else ()
    found = [
        Event(
            event_kinds.PLUGIN_SAID,
            subject,
            sanitize.line(f"{one.type}: {one.message}", ran.hidden),
            0,
            {
                "type": sanitize.line(one.type, ran.hidden),
                "attributes": sanitize.struck(redacted(one.attributes or {}), ran.hidden),
            },
        )
        for one in said
    ]
    if before:
        found.insert(0, Event(event_kinds.PLUGIN_RECOVERED, subject, "it runs again"))
    return found


def with_words(outcome: Outcome) -> str:
    """outcome: with words that may be shown."""
    last = outcome.err.strip().splitlines()[-1:]
    return f"{outcome.problem}: {last[0][:200]}" if last else outcome.problem


def _longest(plugin: str, effective: Effective) -> float:
    for resource in effective.startup.resources:
        if isinstance(resource.spec, DynamicConfigSource) and resource.spec.plugin_ref == plugin:
            return float(resource.spec.ttl or protocol.LONGEST_TTL_S)
    return protocol.LONGEST_TTL_S


def startup_hash(effective: Effective) -> str:
    digest = hashlib.sha256()
    for file in effective.startup.files:
        digest.update(json.dumps([file.path, hashlib.sha256(file.content).hexdigest()]).encode())
    return f"sha256:{digest.hexdigest()}"


def shown(spec: Plugin, effective: Effective) -> list[Raw]:
    """The resources that a plugin's context names, as they are declared; nothing else."""
    wanted = spec.context.resources if spec.context is not None else None
    if not wanted:
        return []
    targets = {dynamic_target.same(target_spec.target) for target_spec in wanted}
    present = {(resource.kind, resource.name) for resource in effective.router.resources}
    return [
        document
        for document in _documents(effective)
        if (target := _target(document)) is not None
        and dynamic_target.same(target) in targets
        and (target.kind, target.name) in present
    ]


def _documents(effective: Effective) -> list[Raw]:
    data = parse(effective.startup.files[0]).data
    found = [*data["spec"]["resources"]]
    for part in effective.active:
        found += effective.documents(part)
    return found


def _target(raw: Raw) -> Target | None:
    target = Target(raw["apiVersion"], raw["kind"], raw["metadata"]["name"])
    return None if dynamic_target.trouble(target)[1] else target
