"""What owners ask of routing control: who asks, whether they may, and whether others hold it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from holdfast.api.conditions import CallRefused
from holdfast.config.part import Raw, Target
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import event_kinds
from holdfast.engine.event_kinds import EventKind
from holdfast.resources.dynamic.source_name import OWNER
from holdfast.runtime.routes import conflicts, documents, owners
from holdfast.runtime.routes.conflicts import ADMIN_SOURCE, Claimed, Index
from holdfast.runtime.routes.declarations import Batch, Declarations, Held, Outcome
from holdfast.runtime.routes.overrides import Lost, Overrides
from holdfast.runtime.routes.owners import ADMIN, Owner
from holdfast.runtime.routes.tally import Tally

OK = "OK"
# What stands beside something refused in a batch that is taken whole or not at all.
NOT_TAKEN = CallRefused("ABORTED", "not taken, as something else of this call was refused")
_REASONS = {
    documents.PEER: "peer_operation_denied",
    documents.BFD: "bfd_operation_denied",
    documents.OSPF: "ospf_operation_denied",
    documents.INSTANCE: "instance_operation_denied",
}


class Policies(Protocol):
    """What the startup file in force says of owners. One door for all that they declare."""

    def owners(self) -> Mapping[str, Owner]: ...
    def link(self, ifname: str) -> str:
        """The resource that stands for a link, by the kernel's name; empty where none does."""

    def ifname(self, link: str) -> str:
        """The kernel's name of the link that a resource stands for."""

    def refusal(self, source: str, raw: Raw) -> str:
        """Why the policy of a source does not allow a document; empty where it does."""


class Journal(Protocol):
    def tell(self, kind: EventKind, source: str, message: str, data: Mapping[str, str]) -> None:
        """Keeps an event. It may be one of very many: a source has its share."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an owner asks for in one call."""

    put: Sequence[Raw | CallRefused] = ()  # what could not be read is refused in its place
    withdraw: Sequence[Target | CallRefused] = ()
    each: bool = False
    wait: float = 0.0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one of them."""

    target: Target | None
    refused: CallRefused | None = None
    unchanged: bool = False
    applied: bool = False


@dataclass(slots=True)
class Control:
    """Belongs to the event loop. What is checked and what is noted of it are one step of that; only
    storing is waited for."""

    policies: Policies
    declarations: Declarations
    journal: Journal
    overrides: Overrides
    tally: Tally = field(default_factory=Tally)
    clock: Callable[[], float] = time.time
    _held: Held | None = None
    _others: Sequence[Claimed] = ()
    _index: Index = field(default_factory=Index)

    def index(self) -> Index:
        held, others = self.declarations.held(), self.declarations.others()
        if held is not self._held or others is not self._others:
            self._held, self._others = held, others
            self._index = Index.of(held, others)
        return self._index

    def held_by(self, owner: Owner, kind: str = "") -> dict[Target, Raw]:
        found = self.declarations.held().get(owner.source, {})
        return {target: raw for target, raw in found.items() if not kind or target.kind == kind}

    def instance(self) -> Claimed | None:
        """The BGP instance that is declared, by whomever."""
        return self.index().holders.get(documents.INSTANCE_TARGET)

    def local_as(self) -> int:
        found = self.instance()
        return int(found.document["spec"].get("localAS", 0)) if found is not None else 0

    async def declare(self, owner: Owner, asked: Asked) -> list[Answer]:
        """In the order of `put`, then of `withdraw`. One that is refused is told in its place."""
        index = self.index()
        answers = [self._may_put(index, owner, one, asked) for one in asked.put]
        answers += [self._may_withdraw(index, owner, one) for one in asked.withdraw]
        if not asked.each and any(answer.refused for answer in answers):
            return [
                answer if answer.refused else Answer(answer.target, NOT_TAKEN) for answer in answers
            ]
        put = [
            raw
            for raw, answer in zip(asked.put, answers, strict=False)
            if not answer.refused and not answer.unchanged
        ]
        gone = [
            answer.target
            for answer in answers[len(asked.put) :]
            if not answer.refused and answer.target
        ]
        batch = Batch(
            owner.source,
            [raw for raw in put if not isinstance(raw, CallRefused)],
            gone,
            asked.each,
            asked.wait,
            asked.dry_run,
        )
        if not batch.put and not batch.withdraw:
            return answers
        return await self._take(owner, batch, answers)

    async def one(self, owner: Owner, asked: Asked) -> Answer:
        """The same for a call with one object: raises what it is refused for."""
        answer = (await self.declare(owner, asked))[0]
        if answer.refused is not None:
            raise answer.refused
        return answer

    async def withdraw_all(self, owner: Owner) -> None:
        targets = [*self.held_by(owner), *self.overrides.of(owner.source)]
        if targets:
            await self.declare(owner, Asked(withdraw=targets, each=True))

    async def complete_sync(self, owner: Owner, *, dry_run: bool) -> Sequence[Target]:
        found = await self.declarations.complete_sync(owner.source, dry_run=dry_run)
        if not dry_run:
            for target in found:
                self._index.remove(target)
            await self._give_back(owner, found)
            self._count(owner, found, "remove")
        return found

    async def settle(self) -> None:
        """At the start: what was taken over, and is not held by `admin` any more, goes back."""
        holders = self.index().holders
        free = [target for target in self.overrides.all() if target not in holders]
        await self._back_to_losers(free)

    def _may_put(self, index: Index, owner: Owner, raw: Raw | CallRefused, asked: Asked) -> Answer:
        if isinstance(raw, CallRefused):
            return Answer(None, raw)
        target = documents.target_of(raw)
        refused = self._against_policy(owner, target, raw, asked) or self._against_others(
            index, owner, target, raw, asked
        )
        # One that another way declares alike is there, and is not declared once more.
        holder = index.holders.get(target)
        alike = refused is None and holder is not None and bool(holder.place)
        return Answer(target, refused, unchanged=alike)

    def _against_policy(
        self, owner: Owner, target: Target, raw: Raw, asked: Asked
    ) -> CallRefused | None:
        why = self.policies.refusal(owner.source, raw)
        if target.kind == documents.INSTANCE and not owner.may_configure_instance and not why:
            why = (
                f"{owner.source} may not configure the BGP instance, which all owners share: to"
                " allow it, set allow.mayConfigureInstance"
            )
        if not why:
            return None
        if not asked.dry_run:
            reason = _REASONS.get(target.kind, "prefix_policy")
            self._violation(owner.name, why, {"reason": reason, **about(raw)})
        return CallRefused("PERMISSION_DENIED", why)

    def _against_others(
        self, index: Index, owner: Owner, target: Target, raw: Raw, asked: Asked
    ) -> CallRefused | None:
        found = conflicts.conflict(index, self.policies.owners(), owner, raw)
        if found is None:
            return None
        loser = owners.owner_of(found.holder.source)
        if owner.name == ADMIN and (found.overlap or loser):
            return None
        if not asked.dry_run:
            reason = _REASONS.get(target.kind, "prefix_conflict")
            data = {"reason": reason, "existing_owner": loser or found.holder.source, **about(raw)}
            self._violation(owner.name, found.told(), data)
        more = ""
        if self.overrides.all().get(target) is not None and found.holder.source == ADMIN_SOURCE:
            more = "; it is declared again for who lost it when admin withdraws it"
        return CallRefused("ALREADY_EXISTS", found.told() + more)

    def _may_withdraw(self, index: Index, owner: Owner, target: Target | CallRefused) -> Answer:
        if isinstance(target, CallRefused):
            return Answer(None, target)
        holder, lost = index.holders.get(target), self.overrides.all().get(target)
        mine = holder is not None and holder.source == owner.source and not holder.place
        if mine or (lost is not None and lost.source == owner.source):
            return Answer(target)
        return Answer(target, CallRefused("NOT_FOUND", f"{owner.source} does not declare {target}"))

    async def _take(self, owner: Owner, batch: Batch, answers: list[Answer]) -> list[Answer]:
        """What was allowed is stored; answers are completed by what came of it."""
        index = self.index()
        displaced: list[Target] = []
        if not batch.dry_run:
            displaced = await self._displace(index, owner, batch.put)
            forgotten = [target for target in batch.withdraw if self._lost_by(owner, target)]
            await self.overrides.change({}, forgotten)
            batch = replace(
                batch, withdraw=[target for target in batch.withdraw if target not in forgotten]
            )
        before = self.instance()
        outcomes: dict[Target, Outcome] = {}
        try:
            outcomes = {outcome.target: outcome for outcome in await self._store(batch)}
        finally:
            taken = {target for target, outcome in outcomes.items() if not outcome.refusal}
            await self._back_to_losers([target for target in displaced if target not in taken])
        if not batch.dry_run:
            self._note(owner, batch, outcomes)
            self._instance_changed(owner, before)
            await self._give_back(owner, batch.withdraw)
        return [_with(answer, outcomes) for answer in answers]

    def _lost_by(self, owner: Owner, target: Target) -> bool:
        lost = self.overrides.all().get(target)
        return lost is not None and lost.source == owner.source

    async def _displace(self, index: Index, owner: Owner, put: Iterable[Raw]) -> list[Target]:
        """Noted before it is withdrawn, so that a crash in between loses nothing."""
        found = [index.holders.get(documents.target_of(raw)) for raw in put]
        lost = [
            claimed for claimed in found if claimed is not None and claimed.source != owner.source
        ]
        lost = [
            claimed
            for claimed in lost
            if claimed.target != documents.INSTANCE_TARGET or owner.name == ADMIN
        ]
        moment = self.clock()
        given = {claimed.target: Lost(claimed.source, claimed.document, moment) for claimed in lost}
        await self.overrides.change(given, ())
        for claimed in lost:
            await self._store(Batch(claimed.source, withdraw=[claimed.target]))
            said = f"{owner.source} took {claimed.target} over from {claimed.source}"
            data = {"reason": "override", "existing_owner": owners.owner_of(claimed.source)}
            self.journal.tell(
                event_kinds.ROUTE_OVERRIDDEN, claimed.source, said, data | about(claimed.document)
            )
        return list(given)

    async def _give_back(self, owner: Owner, gone: Iterable[Target]) -> None:
        if owner.name == ADMIN:
            await self._back_to_losers(
                [target for target in gone if target in self.overrides.all()]
            )

    async def _back_to_losers(self, targets: Iterable[Target]) -> None:
        for target in targets:
            lost = self.overrides.all()[target]
            done = await self._store(Batch(lost.source, put=[lost.document]))
            await self.overrides.change({}, [target])
            refusal = next((outcome.refusal for outcome in done if outcome.refusal), "")
            end = f"could not be declared again: {refusal}" if refusal else "was given back"
            self.journal.tell(
                event_kinds.ROUTE_GIVEN_BACK,
                lost.source,
                f"{target} {end}",
                about(lost.document),
            )

    async def _store(self, batch: Batch) -> Sequence[Outcome]:
        """The index goes on as it is, unless the store tells of what is held by a new value."""
        outcomes = await self.declarations.declare(batch)
        if batch.dry_run or self.declarations.held() is not self._held:
            return outcomes
        put = {documents.target_of(raw): raw for raw in batch.put}
        for outcome in outcomes:
            if outcome.refusal:
                continue
            if outcome.target in put:
                self._index.add(Claimed(batch.source, outcome.target, put[outcome.target]))
            else:
                self._index.remove(outcome.target)
        return outcomes

    def _note(self, owner: Owner, batch: Batch, outcomes: Mapping[Target, Outcome]) -> None:
        taken = [target for target, outcome in outcomes.items() if not outcome.refusal]
        put = {documents.target_of(raw) for raw in batch.put}
        self._count(owner, [target for target in taken if target in put], "set")
        self._count(owner, [target for target in taken if target not in put], "remove")

    def _instance_changed(self, owner: Owner, before: Claimed | None) -> None:
        after = self.instance()
        was = before.document["spec"] if before is not None else {}
        now = after.document["spec"] if after is not None else {}
        if was == now:
            return
        data = {
            "local_as": str(now.get("localAS", 0)),
            "router_id": str(now.get("routerID", "")),
            "previous_as": str(was.get("localAS", 0)),
            "previous_router_id": str(was.get("routerID", "")),
        }
        said = f"AS {data['local_as']}, router id {data['router_id']}"
        self.journal.tell(event_kinds.BGP_INSTANCE_CHANGED, owner.source, said, data)

    def _violation(self, owner: str, why: str, data: Mapping[str, str]) -> None:
        self.tally.violation(owner, data["reason"])
        source = f"{OWNER}/{owner}" if owner else _NOBODY
        self.journal.tell(event_kinds.ROUTE_REFUSED, source, why, data)

    def _count(self, owner: Owner, targets: Iterable[Target], operation: str) -> None:
        for target in targets:
            self.tally.intent(owner.name, target.kind, operation)


# Whom calls with an unknown owner are counted and told for: what they said may be anything.
_NOBODY = "an unknown owner"


def about(raw: Raw) -> dict[str, str]:
    """What an event says of an object, as clients of RouteControl know it."""
    spec: Mapping[str, Any] = raw["spec"]
    kind = raw["kind"]
    if kind == documents.PEER:
        return {"operation": "ApplyPeer", "neighbor": str(spec["address"])}
    if kind == documents.BFD:
        return {"operation": "EnableBFD", "peer_address": str(spec["peer"])}
    if kind == documents.OSPF:
        return {"operation": "EnableOSPF", "interface": str(spec["interface"])}
    if kind == documents.INSTANCE:
        return {"operation": "ConfigureBGP"}
    protocol = "BGP" if kind == documents.PREFIX else "OSPF"
    return {"prefix": str(spec["prefix"]), "protocol": protocol}


def _with(answer: Answer, outcomes: Mapping[Target, Outcome]) -> Answer:
    if answer.refused is not None or answer.target is None or answer.target not in outcomes:
        return answer
    outcome = outcomes[answer.target]
    if outcome.refusal:
        refused = CallRefused("FAILED_PRECONDITION", outcome.refusal)
        return replace(answer, refused=refused)
    return replace(answer, unchanged=outcome.unchanged, applied=outcome.applied)
