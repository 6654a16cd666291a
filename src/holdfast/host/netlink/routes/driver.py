"""The driver of routes."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Driver, Failure, Memory, Result, Scope
from holdfast.engine.kinds.route import ROUTE, RouteTemplate, expand, identify, template_of
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host.netlink.addresses.tentative import Checks
from holdfast.host.netlink.links.link_names import LinkNames, read_names
from holdfast.host.netlink.messages import Dump
from holdfast.host.netlink.routes.route_codec import RTM_NEWROUTE, created
from holdfast.host.netlink.routes.route_decode import Reader, carried, settle
from holdfast.host.netlink.routes.route_delete import delete_routes
from holdfast.host.netlink.routes.route_holders import Asked, find_holders, find_routes_to
from holdfast.host.netlink.routes.route_read import dump_runs, legs_of
from holdfast.host.netlink.routes.route_shadows import Shadows
from holdfast.host.netlink.routes.route_sighting import RouteSighting
from holdfast.host.netlink.routes.route_update import prepare, refusal
from holdfast.host.netlink.routes.route_update_ipv4 import update_aliases
from holdfast.host.netlink.routes.route_update_ipv6 import update_legs
from holdfast.host.netlink.routes.shared_legs import FOREIGN_NEXTHOPS, SharedRoutes
from holdfast.host.netlink.socket import (
    BATCH_MESSAGES,
    CREATE,
    EXCL,
    REQUEST,
    NetlinkSocket,
    Request,
)

# Each table is two dumps; with more of them, one dump of all is cheaper.
_TABLES_AT_ONCE = 64
_TABLE_MAX = 0xFFFFFFFF


class RouteDriver(Driver):
    memory = "routes"

    def __init__(self, sock: NetlinkSocket, tag: int, former: frozenset[int] = frozenset()) -> None:
        self._sock = sock
        self._tag = tag
        self._former = former
        self._checks = Checks(sock)
        self._shadows = Shadows(sock)
        # By the last look at all tables, kept until the next look.
        self._found_anywhere: RouteSighting | None = None

    def observe(self, scope: Scope) -> Observed:
        names = read_names(self._sock)
        reader = Reader(names.names, self._former)
        seen = RouteSighting(self._tag, names.indexes, reader, self._former)
        self._found_anywhere = None
        if scope.bulk_keys:
            find_routes_to(self._sock, scope.bulk_keys, seen)
            return Observed(bulk={ROUTE.name: seen})
        batches = [batch for batch in scope.batches if batch.kind.name == ROUTE.name]
        doubtful = self._shadows.doubtful(batches, scope.heard)
        whole = self._shadows.read(doubtful)
        self._see(scope, batches, seen, whole)
        seen.impaired.update(self._shadows.find(doubtful, whole, seen))
        return Observed(bulk={ROUTE.name: seen})

    def _see(
        self,
        scope: Scope,
        batches: Sequence[Batch],
        seen: RouteSighting,
        whole: Mapping[int, Dump],
    ) -> None:
        """whole: IPv4 tables that were read already, with others' routes."""
        claims = {
            b"".join(identify(claim.fields)): claim
            for key, claim in scope.claims.items()
            if key.kind == ROUTE.name
        }
        with_others = {identity: claim for identity, claim in claims.items() if _is_shared(claim)}
        shared = SharedRoutes(
            with_others, batches, seen.reader, seen.indexes, self._tag, self._former
        )
        remembered = _numbers(scope.remembered.get(self.memory))
        tables = _tables(remembered, batches, claims.values())
        dumped = {4: self._dump(4, tables, whole), 6: self._dump(6, tables, {})}
        if remembered is None:  # and only once everything could be read
            self._found_anywhere = seen
        if not claims and seen.take_exact(batches, dumped):
            return
        for family, dump in dumped.items():
            settled = settle(dump.bodies(), family)
            seen.own.update(shared.own_parts(settled) if family == 6 else settled)
        asked = Asked()
        for batch in batches:
            asked.add(batch.scope, seen.missing(batch))
        for claim in claims.values():
            identity_scope, key = identify(claim.fields)
            asked.add(identity_scope, [key])
        find_holders(self._sock, asked, seen, shared, claims)
        seen.impaired.update(shared.joined)

    def _dump(self, family: int, tables: Iterable[int], whole: Mapping[int, Dump]) -> Dump:
        """What carries our tag, or one of before."""
        ours = (self._tag, *self._former)
        dumps: list[Dump] = []
        for table in tables:
            if table in whole:
                dumps.append(carried(whole[table], ours)[0])
            else:
                dumps += (dump_runs(self._sock, family, table=table, protocol=tag) for tag in ours)
        return Dump([run for dump in dumps for run in dump.runs])

    def to_remember(self, planned: Sequence[Operation], before: Memory | None) -> Memory | None:
        """The tables that routes of ours were ever written to. Where nobody knows, they are all
        those that one was found in by a look everywhere."""
        subjects = (op.subject for op in planned if op.kind == ROUTE.name)
        written = {str(_contents(subject)[0].table) for subject in subjects}
        if before is not None and _numbers(before) is not None:
            return before | written
        found = self._found_anywhere
        if found is None:
            return None
        return frozenset(written | {str(found.unpack(body)[0].table) for body in found.own})

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        results: list[Result] = []
        try:
            # Links may have come, gone or been renamed since the routes were observed.
            names = read_names(self._sock)
        except DriverError as error:
            return [_failed(operation, str(error)) for operation in operations]
        for verb, group in itertools.groupby(operations, key=lambda operation: operation.verb):
            members = list(group)
            try:
                results += self._carry_out(verb, members, names, progress)
            except DriverError as error:
                results += [_failed(operation, str(error)) for operation in members]
        return results

    def _carry_out(
        self,
        verb: Verb,
        operations: Sequence[Operation],
        names: LinkNames,
        progress: Callable[[int], None],
    ) -> list[Result]:
        if verb is Verb.CREATE:
            # A gateway is taken only once something leads to it, which may be one of them.
            along = sorted(operations, key=_has_gateway)
            return [self._create(operation, names, progress) for operation in along]
        if verb is Verb.DELETE:
            return delete_routes(self._sock, self._tag, names, operations, progress)
        return self._update(operations, names, progress)

    def _update(
        self, operations: Sequence[Operation], names: LinkNames, progress: Callable[[int], None]
    ) -> list[Result]:
        updates = [prepare(operation, self._tag, names) for operation in operations]
        ready = [update for update in updates if not update.failures]
        progress(sum(len(update.keys) for update in updates if update.failures))
        for family, change in ((4, update_aliases), (6, update_legs)):
            members = [update for update in ready if update.new.family == family]
            change(self._sock, self._tag, names, members, progress)
        return [update.result() for update in updates]

    def _create(
        self, operation: Operation, names: LinkNames, progress: Callable[[int], None]
    ) -> Result:
        shared, keys = _contents(operation.subject)
        legs = legs_of(shared, names.indexes)
        if isinstance(legs, str):
            progress(len(keys))
            return _failed(operation, legs)
        shape = created(shared, legs, self._tag)
        requests = shape.requests(RTM_NEWROUTE, REQUEST | CREATE | EXCL, keys, BATCH_MESSAGES)
        failed = self._sock.transact_blocks(requests, progress)
        if failed and ":" in shared.prefsrc and self._checks.passed(shared.prefsrc):
            left = sorted(failed)
            bodies = shape.bodies(keys[index] for index in left)
            again = [Request(RTM_NEWROUTE, CREATE | EXCL, body) for body in bodies]
            failed = {left[at]: error for at, error in self._sock.transact(again).items()}
        failures = tuple(
            Failure(
                expand(shared, keys[index]).key,
                refusal(shared, error, names),
                error.errno == errno.EEXIST,
            )
            for index, error in sorted(failed.items())
        )
        return Result(operation, len(keys) - len(failures), failures)


def _contents(subject: Artifact | Batch) -> tuple[RouteTemplate, Sequence[bytes]]:
    if isinstance(subject, Batch):
        return subject.template, subject.keys
    shared, key = template_of(subject)
    return shared, [key]


def _has_gateway(operation: Operation) -> bool:
    shared, _ = _contents(operation.subject)
    return any(nexthop.gateway for nexthop in shared.nexthops)


def _failed(operation: Operation, why: str) -> Result:
    """None of it was done, for one reason."""
    shared, keys = _contents(operation.subject)
    return Result(operation, 0, tuple(Failure(expand(shared, key).key, why) for key in keys))


def _numbers(remembered: Memory | None) -> frozenset[int] | None:
    """The remembered tables; None where nobody knows them, or the ledger holds something else."""
    if remembered is None:
        return None
    tables = frozenset(int(table) for table in remembered if table.isdecimal())
    sound = len(tables) == len(remembered) and all(0 < table <= _TABLE_MAX for table in tables)
    return tables if sound else None


def _tables(
    remembered: frozenset[int] | None, batches: Iterable[Batch], claims: Iterable[Claim]
) -> Iterable[int]:
    """The tables to look for own routes in; 0 stands for all of them.

    While no rule was ever added, the kernel keeps the local and the main table in one trie and
    walks it twice to dump all tables; among a million foreign routes that is most of a pass.
    """
    if remembered is None:
        return (0,)
    wanted = {batch.template.table for batch in batches}
    wanted.update(int(str(claim.fields["table"])) for claim in claims)
    tables = remembered | wanted
    return sorted(tables) if len(tables) <= _TABLES_AT_ONCE else (0,)


def _is_shared(claim: Claim) -> bool:
    return bool(claim.fields.get(FOREIGN_NEXTHOPS))
