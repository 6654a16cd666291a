"""What owners may declare and do declare, by the startup file in force and the ledger."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from types import MappingProxyType

from holdfast.agent.declare_requests import DeclareRequest, Seen
from holdfast.agent.services.backend import Backend
from holdfast.api.conditions import CallRefused
from holdfast.config.part import Part, Raw, Target
from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import HoldfastError, LedgerError
from holdfast.resources import registry
from holdfast.resources.dynamic import contribution, source_policy
from holdfast.resources.resource import Resource
from holdfast.resources.router import Router
from holdfast.runtime import increments, sources
from holdfast.runtime.increments import State
from holdfast.runtime.routes import claims, documents
from holdfast.runtime.routes.conflicts import Claimed
from holdfast.runtime.routes.declarations import Batch, Held, Outcome
from holdfast.runtime.routes.owners import Owner, owner_of
from holdfast.state.ledger import Ledger

_LOOK_S = 0.5  # as soon as `sources` sees what another process declared
_NOT_YET = CallRefused("UNAVAILABLE", "Holdfast has no valid configuration yet: ask again")


@dataclass(slots=True)
class StartupPolicies:
    backend: Backend
    _of: Router | None = None
    _owners: dict[str, Owner] = field(default_factory=dict)
    _policies: dict[str, Resource] = field(default_factory=dict)
    _links: source_policy.Links = field(default_factory=lambda: source_policy.Links.of(()))

    def owners(self) -> Mapping[str, Owner]:
        self._follow()
        return self._owners

    def link(self, ifname: str) -> str:
        self._follow()
        return next((n for n, called in self._links.ifnames.items() if ifname in called), "")

    def ifname(self, link: str) -> str:
        self._follow()
        return next(iter(self._links.ifnames.get(link, ())), link)

    def startup(self) -> Router:
        """The one in force. Raises CallRefused before there is one."""
        self._follow()
        assert self._of is not None  # noqa: S101 - `_follow` raises where there is none
        return self._of

    def refusal(self, source: str, raw: Raw) -> str:
        """What cannot be read is for the store to say, which reads everything once more."""
        self._follow()
        policy = self._policies.get(source)
        if policy is None:
            return f"no DynamicConfigSource names {source}"
        part = Part(source, 1, 0.0, None, (raw,), numbers=(1,))
        read = contribution.read(part, 0)
        judge = source_policy.judge(policy, self._links)
        return "\n".join(why for resource in read.resources for why in judge.refusals(resource))

    def _follow(self) -> None:
        daemon = self.backend.loop.status
        if daemon.effective is None:
            raise _NOT_YET
        startup = daemon.effective.startup
        if startup is self._of:
            return
        found = registry.having(startup.resources, lambda kind: kind.admits_parts)
        self._policies = {resource.spec.contributor: resource for resource in found}
        self._owners = {
            owner_of(source): _owner(source, policy)
            for source, policy in self._policies.items()
            if owner_of(source)
        }
        self._links = source_policy.Links.of(startup.resources)
        self._of = startup


def _owner(source: str, policy: Resource) -> Owner:
    spec, allow = policy.spec, policy.spec.allow
    return Owner(
        owner_of(source),
        may_configure_instance=allow is not None and allow.may_configure_instance,
        may_overlap=allow is not None and allow.overlap == "allow",
        grace=None if spec.lease is None else spec.lease.grace,
    )


@dataclass(slots=True)
class LedgerDeclarations:
    """Increments in the ledger. Owners that hand in whole parts are looked at as well."""

    backend: Backend
    policies: StartupPolicies
    _held: dict[str, dict[Target, Raw]] | None = None
    _parts: tuple[Part, ...] = ()  # with what did not come by the API
    _others: tuple[Claimed, ...] = ()
    _others_of: tuple[Router, tuple[Part, ...]] | None = None
    _generations: dict[str, int] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def held(self) -> Held:
        if self._held is None:
            raise _NOT_YET
        return self._held

    def others(self) -> Sequence[Claimed]:
        of = (self.policies.startup(), self._parts)
        if self._others_of is None or any(
            one is not before for one, before in zip(of, self._others_of, strict=True)
        ):
            resources = [*of[0].resources]
            for part in of[1]:
                resources += contribution.read(part, 0).resources
            self._others = tuple(claims.claimed(resources, self.policies.ifname))
            self._others_of = of
        return self._others

    async def watch(self) -> None:
        """Follows what other processes declare."""
        while True:
            try:
                async with self._turn:
                    await self.backend.in_thread(self._read)
            except LedgerError:
                pass  # what is known stays; the pass says that the ledger cannot be read
            await asyncio.sleep(_LOOK_S)

    async def declare(self, batch: Batch) -> Sequence[Outcome]:
        given = increments.Batch(
            batch.source,
            tuple(batch.put),
            tuple((target.kind, target.name) for target in batch.withdraw),
            each=batch.each,
            dry_run=batch.dry_run,
        )
        targets = {
            str(target): target
            for target in (*map(documents.target_of, batch.put), *batch.withdraw)
        }
        answer, seen = await self._take(
            given, batch.wait, dict(zip(targets, batch.put, strict=False))
        )
        return [
            Outcome(
                targets[outcome.id],
                "\n".join(outcome.reasons) if outcome.state is State.REFUSED else "",
                outcome.state in (State.UNCHANGED, State.NOT_DECLARED),
                outcome.id in seen,
            )
            for outcome in answer.outcomes
            if outcome.id in targets
        ]

    async def begin_sync(self, source: str) -> None:
        await self._take(increments.Batch(source, begin=True))

    async def complete_sync(self, source: str, *, dry_run: bool) -> Sequence[Target]:
        before = self.held().get(source, {})
        answer, _ = await self._take(increments.Batch(source, complete=True, dry_run=dry_run))
        gone = {outcome.id for outcome in answer.outcomes if outcome.state is State.WITHDRAWN}
        return [target for target in before if str(target) in gone]

    async def _take(
        self,
        batch: increments.Batch,
        wait: float = 0.0,
        put: Mapping[str, Raw] = MappingProxyType({}),
    ) -> tuple[increments.Answer, frozenset[str]]:
        """What became of it, and which resources a pass saw as they are to be, in the time that
        there is. Raises Refused for what is no batch, LedgerError where nothing can be kept."""
        running = asyncio.get_running_loop()
        request = DeclareRequest(batch, wait > 0, running.create_future(), running.create_future())
        self.backend.loop.declare(request)
        answer = await request.kept
        if not batch.dry_run and self._held is not None:
            self._note(answer, put)
        seen: frozenset[str] = frozenset()
        if wait:
            with suppress(TimeoutError, HoldfastError):  # it is stored: no more is known
                async with asyncio.timeout(wait):
                    told = await request.told
                seen = frozenset(n for n, (how, _) in told.seen.items() if how is Seen.CONVERGED)
        return answer, seen

    def _note(self, answer: increments.Answer, put: Mapping[str, Raw]) -> None:
        """What is held goes on as it is, with this: to read ten thousand rows for one more would
        take longer than to store it."""
        mine = self._held.setdefault(answer.source, {}) if self._held is not None else {}
        for outcome in answer.outcomes:
            if outcome.state is State.DECLARED and outcome.id in put:
                mine[documents.target_of(put[outcome.id])] = put[outcome.id]
            elif outcome.state is State.WITHDRAWN:
                kind, _, name = outcome.id.partition("/")
                mine.pop(Target(documents.GROUP, kind, name), None)
        self._generations[answer.source] = answer.generation

    def _read(self) -> None:
        """In a thread, while nothing is declared."""
        with Ledger.read(self.backend.paths) as ledger:
            found = {source: number for source, number, _ in ledger.part_index()}
            if self._held is not None and found == self._generations:
                return
            parts = sources.in_force(ledger, time.time())
        self._held, self._parts, self._generations = _held(parts), tuple(_named(parts)), found


def _held(parts: Iterable[Part]) -> dict[str, dict[Target, Raw]]:
    return {
        part.source: {
            documents.target_of(raw): raw
            for raw in part.resources
            if raw.get("kind") in documents.KINDS and documents.by_api(raw)
        }
        for part in parts
    }


def _named(parts: Iterable[Part]) -> Iterator[Part]:
    """Each with those of its resources that have names of their own."""
    for part in parts:
        found = [
            (raw, number)
            for raw, number in zip(part.resources, part.numbers or count(), strict=False)
            if raw.get("kind") in documents.KINDS and not documents.by_api(raw)
        ]
        if found:
            resources, numbers = zip(*found, strict=True)
            yield replace(part, resources=resources, numbers=numbers)
